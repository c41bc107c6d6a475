"""Frames received by topic, for acknowledgements and an exact count of losses."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SETTLE_S = 5.0
"""For the first frame to arrive on all topics that carry anything; it is sent again after 3 s."""
MAX_PENDING = 1000


@dataclass(frozen=True)
class FrameLosses:
    """Frames missing on each topic, of those `expected` by run_state or seen on any topic."""

    expected: int
    source: str
    missed: dict[str, int]

    @property
    def total(self) -> int:
        """Number of missing messages on all topics."""
        return sum(self.missed.values())


class FrameLedger:
    """Stamps of topics with one message per frame; `repeat_topic` shows repeated frames."""

    def __init__(self, repeat_topic: str) -> None:
        self._repeat_topic = repeat_topic
        self._stamps: dict[str, array[int]] = {}
        self._expected: frozenset[str] | None = None
        self._candidates: frozenset[str] = frozenset()
        self._first_s = 0.0
        self._pending: dict[int, set[str]] = {}
        self._acknowledged_ns: int | None = None
        self._first_state: tuple[int, int] | None = None
        self._last_published = 0

    def expect(self, topics: Collection[str]) -> None:
        """Set the topics that have a publisher; those of the first frame carry all frames."""
        if self._expected is None:
            self._candidates = frozenset(topics)

    def receive(self, topic: str, stamp_ns: int, now_s: float) -> bool:
        """Note a message; True if its frame is complete, or repeated: acknowledge it then."""
        stamps = self._stamps.setdefault(topic, array('q'))
        if stamps and stamps[-1] == stamp_ns:
            return topic == self._repeat_topic and stamp_ns == self._acknowledged_ns
        stamps.append(stamp_ns)
        if not self._pending and self._expected is None:
            self._first_s = now_s
        self._pending.setdefault(stamp_ns, set()).add(topic)
        while len(self._pending) > MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        return self._is_complete(stamp_ns)

    def settle(self, now_s: float) -> list[int]:
        """Stop waiting for silent topics; return stamps to acknowledge."""
        waited = self._pending and now_s - self._first_s > SETTLE_S
        if self._expected is not None or not waited:
            return []
        self._expected = frozenset(self._pending[min(self._pending)])
        return [stamp_ns for stamp_ns in sorted(self._pending) if self._is_complete(stamp_ns)]

    def run_state(self, frames_published: int, stamp_ns: int) -> None:
        """Take the number of published frames by the run, and the newest stamp."""
        if self._first_state is None:
            self._first_state = (frames_published, stamp_ns)
        self._last_published = frames_published

    def losses(self) -> FrameLosses:
        """Compare received with published frames."""
        heard = {topic: _after(stamps, self._start_ns()) for topic, stamps in self._stamps.items()}
        known = np.unique(np.concatenate([*heard.values(), np.empty(0, np.int64)]))
        expected, source = len(known), 'stamps'
        if self._first_state is not None:
            published = self._last_published - self._first_state[0]
            # The last frame is out before it is counted.
            if published >= expected - 1:
                expected, source = max(published, expected), 'run_state'
        return FrameLosses(
            expected, source, {topic: expected - len(stamps) for topic, stamps in heard.items()}
        )

    def _start_ns(self) -> int:
        """Return the stamp after which frames count: that of the run when the recorder joined."""
        published, stamp_ns = self._first_state or (0, 0)
        return stamp_ns if published else -(2**62)

    def _is_complete(self, stamp_ns: int) -> bool:
        topics = self._pending[stamp_ns]
        if self._expected is None:
            if not self._candidates or not self._candidates <= topics:
                return False
            self._expected = frozenset(topics)
        if not self._expected <= topics:
            return False
        del self._pending[stamp_ns]
        self._acknowledged_ns = stamp_ns
        return True


def _after(stamps: array[int], start_ns: int) -> NDArray[np.int64]:
    distinct = np.unique(np.array(stamps, np.int64))
    return distinct[distinct > start_ns]
