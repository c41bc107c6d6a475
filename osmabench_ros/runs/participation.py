"""What the nodes of a run made of its frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from osmabench_ros.metrics.record import MetricRecord

SUITE = 'timing'


@dataclass(frozen=True)
class Participation:
    """Frames and latencies of one node; None where they are unknown.

    `received` frames were acknowledged, mapped or not; `mapped` ones went into its map. Latency is
    the steady time from the publication of a frame to its acknowledgement; `processing_mean_s` is
    the time a frame, as the node says.
    """

    name: str
    published: int
    received: int | None = None
    mapped: int | None = None
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    latency_p99_s: float | None = None
    latency_max_s: float | None = None
    processing_mean_s: float | None = None

    @property
    def dropped(self) -> int | None:
        """Frames that it did not acknowledge; None if that is unknown."""
        return None if self.received is None else max(0, self.published - self.received)

    @property
    def loss(self) -> float | None:
        """Share of the published frames that were dropped, 0 to 1."""
        if self.dropped is None or not self.published:
            return None
        return self.dropped / self.published

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form with the derived figures."""
        return {**asdict(self), 'dropped': self.dropped, 'loss': self.loss}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Participation:
        """Rebuild from `to_json`."""
        return cls(**{item.name: data[item.name] for item in fields(cls)})

    def records(self) -> Iterator[MetricRecord]:
        """Yield the figures as records with the node as class name."""
        figures: tuple[tuple[str, float | None, bool], ...] = (
            ('frames_published', self.published, True),
            ('frames_received', self.received, True),
            ('frames_mapped', self.mapped, True),
            ('frames_dropped', self.dropped, False),
            ('frame_loss', self.loss, False),
            ('latency_p50_s', self.latency_p50_s, False),
            ('latency_p95_s', self.latency_p95_s, False),
            ('latency_p99_s', self.latency_p99_s, False),
            ('latency_max_s', self.latency_max_s, False),
            ('processing_time_mean_s', self.processing_mean_s, False),
        )
        for metric, value, higher in figures:
            n = 0 if value is None else self.published
            yield MetricRecord(SUITE, '', metric, self.name, value, n=n, higher_is_better=higher)
