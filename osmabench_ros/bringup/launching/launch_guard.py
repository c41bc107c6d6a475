"""Ends the processes of a `ros2 launch` that was killed; their numbers come on its input."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable

import psutil

from osmabench_ros.base.processes import end_processes

GRACE_S = 30.0
"""A recorder may have a map or a bag to finish."""


def left_behind(numbers: Iterable[str]) -> list[psutil.Process]:
    """Read process ids until the input ends; return those that still run, with their children."""
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
