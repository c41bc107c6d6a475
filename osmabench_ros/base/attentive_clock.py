"""A clock for watchdogs that stops while the watching process itself is suspended or busy."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST_S = 0.5


class AttentiveClock:
    """Steady seconds, of which at most `longest_s` count from one reading to the next.

    A process that was stopped received nothing meanwhile: that is not others' silence.
    """

    def __init__(
        self, longest_s: float = LONGEST_S, steady_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._longest_s, self._steady_s = longest_s, steady_s
        self._read_s = steady_s()
        self._now_s = 0.0

    def now_s(self) -> float:
        """Return the seconds counted since the clock was made."""
        read_s = self._steady_s()
        self._now_s += min(read_s - self._read_s, self._longest_s)
        self._read_s = read_s
        return self._now_s
