"""The report built again: whole, of a part, of runs that were copied."""

import json
import shutil

import pytest

from osmabench_ros.base.files import write_json
from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.reports.matrix import rebuild_report
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunState
from osmabench_ros.runs.report_model import Status
from osmabench_ros.runs.run_manifest import lock_folder

FILES = ('report.json', 'report.csv', 'report.html')


@pytest.fixture
def whole(left, tmp_path):
    return MatrixOnDisk(shutil.copytree(left.root, tmp_path / 'whole'))


def figures_of(root):
    return [(root / name).read_bytes() for name in FILES]


@pytest.mark.full
def test_built_again_the_report_is_the_same_byte_for_byte(whole):
    before = figures_of(whole.root)
    for name in FILES:
        (whole.root / name).unlink()
    rebuild_report(whole)
    assert figures_of(whole.root) == before


def test_runs_copied_from_other_machines_count_as_done(whole, tmp_path):
    elsewhere = tmp_path / 'elsewhere'
    for run_id in whole.run_ids[::2]:
        (whole.root / run_id).rename(elsewhere.with_name(run_id))
    before, states = figures_of(whole.root), {run.state for run in whole.runs()}
    assert RunState.NOT_BEGUN in states
    assert not rebuild_report(whole).passed
    for run_id in whole.run_ids[::2]:
        shutil.copytree(elsewhere.with_name(run_id), whole.root / run_id)
    assert RunState.NOT_BEGUN not in {run.state for run in whole.runs()}
    rebuild_report(whole)
    assert figures_of(whole.root) == before


def test_runs_of_another_configuration_are_refused(whole):
    before, manifest = figures_of(whole.root), whole.root / whole.run_ids[0] / 'manifest.json'
    data = json.loads(manifest.read_text())
    write_json(manifest, {**data, 'config': {**data['config'], 'robot': {'radius_m': 0.9}}})
    with pytest.raises(RunError, match=f'{whole.run_ids[0]} was made with another configuration'):
        rebuild_report(whole)
    assert figures_of(whole.root) == before


@pytest.mark.full
def test_a_part_is_reported_as_a_part(whole):
    cut_off, absent = whole.run_ids[0], whole.run_ids[3]
    (whole.root / cut_off / 'report.json').unlink()
    shutil.rmtree(whole.root / absent)
    report = rebuild_report(whole)
    assert not report.passed
    assert {run.run_id for run in report.runs} == {*whole.run_ids} - {cut_off, absent}
    [warning] = [text for text in report.warnings if 'of a part' in text]
    assert '2 of 6 runs have no metrics yet' in warning
    assert cut_off in warning
    assert absent in warning
    assert warning in (whole.root / 'report.html').read_text()


def test_nothing_done_is_no_report(whole):
    for run_id in whole.run_ids:
        shutil.rmtree(whole.root / run_id)
    before = figures_of(whole.root)
    with pytest.raises(RunError, match='no run in .* is done yet'):
        rebuild_report(whole)
    assert figures_of(whole.root) == before


@pytest.mark.full
def test_a_folder_in_use_is_left(whole, tmp_path):
    with lock_folder(whole.root), pytest.raises(RunError, match='in use'):
        rebuild_report(whole)
    with lock_folder(whole.root):
        report = rebuild_report(whole, tmp_path / 'elsewhere')
    assert sum(run.status is Status.COMPLETE for run in report.runs) == 4


def test_the_report_of_a_sweep_is_not_replaced(whole):
    write_json(whole.root / 'report.json', {'schema_name': 'osmabench.sweep/1'})
    with pytest.raises(RunError, match='not a report of a matrix'):
        rebuild_report(whole)


@pytest.mark.full
def test_the_mapper_to_compare_with_can_be_chosen(whole, tmp_path):
    for name in ('oracle', 'noisy_oracle'):
        rebuild_report(whole, tmp_path / name, reference=name)
        text = (tmp_path / name / 'report.html').read_text('utf-8')
        assert f'Mappers under each condition beside “{name}”' in text
    with pytest.raises(ConfigError, match='"oracel". Did you mean "oracle"'):
        rebuild_report(whole, tmp_path / 'other', reference='oracel')
