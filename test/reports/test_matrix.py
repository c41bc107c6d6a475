import csv
import io
import json
import shutil
from dataclasses import replace

import pytest
from rich.console import Console
from support.world.matrix import config

from osmabench_ros.base.files import claim_folder, write_json
from osmabench_ros.metrics.record import COLUMNS
from osmabench_ros.reports.cells import write_csv_text
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.reports.terminal import print_report
from osmabench_ros.runs.config import Requirement
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status
from osmabench_ros.runs.run_manifest import PAGES


def test_json_csv_and_page_lie_side_by_side(written, matrix):
    data = json.loads((matrix.root / 'report.json').read_text())
    assert MatrixReport.model_validate(data) == written
    assert (matrix.root / 'report.csv').read_text().count('\n') == len(written.metrics) + 1
    assert '<h1>boxes</h1>' in (matrix.root / 'report.html').read_text()


def test_it_fails_with_a_failed_run_and_with_an_unmet_requirement(matrix, tmp_path):
    claim_folder(tmp_path)

    def passed(runs, **changes):
        settings = config().model_copy(update=changes)
        return write_matrix_report(settings, [], runs, tmp_path).passed

    complete = [run for run in matrix.report.runs if run.status is Status.COMPLETE][:1]
    held = config().requirements[:1]
    assert passed(complete, requirements=held)
    assert not passed(complete)
    assert not passed(matrix.report.runs, requirements=held)


@pytest.mark.full
def test_thresholds_of_time_are_held_against_the_timings_of_the_runs(matrix, tmp_path):
    claim_folder(tmp_path)
    complete = [run for run in matrix.report.runs if run.status is Status.COMPLETE][:1]
    identity = next(
        plan.identity for plan in matrix.plans if plan.identity.run_id == complete[0].run_id
    )

    def failures(metric, **bounds):
        required = Requirement(suite='timing', metric=metric, mapper=identity.mapper, **bounds)
        settings = config().model_copy(update={'requirements': (required,)})
        return write_matrix_report(settings, matrix.plans, complete, tmp_path).failed_requirements

    assert failures('mapping_frames_per_second', at_least=0.001) == ()
    [sentence] = failures('mapping_frames_per_second', at_least=1e9)
    assert identity.run_id in sentence
    assert failures('no_such', at_least=0) == (
        f'timing no_such >= 0 mapper {identity.mapper}: no such metric was computed',
    )


@pytest.mark.full
def test_warnings_of_runs_are_on_the_page_and_in_the_terminal(matrix, tmp_path):
    root = shutil.copytree(matrix.root, tmp_path / 'matrix')
    plans = [replace(plan, root=root) for plan in matrix.plans]
    reported = 'condition "dynamic" changes nothing on scene <a>[b]'
    write_json(plans[0].directory / 'manifest.json', {'warnings': [reported]})
    report = write_matrix_report(config(), plans, matrix.report.runs, root)
    write_json(plans[0].shared_directory / 'coverage.json', {'share': 0.34})
    report = write_matrix_report(config(), plans, matrix.report.runs, root)
    found = json.loads((root / 'report.json').read_text())['warnings']
    assert found[0] == reported
    [path] = [text for text in found if 'the path sees only 34%' in text]
    [few] = [text for text in found if 'exact_questions asks only 5 questions' in text]
    for text in (path, few):
        assert f'{text}</p>' in (root / 'report.html').read_text()
    assert 'changes nothing on scene &lt;a&gt;[b]</p>' in (root / 'report.html').read_text()
    shown = printed(report, root, width=80)
    for text in (reported, path, few):
        assert f'warning: {text}' in shown


def test_the_terminal_shows_every_run(written, matrix):
    text = printed(written, matrix.root)
    assert text.split('realtime run')[0].count('noisy_oracle') == 2
    assert text.count('failed') >= 3
    assert str(matrix.root / 'report.html') in text


@pytest.mark.full
def test_maps_are_compared_over_the_questions_that_all_of_them_can_serve(
    matrix, tmp_path, monkeypatch
):
    root = shutil.copytree(matrix.root, tmp_path / 'matrix')
    plans = [replace(plan, root=root) for plan in matrix.plans]

    def unable(record):
        lost = (record.metric, record.class_name) == ('accuracy', 'Measurement')
        return replace(record, value=None) if lost else record

    # As if the flawed maps had nothing to count.
    runs = [
        run.model_copy(update={'metrics': tuple(map(unable, run.metrics))})
        if 'noisy' in run.run_id
        else run
        for run in matrix.report.runs
    ]
    whole = write_matrix_report(config(), plans, runs, root)
    common = [item for item in whole.metrics if item.metric == 'accuracy_of_common']
    assert [item.run_id for item in common] == [r.run_id for r in runs if r.metrics]
    for item in common:
        parts = [
            record
            for record in whole.metrics
            if (record.run_id, record.metric) == (item.run_id, 'accuracy')
            and record.class_name not in ('', 'Measurement')
        ]
        right = sum(record.value * record.n for record in parts)
        assert item.n == sum(record.n for record in parts) == 4
        assert abs(item.value - right / item.n) < 1e-12
    for text in ((root / 'report.html').read_text(), printed(whole, root)):
        assert 'VQA common' in text
        assert 'of the questions, due to noisy' in text
    monkeypatch.setattr('osmabench_ros.reports.matrix.MOST_ON_ONE_PAGE', 1)
    large = write_matrix_report(config(), plans, runs, root)
    assert [r for r in large.metrics if r.metric == 'accuracy_of_common'] == common
    assert 'VQA common' in (root / 'report.html').read_text()
    assert 'VQA common' in (root / PAGES / '00001.html').read_text()


def test_where_all_maps_can_serve_the_same_questions_there_is_one_figure(written, matrix, html):
    assert not any(item.metric == 'accuracy_of_common' for item in written.metrics)
    assert any(item.metric == 'accuracy_macro' for item in written.metrics)
    for text in (html, printed(written, matrix.root)):
        assert 'VQA common' not in text
        assert 'VQA macro' in text


def printed(report, root, width=200, **options):
    console = Console(file=io.StringIO(), width=width)
    print_report(report, root, console, **options)
    return console.file.getvalue()


def read(report):
    text = write_csv_text(COLUMNS, map(vars, report.metrics))
    return list(csv.DictReader(io.StringIO(text, newline='')))


def test_every_record_is_a_row_with_the_columns_of_the_json(matrix):
    rows = read(matrix.report)
    assert len(rows) == len(matrix.report.metrics) > 50
    assert list(rows[0]) == list(COLUMNS)
    for row, record in zip(rows, matrix.report.metrics, strict=True):
        assert row['value'] == ('' if record.value is None else repr(record.value))
        assert row['applicable'] == str(record.applicable).lower()
        assert row['mode'] == (record.mode or '')


def test_spreadsheets_find_no_formulas(matrix):
    run = matrix.report.runs[0]
    record = replace(run.metrics[0], class_name='=cmd()', value=-0.5)
    report = MatrixReport(
        name='x', passed=True, runs=(RunReport(run_id='r', status=run.status, metrics=(record,)),)
    )
    (row,) = read(report)
    assert (row['class_name'], row['value']) == ("'=cmd()", '-0.5')
