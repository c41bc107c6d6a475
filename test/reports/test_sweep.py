"""The report of a sweep: page, chart, table, file of comma-separated values."""

import csv
import io
import re

import pytest
import vl_convert
from rich.console import Console

from osmabench_ros.base.files import read_json
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.page.over_time import draw_sweep_chart
from osmabench_ros.reports.sweep import print_sweep, select_shown_headlines, write_sweep_report
from osmabench_ros.reports.vega import use_light_colors
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.report_model import join_run
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries

HOSTILE = '<b id="injected">'


def point(speed, loss, quality=0.5, **parts):
    identity = RunIdentity(SceneKey('d', 's', 0), 'c', 'm', 'opengl', speed)
    record = MetricRecord('osma_segmentation', 'strict', 'fmiou', '', quality, 0.3, 0.75, 9)
    given = {
        'frames': 100,
        'dropped': None if loss is None else round(100 * loss),
        'reached_speed_factor': speed,
        'latency_p95_s': 0.25,
        'metrics': join_run(identity, [record]),
        **parts,
    }
    return SweepPoint(run_id=identity.run_id, speed_factor=speed, loss=loss, **given)


def series(name, *points, scene='s'):
    return SweepSeries(
        dataset='d', scene=scene, seed=0, condition='c', mapper=name, max_loss=0.05, points=points
    )


def sweep_of(*found):
    return SweepReport(name='demo', max_loss=0.05, series=found)


@pytest.fixture(scope='module')
def report():
    points = (
        point(1, 0.0, 0.625),
        point(2, 0.25),
        point(4, None, error=f'died {HOSTILE}', metrics=()),
        point(8, 0.0, reached_speed_factor=5.0),
    )
    return sweep_of(series('m', *points), series('n', point(1, 0.5)))


@pytest.fixture(scope='module')
def root(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp('sweep')
    write_sweep_report(report, folder)
    return folder


def test_the_page_has_verdict_chart_and_every_run(root):
    html = (root / 'report.html').read_text()
    text = re.sub(r'\s+', ' ', re.sub(r'<[^>]+>', ' ', html))
    assert 'fastest speed with at most 5 % loss: 1 (2: 25.0 % loss)' in text
    assert 'no speed with at most 5 % loss found; at 1: 50.0 % loss' in text
    assert '200 frames or more would decide' in text
    assert '62.5 [30.0, 75.0]' in text
    assert 'not reached' in text
    assert 'id="injected"' not in html
    assert html.count('data-chart=') == 1
    assert not re.search(r'(?:src|href)="http', html)


def test_each_run_has_a_point_in_the_colour_of_its_method(report):
    chart = use_light_colors(draw_sweep_chart(report, select_shown_headlines(report)) or {})
    points = re.findall(
        r'<g class="mark-symbol role-mark child_layer_3_marks".*?</g>',
        vl_convert.vegalite_to_svg(chart),
        re.DOTALL,
    )
    assert len(points) == 2
    for panel in points:
        assert len(re.findall(r'<path [^>]*fill="#[0-9a-f]{6}"', panel)) == 4


def test_the_same_is_in_the_files(root, report):
    assert SweepReport.model_validate(read_json(root / 'report.json')) == report
    rows = list(csv.DictReader(io.StringIO((root / 'report.csv').read_text())))
    assert [(row['mapper'], row['speed_factor'], row['loss']) for row in rows] == [
        ('m', '1.0', '0.0'),
        ('m', '2.0', '0.25'),
        ('m', '4.0', ''),
        ('m', '8.0', '0.0'),
        ('n', '1.0', '0.5'),
    ]
    assert rows[0]['osma_segmentation.strict.fmiou'] == '0.625'


def printed(report, root):
    console = Console(width=200, record=True, file=io.StringIO())
    print_sweep(report, root, console)
    return console.export_text()


def test_the_terminal_shows_the_edge(report, tmp_path):
    text = printed(report, tmp_path)
    lines = [re.sub(r' +', ' ', line).strip() for line in text.splitlines()]
    assert '1 100 0 0.0 250 62.5 fastest' in lines
    assert '2 100 25 25.0 250 50.0 loses too many' in lines
    assert '8 100 0 0.0 250 50.0 not reached' in lines
    assert any(line.startswith('fastest speed with at most 5 % loss: 1') for line in lines)


def test_brackets_in_names_and_errors_are_printed_as_they_are(tmp_path):
    error = 'open3d is missing; pip install osmabench_ros[metrics] [/]'
    failed = SweepPoint(run_id='r', speed_factor=1.0, error=error)
    text = printed(sweep_of(series('[red]m', failed, scene='room[1]')), tmp_path / '[bold]')
    for words in ('room[1]', '[red]m', error, '[bold]'):
        assert words in text


def test_nothing_is_drawn_where_every_run_failed(tmp_path):
    failed = series('m', point(1, None, error='why', metrics=()))
    write_sweep_report(sweep_of(failed), tmp_path)
    html = (tmp_path / 'report.html').read_text()
    assert '<script' not in html
    assert 'data-chart' not in html
    assert 'failed: why' in html
