import json
import shutil
from pathlib import Path

import pytest
from support.commands import osmabench
from support.world.matrix import left_by_a_command, write_matrix

from osmabench_ros.base.files import read_json, write_json
from osmabench_ros.errors import RunError
from osmabench_ros.runs.evaluation import INCOMPLETE
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, Stage, matrices_at
from osmabench_ros.runs.report_model import RunReport, Status
from osmabench_ros.runs.run_manifest import lock_folder


@pytest.fixture(scope='module')
def left(tmp_path_factory):
    folder = tmp_path_factory.mktemp('left')
    return left_by_a_command(write_matrix(folder / 'matrix'), folder / 'boxes')


@pytest.fixture
def runs(left, tmp_path):
    """Return a matrix with a run of every state."""
    found = MatrixOnDisk(shutil.copytree(left.root, tmp_path / 'out' / 'boxes'))
    _, server, _, cut_off, absent, _ = found.run_ids
    (found.root / server / 'report.json').unlink()
    report = RunReport(
        run_id=server, status=Status.INCOMPLETE, error='vqa: no server\nTraceback\n  at all'
    )
    write_json(found.root / server / INCOMPLETE, report.model_dump(mode='json'))
    (found.root / cut_off / 'report.json').unlink()
    shutil.rmtree(found.root / absent)
    return found


def status(*words):
    done = osmabench('status', *words, COLUMNS='300')
    return done.exit_code, done.output


def states(path):
    code, text = status(path, '--json')
    assert code == 1
    [document] = json.loads(text)
    assert sum(document['counts'].values()) == len(document['runs'])
    return [(run['state'], run['reason']) for run in document['runs']]


def test_every_state_is_told_apart(runs):
    found = states(runs.root.parent)
    assert [state for state, _ in found] == [
        'done', 'incomplete', 'failed', 'incomplete', 'not begun', 'failed',
    ]  # fmt: skip
    assert found[1][1] == 'vqa: no server\nTraceback\n  at all'
    assert found[3][1].startswith('cut off at the stage evaluate')
    with lock_folder(runs.root):
        assert [state for state, _ in states(runs.root)][3] == 'running'
    assert states(runs.root) == found


def test_people_read_counts_and_the_first_and_last_line_of_an_error(runs):
    code, text = status(runs.root)
    assert code == 1
    assert 'vqa: no server at all' in text
    assert 'Traceback' not in text
    assert '1 done, 2 failed, 2 incomplete, 1 not begun' in text


def test_all_done_is_success(left, tmp_path):
    found = MatrixOnDisk(shutil.copytree(left.root, tmp_path / 'boxes'))
    manifest = read_json(found.root / 'manifest.json')
    manifest['config']['mappers'] = manifest['config']['mappers'][:2]
    write_json(found.root / 'manifest.json', manifest)
    code, text = status(found.root)
    assert code == 0
    assert '4 done' in text


def test_what_holds_no_runs_is_refused(tmp_path):
    with pytest.raises(RunError, match='holds no runs; name the --out'):
        matrices_at(tmp_path)
    with pytest.raises(RunError, match='nowhere'):
        matrices_at(tmp_path / 'nowhere')
    write_json(tmp_path / 'manifest.json', {'config_sha256': ''})
    with pytest.raises(RunError, match='malformed: config: Field required'):
        _ = matrices_at(tmp_path)[0].config


@pytest.mark.full
def test_report_ends_as_a_run_does(runs, tmp_path):
    out = tmp_path / 'merged'
    with pytest.raises(RunError, match='3 of 4 runs did not complete'):
        osmabench('report', runs.root, '--out', out)
    assert (out / 'report.html').exists()


def test_the_page_names_the_stages_in_their_order():
    page = Path(__file__).parents[2] / 'docs' / 'runs.md'
    table = page.read_text().partition('| stage |')[2].partition('\n\n')[0]
    names = [line.split('|')[1].strip() for line in table.splitlines()[2:]]
    assert names == [stage.value for stage in Stage]
