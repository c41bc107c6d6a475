"""What each participant made of the frames, by its acknowledgements. No ROS in here."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

LATENCY_PERCENTILES = (50, 95, 99, 100)


@dataclass(frozen=True)
class Acknowledgement:
    """A participant's acknowledgement of a frame; its processing time is 0 if it gives none."""

    participant: str
    stamp_ns: int
    processing_time_s: float = 0.0
    mapped: bool = True


@dataclass(frozen=True)
class ParticipantSummary:
    """Counts and times of one participant so far; times without any frame are NaN.

    `mapped` are those of the acknowledged frames that went into the map, `dropped` those published
    before the newest acknowledged one and never acknowledged. `latency_s`, from publication to
    acknowledgement, is the 50th, 95th and 99th percentile and the maximum; `processing_time_s` is
    a mean.
    """

    participant: str
    acknowledged: int
    mapped: int
    dropped: int
    latency_s: tuple[float, float, float, float]
    processing_time_s: float


class _Tally:
    """Sums of one participant."""

    def __init__(self) -> None:
        self.frames: set[int] = set()
        self.newest = -1
        self.mapped = 0
        self.latencies_s = array('d')
        self.processing_s = array('d')

    def add(self, frame: int, latency_s: float, word: Acknowledgement) -> None:
        self.frames.add(frame)
        self.newest = max(self.newest, frame)
        self.mapped += word.mapped
        self.latencies_s.append(latency_s)
        if word.processing_time_s > 0:
            self.processing_s.append(word.processing_time_s)

    def summary(self, participant: str) -> ParticipantSummary:
        latencies = np.frombuffer(self.latencies_s) if self.latencies_s else np.array([np.nan])
        median, p95, p99, longest = np.percentile(latencies, LATENCY_PERCENTILES).tolist()
        return ParticipantSummary(
            participant,
            acknowledged=len(self.frames),
            mapped=self.mapped,
            dropped=self.newest + 1 - len(self.frames),
            latency_s=(median, p95, p99, longest),
            processing_time_s=float(np.mean(self.processing_s)) if self.processing_s else np.nan,
        )


class ParticipantStatistics:
    """Accumulates acknowledgements of published frames, by participants that give them."""

    def __init__(self, participants: Iterable[str]) -> None:
        self._tallies = {name: _Tally() for name in participants}
        self._published: dict[int, tuple[int, float]] = {}

    def publish(self, stamp_ns: int, now_s: float) -> None:
        """Note when (steady time) a frame left; its latency counts from the last time it did."""
        frame, _ = self._published.get(stamp_ns, (len(self._published), 0.0))
        self._published[stamp_ns] = (frame, now_s)

    def receive(self, word: Acknowledgement, now_s: float) -> bool:
        """Take an acknowledgement at a steady time, and return whether it says anything new.

        It does not if it is of a stranger, of a frame that was not published, or repeated.
        """
        tally = self._tallies.get(word.participant)
        published = self._published.get(word.stamp_ns)
        if tally is None or published is None or published[0] in tally.frames:
            return False
        frame, left_s = published
        tally.add(frame, max(now_s - left_s, 0.0), word)
        return True

    def summaries(self) -> list[ParticipantSummary]:
        """Return the figures so far, in the order of declaration."""
        return [tally.summary(name) for name, tally in self._tallies.items()]
