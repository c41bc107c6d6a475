"""Loss, latency and staleness of the runs, from timings.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from osmabench_ros.reports.cells import Cell, Column, make_field_cells
from osmabench_ros.reports.report_run import Run, distinct
from osmabench_ros.runs.config import PacingMode
from osmabench_ros.runs.timings import TIMINGS, Measurements, read_measurements

UNKNOWN = Cell('unknown', note='the node does not say')
FRAME_COLUMNS = (
    Column('Published', 'published'),
    Column('Received', 'received'),
    Column('Mapped', 'mapped'),
    Column('Dropped', 'dropped'),
    Column('Loss, %', 'loss', 100, 1),
)
LATENCY_COLUMNS = (
    Column('p50, ms', 'latency_p50_s', 1000, 1),
    Column('p95, ms', 'latency_p95_s', 1000, 1),
    Column('p99, ms', 'latency_p99_s', 1000, 1),
    Column('max, ms', 'latency_max_s', 1000, 1),
    Column('Processing, ms', 'processing_mean_s', 1000, 1),
)
NODE_COLUMNS = (*FRAME_COLUMNS, *LATENCY_COLUMNS)
_SPEED = (Column('Speed reached', 'speed_factor', 1, 2),)
_STALENESS = (
    Column('Maps', 'maps'),
    Column('Mean, s', 'mean_s', 1, 2),
    Column('Max, s', 'max_s', 1, 2),
    Column('Final, s', 'final_s', 1, 2),
)
STALENESS_COLUMNS = (*_SPEED, *_STALENESS)


@dataclass(frozen=True)
class TimedRun:
    """The measurements of a run, and its title."""

    title: str
    measured: Measurements
    mapper: str = ''
    condition: str = ''


@dataclass(frozen=True)
class PacingView:
    """Cells of realtime runs, and counts of lockstep runs and of frames lost.

    `nodes` have title, node and cells, `staleness` has title and cells. `beside` says how many
    realtime runs may have shared the machine with how many others at most.
    """

    nodes: tuple[tuple[str, str, list[Cell]], ...]
    staleness: tuple[tuple[str, list[Cell]], ...]
    realtime: tuple[TimedRun, ...]
    lockstep_runs: int
    lockstep_frames: int
    lockstep_lost: int
    alone: int
    beside: tuple[tuple[int, int], ...]


def read_timed_runs(runs: Sequence[Run]) -> list[TimedRun]:
    """Return the runs that have a timings.json."""
    found = [(run, read_measurements(run.plan.directory / TIMINGS)) for run in runs]
    several = len(distinct(run.scene for run in runs)) > 1
    return [
        TimedRun(_make_title(run, several), measured, run.mapper, run.condition)
        for run, measured in found
        if measured is not None
    ]


def _make_title(run: Run, several_scenes: bool) -> str:
    speed = run.plan.identity.speed_factor
    parts = [run.title, '' if speed is None else f'at {speed:g} x']
    return ' · '.join(filter(None, [*parts, run.scene if several_scenes else '']))


def build_pacing_view(timed: Sequence[TimedRun]) -> PacingView:
    """Return frames, latencies and staleness of the runs."""
    realtime = [item for item in timed if item.measured.pacing == PacingMode.REALTIME.value]
    at_once = Counter(item.measured.runs_at_once for item in realtime)
    lockstep = [item.measured for item in timed if item not in realtime]
    return PacingView(
        tuple(
            (
                item.title,
                node.name,
                make_field_cells(node, FRAME_COLUMNS, UNKNOWN)
                + make_field_cells(node, LATENCY_COLUMNS),
            )
            for item in realtime
            for node in item.measured.participants
        ),
        tuple(
            (item.title, make_field_cells(x, _SPEED) + make_field_cells(x.staleness, _STALENESS))
            for item in realtime
            for x in [item.measured]
        ),
        tuple(realtime),
        len(lockstep),
        sum(item.frames for item in lockstep),
        sum(node.dropped or 0 for item in lockstep for node in item.participants),
        at_once.pop(1, 0),
        tuple((runs, most - 1) for most, runs in sorted(at_once.items())),
    )
