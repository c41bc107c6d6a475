"""Ctrl-C and SIGTERM that wait until something has happened as a whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_held() -> Iterator[None]:
    """Handle SIGINT and SIGTERM after the block: what it starts is then known to who ends it.

    Python handles signals in the main thread alone; in another one there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    previous = {number: signal.getsignal(number) for number in ENDING}
    ours = [number for number, handler in previous.items() if callable(handler)]
    for number in ours:
        signal.signal(number, lambda number, _frame: arrived.append(number))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, previous[number])
        if arrived:
            signal.raise_signal(arrived[0])
