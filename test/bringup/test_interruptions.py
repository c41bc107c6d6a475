"""Ctrl-C and kills at every stage of a run, over real processes; then the run goes on."""

import os
import re
import signal
import sys

import pytest
from support.fault_runs import (
    failure,
    half_written,
    mapper_says,
    orphans,
    run_directory,
    start,
    success,
)
from support.waiting import read_until, wait_until
from support.world.runs import FOREIGN_MAPPER, foreign, repeatable, small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

MAPPER = 'foreign_on_order'
AS_A_SCRIPT = ['sh', '-c', '"$@"; true', 'mapper', sys.executable, str(FOREIGN_MAPPER), 'hang']


def interruptible():
    return small_config(mappers=[foreign('on_order')], pacing={'ack_timeout_s': 300.0})


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory):
    """Return the files of a run without an interruption."""
    folder = tmp_path_factory.mktemp('uninterrupted')
    assert ': complete' in success(start(folder, interruptible()))
    return repeatable(folder / 'runs' / 'small')


@pytest.mark.full
def test_ctrl_c_at_every_stage_loses_nothing(tmp_path, uninterrupted):
    root, run = tmp_path / 'runs' / 'small', run_directory(tmp_path, MAPPER)

    def interrupt(number, at, tidy=True, **order):
        process = start(tmp_path, interruptible(), **order)
        if isinstance(at, str):
            read_until(process, at)
        else:
            wait_until(at)
        process.send_signal(number)
        failure(tmp_path, process, code=128 + number, tidy=tidy)

    interrupt(signal.SIGINT, 'the path sees')
    assert not list((root / 'shared').glob('apartment*'))
    interrupt(signal.SIGTERM, (run / 'logs' / 'simulator_bridge.log').exists)
    assert list((root / 'shared').glob('apartment*')), 'what was prepared is kept'
    interrupt(signal.SIGINT, lambda: mapper_says(tmp_path, MAPPER, 'hanging'), TEST_ORDER='hang')
    assert not (run / 'map').exists()
    # The evaluator is held back, or it might be done before the signal comes.
    held = {'TEST_ORDER': 'stop_evaluator'}
    interrupt(signal.SIGTERM, (run / 'map').exists, tidy=False, **held)
    assert not (run / 'report.json').exists()
    interrupt(signal.SIGINT, 'evaluate')
    assert (run / 'map').exists(), 'what was recorded is kept'
    assert not (run / 'report.json').exists()
    interrupt(signal.SIGINT, 'writing the report')
    assert not (root / 'report.html').exists()
    success(start(tmp_path, interruptible()))
    assert repeatable(root) == uninterrupted
    assert half_written(tmp_path) == []


@pytest.mark.full
def test_after_a_killed_evaluator_the_map_is_scored_as_if_nothing_had_been(
    tmp_path, uninterrupted, prepared
):
    prepared.put_into(tmp_path / 'runs', interruptible())
    order = {'TEST_ORDER': 'kill_evaluator'}
    text = failure(tmp_path, start(tmp_path, interruptible(), **order), code=1)
    assert re.search('node "evaluator" [a-z ]*: was killed by SIGKILL', text)
    success(start(tmp_path, interruptible()))
    assert repeatable(tmp_path / 'runs' / 'small') == uninterrupted


@pytest.mark.full
def test_a_preparation_that_was_killed_is_done_again(tmp_path, uninterrupted):
    root = tmp_path / 'runs' / 'small'
    process = start(tmp_path, interruptible())
    wait_until(lambda: any(path.parent == root / 'shared' for path in half_written(tmp_path)))
    process.kill()
    process.communicate(timeout=180)
    assert (root / 'manifest.json').exists()
    assert not (root / 'shared' / 'apartment.seed_3.3').exists()
    assert half_written(tmp_path) != []
    success(start(tmp_path, interruptible()))
    assert repeatable(root) == uninterrupted
    assert half_written(tmp_path) == []


def test_a_killed_runner_leaves_no_orphan_and_only_one_works_in_a_folder(prepared, tmp_path):
    command = [*AS_A_SCRIPT, str(tmp_path)]  # by which the orphan would be found
    config = small_config(
        mappers=[{'name': 'script', 'command': command}], pacing={'ack_timeout_s': 300.0}
    )
    prepared.put_into(tmp_path / 'runs', config)
    first = start(tmp_path, config)
    wait_until(lambda: mapper_says(tmp_path, 'script', 'hanging'))
    second = start(tmp_path, config)
    text, _ = second.communicate(timeout=180)
    assert second.returncode == 1
    assert f'{tmp_path}/runs/small is in use by another osmabench' in text.replace('\n', '')
    assert first.poll() is None
    assert any(str(FOREIGN_MAPPER) in line for line in orphans(tmp_path))
    os.kill(first.pid, signal.SIGKILL)
    first.communicate(timeout=180)
    # The mapper is not a child of the runner, but of the script that the runner has started.
    wait_until(lambda: orphans(tmp_path) == [], 10.0)


@pytest.mark.full
def test_a_run_survives_that_its_processes_are_stopped_and_the_clock_is_set_back(
    tmp_path, uninterrupted, fault_library, prepared
):
    prepared.put_into(tmp_path / 'runs', interruptible())
    clock = tmp_path / 'clock'
    clock.write_text('0')
    order = {'TEST_ORDER': 'upset', 'LD_PRELOAD': fault_library, 'FAULTS_CLOCK': str(clock)}
    success(start(tmp_path, interruptible(), **order))
    assert mapper_says(tmp_path, MAPPER, 'upset 3 nodes')
    assert clock.read_text() == '-3600'
    # And once more, an hour before its own results.
    success(start(tmp_path, interruptible(), **order))
    assert repeatable(tmp_path / 'runs' / 'small') == uninterrupted
