"""The report built again: whole, of a part, of several folders."""

import json
import shutil
from pathlib import Path

import pytest
from reports.runs_on_disk import left_by_a_command, with_versions
from reports.synthetic_matrix import Matrix

from osmabench_ros.base.files import write_json
from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.reports.rebuilding import rebuild_report
from osmabench_ros.runs.matrix_on_disk import RUNS, MatrixOnDisk
from osmabench_ros.runs.results.report_model import Status
from osmabench_ros.runs.results.results_folder import held

FILES = ('report.json', 'report.csv', 'report.html')


@pytest.fixture(scope='module')
def left(matrix: Matrix, tmp_path_factory: pytest.TempPathFactory) -> MatrixOnDisk:
    return left_by_a_command(matrix, tmp_path_factory.mktemp('left') / 'whole')


@pytest.fixture
def whole(left: MatrixOnDisk, tmp_path: Path) -> MatrixOnDisk:
    return MatrixOnDisk(shutil.copytree(left.root, tmp_path / 'whole'))


def figures_of(root: Path) -> list[bytes]:
    return [(root / name).read_bytes() for name in FILES]


def shard(whole: MatrixOnDisk, numbers: tuple[int, ...], root: Path) -> MatrixOnDisk:
    """Return a folder with some of the runs, as another machine would leave it."""
    shutil.copytree(whole.root, root)
    chosen = [whole.run_ids[number] for number in numbers]
    for run_id in set(whole.run_ids) - set(chosen):
        shutil.rmtree(root / run_id)
    write_json(root / RUNS, {'runs': chosen})
    return MatrixOnDisk(root)


def test_built_again_the_report_is_the_same_byte_for_byte(whole: MatrixOnDisk) -> None:
    before = figures_of(whole.root)
    for name in FILES:
        (whole.root / name).unlink()
    rebuild_report([whole])
    assert figures_of(whole.root) == before


def test_parts_of_several_machines_make_the_report_of_one(
    whole: MatrixOnDisk, tmp_path: Path
) -> None:
    parts = [
        shard(whole, (1, 3, 5), tmp_path / 'second'),
        shard(whole, (0, 2, 4, 1), tmp_path / 'first'),
    ]
    rebuild_report(parts, tmp_path / 'merged')
    assert figures_of(tmp_path / 'merged') == figures_of(whole.root)


def test_a_part_is_reported_as_a_part(whole: MatrixOnDisk) -> None:
    cut_off, absent = whole.run_ids[0], whole.run_ids[3]
    (whole.root / cut_off / 'report.json').unlink()
    shutil.rmtree(whole.root / absent)
    report = rebuild_report([whole])
    assert not report.passed
    assert {run.run_id for run in report.runs} == {*whole.run_ids} - {cut_off, absent}
    [warning] = [text for text in report.warnings if 'of a part' in text]
    assert '2 of 6 runs have no figures yet' in warning
    assert cut_off in warning
    assert absent in warning
    assert warning in (whole.root / 'report.html').read_text()


def test_nothing_done_is_no_report(whole: MatrixOnDisk) -> None:
    for run_id in whole.run_ids:
        shutil.rmtree(whole.root / run_id)
    before = figures_of(whole.root)
    with pytest.raises(RunError, match='no run in .* is done yet'):
        rebuild_report([whole])
    assert figures_of(whole.root) == before


def changed_configuration(root: Path) -> None:
    data = json.loads((root / 'manifest.json').read_text())
    write_json(root / 'manifest.json', {**data, 'config_sha256': 'f' * 64})


def changed_inputs(root: Path) -> None:
    data = json.loads((root / 'manifest.json').read_text())
    inputs = {name: f'{value}2' for name, value in data['inputs'].items()}
    write_json(root / 'manifest.json', {**data, 'inputs': inputs})


def changed_version(root: Path) -> None:
    for report in root.glob('*/report.json'):
        with_versions(report.parent, numpy='2.1')


def changed_figure(root: Path) -> None:
    file = next(root.glob('*baseline.oracle*/report.json'))
    data = json.loads(file.read_text())
    data['metrics'][0]['value'] = 0.125
    write_json(file, data)


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (changed_configuration, 'different configurations'),
        (changed_inputs, 'a different scene boxes.room.0, version of osmabench_ros'),
        (changed_version, r'numpy 2\.1 and 2\.0'),
        (changed_figure, 'oracle.* has different figures in'),
    ],
)
def test_folders_that_differ_are_refused_or_told_apart(
    change, said: str, whole: MatrixOnDisk, tmp_path: Path
) -> None:
    other = shutil.copytree(whole.root, tmp_path / 'other')
    change(other)
    both, merged = [whole, MatrixOnDisk(other)], tmp_path / 'merged'
    with pytest.raises(RunError, match=said):
        rebuild_report(both, merged)
    assert not merged.exists()
    report = rebuild_report(both, merged, allow_different=True)
    assert len(report.runs) == 12
    assert {record.mapper for record in report.metrics} == {
        f'{mapper} ({folder})'
        for mapper in ('oracle', 'noisy_oracle')
        for folder in ('whole', 'other')
    }
    assert report.failed_requirements == ()
    assert any('thresholds are not judged' in text for text in report.warnings)
    page = (merged / 'report.html').read_text()
    assert 'oracle (other)' in page
    assert 'data:image' in page  # pictures are found in the folders of the runs


def test_several_folders_need_a_place_and_one_in_use_is_left(
    whole: MatrixOnDisk, tmp_path: Path
) -> None:
    other = MatrixOnDisk(shutil.copytree(whole.root, tmp_path / 'other'))
    with pytest.raises(ConfigError, match='--out'):
        rebuild_report([whole, other])
    with held(whole.root), pytest.raises(RunError, match='in use'):
        rebuild_report([whole])
    with held(whole.root):
        report = rebuild_report([whole], tmp_path / 'elsewhere')
    assert sum(run.status is Status.COMPLETE for run in report.runs) == 4


def test_the_report_of_a_sweep_is_not_replaced(whole: MatrixOnDisk) -> None:
    write_json(whole.root / 'report.json', {'schema_name': 'osmabench.sweep/1'})
    with pytest.raises(RunError, match='no report of a matrix'):
        rebuild_report([whole])


def test_the_mapper_to_compare_with_can_be_chosen(whole: MatrixOnDisk, tmp_path: Path) -> None:
    for name in ('oracle', 'noisy_oracle'):
        rebuild_report([whole], tmp_path / name, reference=name)
        text = (tmp_path / name / 'report.html').read_text('utf-8')
        assert f'Mappers under each condition beside “{name}”' in text
    with pytest.raises(ConfigError, match='"oracel". Did you mean "oracle"'):
        rebuild_report([whole], tmp_path / 'other', reference='oracel')
