"""Frames, latencies and map staleness of the runs, from timings.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from osmabench_ros.reports.cells import Cell, scaled_cell
from osmabench_ros.reports.charts.chart import INK, MUTED, SERIES, Specification, specification
from osmabench_ros.reports.report_run import Run, distinct
from osmabench_ros.runs.config import PacingMode
from osmabench_ros.runs.timings import (
    TIMINGS,
    Measurements,
    Participation,
    read_measurements,
)


@dataclass(frozen=True)
class TimedRun:
    """A run with its title and measurements."""

    run: Run
    measured: Measurements
    title: str


@dataclass(frozen=True)
class NodeRow:
    """A node of a realtime run: frames and latencies."""

    title: str
    node: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class StalenessRow:
    """Staleness of the map of a realtime run."""

    title: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class PacingView:
    """Rows of realtime runs, and counts of lockstep runs and of frames lost.

    `beside` says how many realtime runs may have shared the machine with how many others at most.
    """

    nodes: tuple[NodeRow, ...]
    staleness: tuple[StalenessRow, ...]
    realtime: tuple[TimedRun, ...]
    lockstep_runs: int
    lockstep_frames: int
    lockstep_lost: int
    alone: int
    beside: tuple[tuple[int, int], ...]


def timed_runs(runs: Sequence[Run]) -> list[TimedRun]:
    """Return the runs that have a timings.json."""
    found = [(run, read_measurements(run.plan.directory / TIMINGS)) for run in runs]
    several = len(distinct(run.scene for run in runs)) > 1
    return [
        TimedRun(run, measured, _title(run, several))
        for run, measured in found
        if measured is not None
    ]


def _title(run: Run, several_scenes: bool) -> str:
    speed = run.plan.identity.speed_factor
    parts = [run.title, '' if speed is None else f'at {speed:g} x']
    return ' · '.join(filter(None, [*parts, run.scene if several_scenes else '']))


def pacing_view(runs: Sequence[Run]) -> PacingView:
    """Return frames, latencies and staleness of the runs; RunError if timings are malformed."""
    timed = timed_runs(runs)
    realtime = [item for item in timed if item.measured.pacing == PacingMode.REALTIME.value]
    at_once = Counter(item.measured.runs_at_once for item in realtime)
    lockstep = [item.measured for item in timed if item not in realtime]
    return PacingView(
        tuple(
            NodeRow(item.title, node.name, _node_cells(node))
            for item in realtime
            for node in item.measured.participants
        ),
        tuple(StalenessRow(item.title, _staleness_cells(item.measured)) for item in realtime),
        tuple(realtime),
        len(lockstep),
        sum(item.frames for item in lockstep),
        sum(node.dropped or 0 for item in lockstep for node in item.participants),
        at_once.pop(1, 0),
        tuple((runs, most - 1) for most, runs in sorted(at_once.items())),
    )


def _node_cells(node: Participation) -> tuple[Cell, ...]:
    frames = (node.published, node.received, node.mapped, node.dropped)
    latencies = (
        node.latency_p50_s,
        node.latency_p95_s,
        node.latency_p99_s,
        node.latency_max_s,
        node.processing_mean_s,
    )
    return (
        *(scaled_cell(value, 1.0, 0, UNKNOWN) for value in frames),
        scaled_cell(node.loss, 100.0, 1, UNKNOWN),
        *(scaled_cell(value, 1000.0, 1) for value in latencies),
    )


def _staleness_cells(measured: Measurements) -> tuple[Cell, ...]:
    stale = measured.staleness
    values = (None,) * 3 if stale is None else (stale.mean_s, stale.max_s, stale.final_s)
    return (
        scaled_cell(measured.speed_factor, 1.0, 2),
        scaled_cell(None if stale is None else stale.maps, 1.0, 0),
        *(scaled_cell(value, 1.0, 2) for value in values),
    )


UNKNOWN = Cell('unknown', note='the node does not say')


_MOST_ROWS = 40
_SHARES = {'p50': 'latency_p50_s', 'p95': 'latency_p95_s', 'p99': 'latency_p99_s'}


def latency_chart(realtime: Sequence[TimedRun]) -> Specification | None:
    """Return median, percentiles and maximum of latency, a row a node; None without any."""
    rows = [
        {
            'title': f'{node.name} · {item.title}',
            'node': node.name,
            'run': item.title,
            'mapper': item.run.mapper,
            'condition': item.run.condition,
            **_milliseconds(node),
        }
        for item in realtime
        for node in item.measured.participants
        if node.latency_max_s is not None
    ][:_MOST_ROWS]
    if not rows:
        return None
    shown = ['run', 'node', *(f'{name}:Q' for name in (*_SHARES, 'max'))]
    base = alt.Chart().encode(alt.Y('title:N').title(None).sort(None), tooltip=shown)
    color = alt.Color('node:N').scale(range=list(SERIES))
    x = alt.X('p50:Q').title('latency, ms').scale(type='log', nice=False).axis(format='~g')
    layers = alt.layer(
        base.mark_rule(strokeWidth=1.2).encode(x, alt.X2('max:Q'), color),
        base.mark_rule(strokeWidth=4).encode(x, alt.X2('p95:Q'), color),
        base.mark_point(filled=True, size=40, opacity=1).encode(x, color),
        base.mark_tick(color=INK, size=10).encode(x='p99:Q'),
        base.mark_point(color=MUTED, shape='cross', angle=45, size=40).encode(x='max:Q'),
        data=pd.DataFrame(rows),
    )
    sized = layers.properties(width=620, height=alt.Step(22))
    return specification(sized, 'Latency from publication to acknowledgement')


def _milliseconds(node: Participation) -> dict[str, float]:
    """Return p50, p95, p99 and maximum, above 0 for the logarithmic axis."""
    largest = node.latency_max_s or 0.0
    found = {name: getattr(node, field) for name, field in _SHARES.items()}
    return {
        name: max(1e-3, 1000 * (largest if seconds is None else seconds))
        for name, seconds in {**found, 'max': largest}.items()
    }
