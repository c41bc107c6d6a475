"""Child processes, and signals that wait."""

import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from osmabench_ros.base.processes import ENDING, AttentiveClock, SupervisedProcess, signals_held


class Struck(BaseException):
    pass


@pytest.fixture
def _struck_by_signals():
    def strike(number, _frame):
        raise Struck(number)

    previous = {number: signal.signal(number, strike) for number in ENDING}
    yield
    for number, handler in previous.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures('_struck_by_signals')
@pytest.mark.parametrize('number', ENDING)
def test_a_signal_is_handled_after_the_block_and_later_ones_at_once(number):
    done = []

    def work():
        with signals_held():
            signal.raise_signal(number)
            done.append('the rest of the block')

    with pytest.raises(Struck):
        work()
    assert done
    with pytest.raises(Struck):
        signal.raise_signal(number)


def test_another_thread_has_nothing_to_hold():
    def work():
        with signals_held():
            return 'done'

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == 'done'


@pytest.mark.parametrize(('free', 'told'), [(0, True), (2**30, False)])
def test_a_process_whose_log_is_on_a_full_disk_ended_for_that(free, told, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, 'disk_usage', lambda folder: SimpleNamespace(free=free))
    command = [sys.executable, '-c', 'raise SystemExit(1)']
    process = SupervisedProcess('worker', command, tmp_path / 'worker.log', os.environ)
    process.wait(20.0)
    assert process.reason().startswith('ended with code 1; end of ')
    assert (f'No space left on device: {tmp_path}' in process.reason()) is told
    process.stop()


def test_time_between_distant_readings_counts_little():
    steady = iter([100.0, 100.25, 100.5, 4100.0, 4100.25])
    clock = AttentiveClock(lambda: next(steady))
    assert [clock.now_s() for _ in range(4)] == [0.25, 0.5, 1.0, 1.25]
