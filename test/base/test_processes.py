"""Signals that wait."""

import signal
import threading

import pytest

from osmabench_ros.base.processes import ENDING, signals_held


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
