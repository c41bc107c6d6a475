"""Worker processes: the same results, whatever else runs, fails or is cut off."""

import os
import signal

import psutil
import pytest
from support.fault_runs import COMMAND, failure, mapper_says, orphans, start, success
from support.waiting import wait_until
from support.world.runs import foreign, repeatable, run_small, small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

PATIENT = {'ack_timeout_s': 300.0}
JOBS = (*COMMAND, '--jobs', '2')


def run(out, config, jobs):
    """Run a matrix; return its report and the texts of its progress."""
    shown = []

    def progress(text, fraction):
        assert 0 <= fraction <= 1
        shown.append(text)

    return run_small(config, out, jobs=jobs, progress=progress), shown


def processes_of(runner, module):
    found = []
    for item in psutil.Process(runner.pid).children(recursive=True):
        try:
            if any(module in word for word in item.cmdline()):
                found.append(item)
        except psutil.Error:
            continue
    return found


@pytest.mark.full
def test_side_by_side_and_one_by_one_give_the_same_bytes(tmp_path):
    config = small_config(
        scenes=[{'reference': 'apartment', 'seed': seed} for seed in (3, 4)],
        mappers=[foreign('die'), {'name': 'oracle'}],
    )
    one, _ = run(tmp_path / 'one', config, 1)
    two, shown = run(tmp_path / 'two', config, 2)
    states = ['failed', 'complete', 'failed', 'complete']
    for report in (one, two):
        assert [item.status.value for item in report.runs] == states, report
    assert [item.run_id for item in two.runs] == [item.run_id for item in one.runs]
    together = [text for text in shown if text.count('\n') == 1]
    assert any('[1/4]' in text and 'map' in text for text in together)
    # Shared files of a scene are made once, in a separate step.
    steps = {line.split(':')[0] for text in shown for line in text.splitlines()}
    assert {step for step in steps if step.startswith('[scene]')} == {
        '[scene] apartment.seed_3.3', '[scene] apartment.seed_4.4',
    }  # fmt: skip
    expected, found = complete_runs(tmp_path / 'one'), complete_runs(tmp_path / 'two')
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []
    assert any(name.endswith('map/map.json') for name in found)


def complete_runs(out):
    """Return the files of the successful runs, and their shared files."""
    files = repeatable(out / 'small')
    return {name: data for name, data in files.items() if '/' in name and 'die' not in name}


@pytest.mark.full
def test_realtime_runs_are_alone_and_the_report_says_so(tmp_path):
    unpaced = {**foreign('none', acks=False), 'name': 'unpaced'}
    config = small_config(
        conditions=['baseline', 'nominal'],
        mappers=[unpaced, {'name': 'oracle'}],
        pacing={'speed_factor': 2.0},
    )
    report, shown = run(tmp_path, config, 2)
    assert [item.status.value for item in report.runs] == ['complete'] * 4, report
    assert any('\n' in text for text in shown)
    assert not any('unpaced' in text and '\n' in text for text in shown)
    page = (tmp_path / 'small' / 'report.html').read_text()
    assert '2 realtime runs were measured with no other run of this matrix' in page


@pytest.mark.full
def test_ctrl_c_ends_all_and_the_rest_is_run_the_next_time(tmp_path):
    config = small_config(mappers=[{'name': 'oracle'}, foreign('on_order')], pacing=PATIENT)
    runner = start(tmp_path, config, command=JOBS, TEST_ORDER='hang')
    wait_until(lambda: mapper_says(tmp_path, 'foreign_on_order', 'hanging'))
    report = tmp_path / 'runs/small/apartment.seed_3.baseline.oracle.opengl.3/report.json'
    wait_until(report.exists)
    ours = [item.pid for item in processes_of(runner, 'osmabench_ros.')]
    # The worker that hangs and three nodes of ours; the other worker may have ended.
    assert len(ours) >= 4
    runner.send_signal(signal.SIGINT)
    failure(tmp_path, runner, code=130)
    wait_until(lambda: not any(map(psutil.pid_exists, ours)), 60.0)
    before = report.stat().st_mtime_ns
    success(start(tmp_path, config, command=JOBS))
    assert report.stat().st_mtime_ns == before


@pytest.mark.full
def test_a_killed_runner_leaves_no_process_of_any_job(tmp_path):
    conditions, mappers = ['baseline', 'nominal'], [foreign('on_order')]
    config = small_config(conditions=conditions, mappers=mappers, pacing=PATIENT)
    runner = start(tmp_path, config, command=JOBS, TEST_ORDER='hang')
    wait_until(lambda: mapper_says(tmp_path, 'foreign_on_order', 'hanging'))
    ours = [item.pid for item in processes_of(runner, '')]
    os.kill(runner.pid, signal.SIGKILL)
    runner.communicate(timeout=180)
    wait_until(lambda: not any(map(psutil.pid_exists, ours)), 60.0)
    assert orphans(tmp_path) == []


@pytest.mark.full
def test_a_worker_that_is_killed_fails_its_run_alone(tmp_path):
    mappers = [foreign('on_order'), {'name': 'oracle'}, {'name': 'appearance'}]
    config = small_config(mappers=mappers, pacing=PATIENT)
    runner = start(tmp_path, config, command=JOBS, TEST_ORDER='hang')
    wait_until(lambda: mapper_says(tmp_path, 'foreign_on_order', 'hanging'))
    (worker,) = (
        item
        for item in processes_of(runner, 'runner.workers')
        if any('foreign_mapper' in word for child in item.children() for word in child.cmdline())
    )
    worker.kill()
    text = failure(tmp_path, runner, code=1, tidy=False)
    assert '1 of 3 runs did not complete' in text
    assert 'foreign_on_order' in text
    assert 'was killed by SIGKILL' in text
