"""Scores over time: how quality grows while a map is being built."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.record import MetricRecord


@dataclass(frozen=True)
class CurveOverTime:
    """A metric at several moments of a run.

    Parameters
    ----------
    seen : tuple of float
        Frames or seconds at each moment, strictly ascending, > 0.
    values : tuple of float
        The metric then; NaN while it was not applicable, which counts as 0.

    Raises
    ------
    MetricError
        If the lengths differ or the moments do not ascend.
    """

    seen: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.seen) != len(self.values):
            raise MetricError(f'{len(self.seen)} moments, but {len(self.values)} values')
        if any(b <= a for a, b in zip((0.0, *self.seen), self.seen, strict=False)):
            raise MetricError(f'moments of a run must be > 0 and ascend, not {self.seen}')

    @property
    def final(self) -> float:
        """Value at the last moment, NaN without one."""
        return self.values[-1] if self.values else math.nan

    def mean_quality(self) -> float:
        """Return the mean of the metric over the run: area under the curve over its length.

        The metric is 0 before the first moment and holds its value until the next one. In the
        range of the metric; a map that is good early has more. NaN without moments.
        """
        if not self.seen:
            return math.nan
        lengths = np.diff(self.seen)
        held = np.nan_to_num(np.array(self.values[:-1], np.float64))
        return float((lengths * held).sum() / self.seen[-1]) if len(held) else 0.0

    def seen_until(self, share: float = 0.9) -> float:
        """Return the first moment from which on the metric stays at a fraction of its final value.

        Lower is better; NaN if there is no final value.
        """
        if not math.isfinite(self.final):
            return math.nan
        enough = np.nan_to_num(np.array(self.values, np.float64), nan=-np.inf) >= (
            share * self.final
        )
        below = np.flatnonzero(~enough)
        return self.seen[int(below[-1]) + 1 if len(below) else 0]


def curve(seen: Sequence[float], values: Sequence[float | None]) -> CurveOverTime:
    """Build a curve; None means a metric that was not applicable."""
    return CurveOverTime(
        tuple(float(item) for item in seen),
        tuple(math.nan if item is None else float(item) for item in values),
    )


@dataclass(frozen=True)
class ScoresAtTime:
    """Metrics of the map after a number of frames; `time_s` is since the start of the run."""

    frames: int
    time_s: float
    metrics: tuple[MetricRecord, ...]


def make_over_time_records(moments: Sequence[ScoresAtTime]) -> list[MetricRecord]:
    """Summarise how each overall metric in [0, 1] grew.

    For a metric m there are ``m_over_frames`` and ``m_over_time``, its mean over the run, and
    ``m_frames_until_90`` and ``m_seconds_until_90``, the moment from which on it stays at 90 %
    of its final value. Figures of which lower is better are left out: they do not grow.
    """
    if not moments:
        return []
    found = []
    for record in moments[-1].metrics:
        if record.class_name or not record.higher_is_better or not record.applicable:
            continue
        values = [_value(moment, record) for moment in moments]
        frames = curve([moment.frames for moment in moments], values)
        seconds = curve([moment.time_s for moment in moments], values)
        for suffix, value, higher in (
            ('over_frames', frames.mean_quality(), True),
            ('over_time', seconds.mean_quality(), True),
            ('frames_until_90', frames.seen_until(0.9), False),
            ('seconds_until_90', seconds.seen_until(0.9), False),
        ):
            metric = f'{record.metric}_{suffix}'
            found.append(
                replace(
                    record,
                    metric=metric,
                    value=value,
                    low=None,
                    high=None,
                    n=len(moments),
                    higher_is_better=higher,
                )
            )
    return found


def _value(moment: ScoresAtTime, wanted: MetricRecord) -> float | None:
    return next((item.value for item in moment.metrics if item.key == wanted.key), None)
