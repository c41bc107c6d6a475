"""Child processes, and signals that wait."""

import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from osmabench_ros.base.processes import ENDING, SupervisedProcess, signals_held


class Struck(BaseException):
    pass


@pytest.fixture
def _struck_by_signals() -> object:
    def strike(number: int, _frame: object) -> None:
        raise Struck(number)

    previous = {number: signal.signal(number, strike) for number in ENDING}
    yield
    for number, handler in previous.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures('_struck_by_signals')
@pytest.mark.parametrize('number', ENDING)
def test_a_signal_is_handled_after_the_block_and_later_ones_at_once(number: int) -> None:
    done = []

    def work() -> None:
        with signals_held():
            signal.raise_signal(number)
            done.append('the rest of the block')

    with pytest.raises(Struck):
        work()
    assert done
    with pytest.raises(Struck):
        signal.raise_signal(number)


def test_another_thread_has_nothing_to_hold() -> None:
    done = []

    def work() -> None:
        with signals_held():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


@pytest.mark.parametrize(('free', 'told'), [(0, True), (2**30, False)])
def test_a_process_whose_log_is_on_a_full_disk_ended_for_that(
    free: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, 'disk_usage', lambda folder: SimpleNamespace(free=free))
    command = [sys.executable, '-c', 'raise SystemExit(1)']
    process = SupervisedProcess('worker', command, tmp_path / 'worker.log', os.environ)
    process.wait(20.0)
    assert process.reason().startswith('ended with code 1; end of ')
    assert (f'No space left on device: {tmp_path}' in process.reason()) is told
    process.stop()


def test_a_process_that_made_room_as_it_ended_is_told_to_have_had_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [0]
    monkeypatch.setattr(shutil, 'disk_usage', lambda folder: SimpleNamespace(free=free[0]))
    command = [sys.executable, '-c', 'import time; time.sleep(60)']
    process = SupervisedProcess('worker', command, tmp_path / 'worker.log', os.environ)
    assert process.poll() is None
    free[0] = 2**30
    process.stop()
    assert f'No space left on device: {tmp_path}' in process.reason()
