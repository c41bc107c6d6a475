"""Whether the processes of a stack work or wait, as the operating system counts it."""

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
_OWN_NODE = re.compile(r'osmabench_ros(\.nodes\.|/)\w+_node$')


class StackWork:
    """Looks at what was started beside this process, by the same runner or launch.

    What is on other machines, or was started otherwise, is not seen.
    """

    def __init__(self) -> None:
        self._spent_s: dict[psutil.Process, float] = {}
        self._sampled_s = -math.inf
        self._busy = False

    def busy(self, now_s: float) -> bool:
        """Return whether a process worked between the last two samples; asked again and again."""
        elapsed_s = now_s - self._sampled_s
        if elapsed_s >= SAMPLE_EVERY_S:
            before, self._spent_s = self._spent_s, dict(_times())
            self._sampled_s = now_s
            self._busy = any(
                spent_s - before.get(process, 0.0) > BUSY_SHARE * elapsed_s
                for process, spent_s in self._spent_s.items()
            )
        return self._busy


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
