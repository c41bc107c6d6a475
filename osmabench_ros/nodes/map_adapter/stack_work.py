"""Whether the processes of a stack are busy or idle, by their processor time."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator

import psutil

BUSY_SHARE = 0.2
"""Of a core. A node that waits for messages takes a few hundredths."""
SAMPLE_EVERY_S = 1.0
_OWN_NODE = re.compile(r'osmabench_ros(\.nodes\.\w+\.node|/\w+_node)$')


class StackWork:
    """Looks at what the same runner or launch started beside this process on this machine."""

    def __init__(self) -> None:
        self._spent_s: dict[psutil.Process, float] = {}
        self._ready: set[psutil.Process] = set()
        self._sampled_s = -math.inf
        self._busy = False

    def busy(self, now_s: float) -> bool:
        """Return whether a process was busy between the last two samples; called periodically.

        On a busy machine one gets little time; it is busy if it waited for some at both samples.
        """
        elapsed_s = now_s - self._sampled_s
        if elapsed_s >= SAMPLE_EVERY_S:
            before, self._spent_s = self._spent_s, dict(_times())
            waiting, self._ready = self._ready, {item for item in self._spent_s if _is_ready(item)}
            self._sampled_s = now_s
            self._busy = bool(waiting & self._ready) or any(
                spent_s - before.get(process, 0.0) > BUSY_SHARE * elapsed_s
                for process, spent_s in self._spent_s.items()
            )
        return self._busy


def _is_ready(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.status() == psutil.STATUS_RUNNING)
    return False


def _times() -> Iterator[tuple[psutil.Process, float]]:
    """Yield the processes of the stack with the processor time that each has taken."""
    with contextlib.suppress(psutil.Error):
        for beside in psutil.Process(os.getppid()).children():
            with contextlib.suppress(psutil.Error):
                if any(map(_OWN_NODE.search, beside.cmdline())):
                    continue
                for process in (beside, *beside.children(recursive=True)):
                    times = process.cpu_times()
                    yield process, times.user + times.system
