"""A clock for watchdogs, which stands while the process that watches does not look."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST_S = 0.5


class AttentiveClock:
    """Steady seconds; from one reading to the next at most `longest_s` of them count.

    A process that was stopped (Ctrl-Z, SIGSTOP) or got no processor received nothing meanwhile,
    and must not take that for the silence of others. Read it more often than `longest_s`.
    """

    def __init__(
        self, longest_s: float = LONGEST_S, steady_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._longest_s, self._steady_s = longest_s, steady_s
        self._read_s = steady_s()
        self._now_s = 0.0

    def now_s(self) -> float:
        """Return the seconds since the clock was made in which its owner looked."""
        read_s = self._steady_s()
        self._now_s += min(read_s - self._read_s, self._longest_s)
        self._read_s = read_s
        return self._now_s
