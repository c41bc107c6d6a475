"""Ends the processes of a `ros2 launch` that was killed and cannot do it itself.

Runs as a process of its own beside launch. Its input has the numbers of processes as they start,
and closes for whatever reason launch ends.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterable, Sequence

import psutil

GRACE_S = 30.0
"""A recorder may have a map or a bag to finish."""


def end_processes(processes: Sequence[psutil.Process], grace_s: float) -> None:
    """Ask processes to end, and kill those that do not within some seconds."""
    alive = list(processes)
    for number in (signal.SIGINT, signal.SIGKILL):
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
        _, alive = psutil.wait_procs(alive, timeout=grace_s)


def left_behind(numbers: Iterable[str]) -> list[psutil.Process]:
    """Read on until the input ends; return the processes that still run, with their children."""
    started = []
    for number in numbers:
        with contextlib.suppress(psutil.NoSuchProcess):
            started.append(psutil.Process(int(number)))
    found = []
    # A number that has gone to somebody else meanwhile is no longer the process that started.
    for process in filter(psutil.Process.is_running, started):
        with contextlib.suppress(psutil.Error):
            found += [process, *process.children(recursive=True)]
    return found


if __name__ == '__main__':
    end_processes(left_behind(sys.stdin), GRACE_S)
