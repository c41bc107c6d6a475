"""docs/results.md from reports: means, intervals, parts not run, and values of papers."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats
from support.benchmark_scripts import benchmark_script
from support.published_data import SEGMENTATION
from support.waiting import wait_until
from support.world.runs import plans_of, small_config

from osmabench_ros.base.files import claim_folder, write_json
from osmabench_ros.errors import ConfigError
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.config import load_config
from osmabench_ros.runs.matrix_on_disk import write_manifest
from osmabench_ros.runs.report_model import RunReport, Status, join_run
from osmabench_ros.runs.timings import TIMINGS, Measurements, Participation, timings_of
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.vqa.question_files import write_records
from osmabench_ros.vqa.questions import AnswerType, Question

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ROOT / 'benchmarks' / 'published_results.yaml'
results = benchmark_script('results_page')

CONFIG = """
name: few
scenes: [{reference: apartment}]
seeds: {scene: [1, 2, 3]}
conditions: [baseline, velocity]
mappers: [{name: open3d_slam}]
suites: [{name: map_geometry}, {name: map_trajectory}]
"""
ERRORS_M = (0.1, 0.3, 0.2)


@pytest.fixture
def matrix(tmp_path):
    """Three apartments under two conditions; the last two runs failed."""
    file = tmp_path / 'few.yaml'
    file.write_text(CONFIG)
    config = load_config(str(file))
    root = tmp_path / 'out' / 'few'
    claim_folder(root)
    plans = plans_of(config, root, 'apartment', 'seed_{seed}')
    write_manifest(root, config, plans)
    plans.sort(key=lambda plan: (plan.identity.condition, plan.scene.seed))
    for order, plan in enumerate(plans):
        seed, run_id, failed = plan.scene.seed, plan.identity.run_id, order >= len(plans) - 2
        records = [
            MetricRecord('map_geometry', '', 'f_score_0.05m', '', (0.5, 0.6, 0.9)[seed - 1]),
            MetricRecord('map_trajectory', '', 'ape_translation_rmse_m', '', ERRORS_M[seed - 1]),
        ]
        report = RunReport(
            run_id=run_id,
            status=Status.FAILED if failed else Status.COMPLETE,
            error='the mapper died\nand more' if failed else '',
            metrics=() if failed else join_run(plan.identity, records),
            remarks=('track was lost',) * (order == 0),
        )
        name = 'failure.json' if failed else 'report.json'
        write_json(plan.directory / name, report.model_dump(mode='json'))
        mapping, memory = (Participation('mapper', 60, 60, 60),), {'mapper': (100 + order) << 20}
        measured = Measurements('lockstep', 60, 'mapper', 20.0, mapping, memory)
        measured = replace(measured, runs_at_once=2, final_map_s=2.0 + order)
        write_json(plan.directory / TIMINGS, timings_of(plan.identity, measured))
        drive = load_condition(plan.identity.condition).model_dump(mode='json')
        write_json(plan.directory / 'manifest.json', {
            'dataset': 'apartment', 'scene': f'seed_{seed}', 'config': {'condition': drive},
            'versions': {'numpy': '2.0', 'open3d': 'absent'}, 'host': {'cpu': 'a processor'},
        })  # fmt: skip
        os.utime(plan.directory / TIMINGS, (100.0 * order, 100.0 * order))
    return results.Matrix(file, config, tmp_path / 'out')


def row_of(text, title, method):
    table = text.partition(f'**{title}')[2].partition('**Cost')[0]
    line = next(item for item in table.splitlines() if item.startswith(f'| {method}'))
    return [item.strip() for item in line.strip('|').split('|')][1:]


def test_a_cell_is_the_mean_with_the_t_interval_over_scenes(matrix):
    text = results.page([matrix], [], '')
    mean, error = np.mean(ERRORS_M), stats.sem(ERRORS_M)
    low, high = stats.t.interval(0.95, 2, loc=mean, scale=error)
    baseline, velocity = row_of(text, 'ATE (m)', 'open3d_slam')
    assert baseline == f'{mean:.3f} [{low:.3f}, {high:.3f}]'
    assert velocity == '0.100 (1)'
    assert row_of(text, 'F-score 5 cm, %', 'open3d_slam')[0].startswith('66.7 [')
    assert 'ATE after alignment' not in text


def test_what_is_done_and_what_is_not_is_said(matrix):
    text = results.page([matrix], [], 'The machine was busy.')
    assert '4 of 6 runs are complete, 2 failed, in 3 scenes. Images of' in text
    assert '`apartment.seed_1.baseline.open3d_slam.opengl.1`: track was lost' in text
    assert '`apartment.seed_2.velocity.open3d_slam.opengl.2`: the mapper died\n' in text
    assert f'osmabench run {matrix.file} --out runs/results' in text
    assert 'The machine was busy.' in text
    assert '| open3d_slam | 4 | 3.00 | 3.5 | 103 |' in text
    assert 'CPU: a processor; ' in text
    assert '2 runs at once; numpy 2.0\n' in text


def test_a_part_that_is_not_finished_is_left_out(matrix):
    shutil.rmtree(matrix.root / 'apartment.seed_2.velocity.open3d_slam.opengl.2')
    assert 'Not run: its runs are not done.' in results.page([matrix], [], '')
    # A hundred seconds per run, one to go.
    assert matrix.expected_s() == pytest.approx(100.0)


def test_a_matrix_that_cannot_be_run_here_is_left_out(matrix, tmp_path):
    file = tmp_path / 'away.yaml'
    file.write_text(CONFIG.replace('reference: apartment', 'reference: gone/x.json'))
    away = results.Matrix(file, load_config(str(file)), tmp_path / 'away')
    assert 'Not run: gone/x.json is not here.' in results.page([away], [], '')
    new = results.Matrix(file, matrix.config, tmp_path / 'new')
    assert 'Not run: its runs are not done.' in results.page([new], [], '')


def test_runs_that_are_done_are_shown_where_they_could_not_be_run_again(matrix, monkeypatch):
    here = results.page([matrix], [], '')
    monkeypatch.setattr(results.Matrix, 'absent', property(lambda self: 'its tools are not here'))
    assert results.page([matrix], [], '') == here


def test_a_part_whose_runs_are_gone_stays_as_it_was(matrix, tmp_path):
    here = results.page([matrix], results.read_published(PAPERS), '')
    elsewhere = results.Matrix(matrix.file, matrix.config, tmp_path / 'new')
    assert results.page([elsewhere], results.read_published(PAPERS), '', here) == here
    never = results.page([elsewhere], [], '')
    assert results.page([elsewhere], [], '', never) == never


def test_a_method_that_is_not_installed_is_named(matrix, tmp_path, monkeypatch):
    file = tmp_path / 'foreign.yaml'
    offline = '{name: rtabmap, implementation: offline, options: {method: rtabmap}}'
    file.write_text(CONFIG.replace('{name: open3d_slam}', offline))
    foreign = results.Matrix(file, load_config(str(file)), tmp_path / 'new')
    monkeypatch.delenv('OSMABENCH_RTABMAP_BIN', raising=False)
    assert 'Not run: method "rtabmap" needs the variable "bin"' in results.page([foreign], [], '')
    monkeypatch.setenv('OSMABENCH_RTABMAP_BIN', '/here')
    assert 'Not run: its runs are not done.' in results.page([foreign], [], '')


def test_runs_of_another_configuration_are_refused(matrix):
    changed = matrix.config.model_copy(update={'conditions': ('baseline', 'camera')})
    other = results.Matrix(matrix.file, changed, matrix.out)
    with pytest.raises(ConfigError, match=r'few is of an earlier .*few\.yaml'):
        results.page([other], [], '')


def test_a_page_is_written_over_an_earlier_one_and_over_nothing_else(matrix, tmp_path):
    file = tmp_path / 'results.md'
    for note in ('one', 'two'):
        results.write_page(file, results.page([matrix], [], note))
        assert f'\n{note}\n' in file.read_text()
    file.write_text('# Results\n\nMy own notes.\n')
    with pytest.raises(ConfigError, match='is not a page of results'):
        results.write_page(file, 'x')
    assert 'My own notes' in file.read_text()


@pytest.mark.full
@pytest.mark.ros
@pytest.mark.gl
@pytest.mark.slow
def test_ctrl_c_ends_the_run_in_order_and_writes_no_page(tmp_path):
    (tmp_path / 'config.yaml').write_text(yaml.safe_dump(small_config()))
    script = [sys.executable, str(ROOT / 'benchmarks' / 'results_page.py')]
    with subprocess.Popen(
        [*script, 'config.yaml', '--out', 'out', '--page', 'page.md'],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:  # fmt: skip
        wait_until((tmp_path / 'out').exists)
        os.killpg(process.pid, signal.SIGINT)
        text, _ = process.communicate(timeout=200)
    assert process.returncode == 130, text
    assert 'resume' in text, text
    assert 'Traceback' not in text
    assert not (tmp_path / 'page.md').exists()


def test_every_configuration_of_the_page_can_be_read():
    files = sorted((ROOT / 'config' / 'results').glob('*.yaml'))
    assert len(files) >= 3
    for file in files:
        config = load_config(str(file))
        assert config.name == f'results_{file.stem}'
        assert len(config.conditions) == 5


@pytest.mark.parametrize(('data', 'folder'), [('ReplicaCAD', 'replica_cad'), ('HM3D', 'hm3d')])
def test_published_rows_are_those_of_the_published_files(data, folder):
    names = {'baseline': 'baseline', 'camera': 'camera_lights', 'dynamic': 'dynamic_lights',
                 'nominal': 'no_lights', 'velocity': 'velocity'}  # fmt: skip
    [table] = results.read_published(PAPERS)
    rows = {row.figure: row.values for row in table.rows if row.data == data}
    compared = 0
    for place, condition in enumerate(table.conditions):
        file = SEGMENTATION / f'conceptgraphs_{folder}_{names[condition]}.csv'
        for figure, column in (('mAcc compat', 'macc'), ('f-mIoU compat', 'fmiou')):
            value = rows[figure][place]
            assert (value is not None) == file.exists()
            if value is None:
                continue
            wanted = 'overall_mean' if folder == 'hm3d' else 'overall'
            [found] = [row for row in csv.DictReader(file.open()) if row['scene'] == wanted]
            assert 100 * float(found[column]) == pytest.approx(value, abs=0.0051)
            compared += 1
    assert compared >= 6


def test_a_published_row_has_a_value_for_each_condition(tmp_path):
    file = tmp_path / 'papers.yaml'
    file.write_text(PAPERS.read_text().replace('[29.53, 29.76,', '[29.76,'))
    with pytest.raises(ConfigError, match='mAcc compat has 4 values for 5 conditions'):
        results.read_published(file)


def test_a_part_says_of_which_set_its_questions_are(matrix):
    run = matrix.root / 'apartment.seed_1.baseline.open3d_slam.opengl.1'
    made = {'generator': 'exact/7'}
    asked = [
        Question(f'q{n}', 's', 'scene', 'c', 'Is it?', AnswerType.YES_NO, 'yes', provenance=made)
        for n in range(2)
    ]
    (run / 'vqa').mkdir()
    write_records(run / 'vqa' / 'questions.jsonl', asked)
    text = results.page([matrix], [], '')
    assert text.count('Questions: `exact/7`.') == 1
