"""Scores over time: the same figures for the maps that a method had during a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.progress_curve import curve
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.suites.suite import Suite, SuiteContext


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The map after a number of frames; the time is of the newest, since the start of the run."""

    frames: int
    time_s: float
    semantic_map: SemanticMap


@dataclass(frozen=True)
class Moment:
    """Figures of one snapshot; see `Snapshot` for the parameters."""

    frames: int
    time_s: float
    records: tuple[MetricRecord, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        records = [record.to_json() for record in self.records]
        return {'frames': self.frames, 'time_s': self.time_s, 'records': records}


def score_snapshots(
    context: SuiteContext, snapshots: Iterable[Snapshot], suites: Sequence[Suite]
) -> list[Moment]:
    """Score every snapshot, in order of time, against the ground truth of the whole run.

    They may be read from disk one by one; nothing is written to the folder of the context.
    """
    return [Moment(item.frames, item.time_s, _score(context, item, suites)) for item in snapshots]


def _score(
    context: SuiteContext, snapshot: Snapshot, suites: Sequence[Suite]
) -> tuple[MetricRecord, ...]:
    here = replace(context, semantic_map=snapshot.semantic_map, output_directory=None)
    return tuple(record for suite in suites for record in suite.evaluate(here))


def growth_records(moments: Sequence[Moment], share: float = 0.9) -> list[MetricRecord]:
    """Summarise how each overall figure in [0, 1] grew.

    For a metric m there are ``m_over_frames`` and ``m_over_time``, its mean over the run, and
    ``m_frames_until_90`` and ``m_seconds_until_90``, the moment from which on it stays at that
    share of its final value. Figures of which lower is better are left out: they do not grow.
    """
    if not moments:
        return []
    found = []
    for record in moments[-1].records:
        if record.class_name or not record.higher_is_better or not record.applicable:
            continue
        values = [_value(moment, record) for moment in moments]
        frames = curve([moment.frames for moment in moments], values)
        seconds = curve([moment.time_s for moment in moments], values)
        percent = f'{100 * share:g}'
        for suffix, value, higher in (
            ('over_frames', frames.mean_quality(), True),
            ('over_time', seconds.mean_quality(), True),
            (f'frames_until_{percent}', frames.seen_until(share), False),
            (f'seconds_until_{percent}', seconds.seen_until(share), False),
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


def _value(moment: Moment, wanted: MetricRecord) -> float | None:
    return next((item.value for item in moment.records if item.key == wanted.key), None)
