"""Time and loss, on the page and on the terminal."""

import json
import re

import pytest
from reports.test_matrix import printed

from osmabench_ros.errors import RunError
from osmabench_ros.reports.pacing import PacingView, read_timed_runs
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status


def section(html):
    return html[html.index('<section id="time"') :].split('</section>')[0]


def test_realtime_runs_tell_every_node_and_lockstep_runs_that_nothing_is_lost(html):
    text = re.sub(r'\s+', ' ', re.sub(r'<[^>]+>', ' ', section(html).split('<figure')[0]))
    assert 'No frame is lost in lockstep: 24 frames in 2 runs' in text
    assert 'mapper 12 9 8 3 25.0 12.3 45.6 78.9 250.0 10.0' in text
    assert 'map_recorder 12 12 12 0 0.0 1.0 2.0 3.0 4.0 \N{EN DASH}' in text
    text = re.sub(r'\s+', ' ', re.sub(r'<[^>]+>', ' ', section(html)))
    assert '1.99 3 4.25 11.00 0.50' in text
    assert 'data-chart="latency"' in section(html)
    assert '<a href="#time">' in html


def test_the_terminal_tells_the_same(matrix):
    text = re.sub(r' +', ' ', printed(matrix.report, matrix.root))
    assert ' mapper 12 9 8 3 25.0 12.3 45.6 78.9 250.0 10.0' in text
    assert 'map staleness 4.2 s' in text
    assert 'no frame is lost in lockstep: 24 frames in 2 runs' in text


def test_a_run_without_records_has_a_row(tmp_path):
    run = RunReport(run_id='a.b.c', status=Status.COMPLETE)
    text = printed(MatrixReport(name='n', passed=True, runs=(run,)), tmp_path)
    assert 'a.b.c' in text


def test_a_broken_file_is_named(matrix, tmp_path):
    run = RunReport(run_id='r', status=Status.COMPLETE)
    (tmp_path / 'r').mkdir()
    (tmp_path / 'r' / 'timings.json').write_text('[]')
    with pytest.raises(RunError, match=r'r/timings\.json is malformed'):
        printed(MatrixReport(name='n', passed=True, runs=(run,)), tmp_path)


def test_which_realtime_runs_were_measured_alone_is_told(matrix, runs):
    realtime = [
        file
        for file in (plan.directory / 'timings.json' for plan in matrix.plans)
        if file.exists() and json.loads(file.read_text())['pacing'] == 'realtime'
    ]
    assert len(realtime) == 2
    assert PacingView(read_timed_runs(runs)).company == [(0, 2)]
    text = realtime[0].read_text()
    realtime[0].write_text(json.dumps({**json.loads(text), 'runs_at_once': 4}))
    view = PacingView(read_timed_runs(runs))
    realtime[0].write_text(text)  # others read the matrix too
    assert view.company == [(0, 1), (3, 1)]
