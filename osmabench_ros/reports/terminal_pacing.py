"""Frames, latencies and map staleness of the runs, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from osmabench_ros.reports.headline import NOT_APPLICABLE
from osmabench_ros.runs.config import PacingMode
from osmabench_ros.runs.participation import Participation
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.runs.timings import TIMINGS, Measurements, read_measurements

UNKNOWN = 'unknown'


def print_pacing(runs: Sequence[RunReport], directory: Path, console: Console) -> None:
    """Print what realtime runs lost, run by run and node by node, and lockstep runs in all.

    The folders of the runs are in `directory`.
    """
    found = [(run.run_id, read_measurements(directory / run.run_id / TIMINGS)) for run in runs]
    timed = [(run_id, measured) for run_id, measured in found if measured is not None]
    realtime = [item for item in timed if item[1].pacing == PacingMode.REALTIME.value]
    lockstep = [measured for _, measured in timed if measured.pacing != PacingMode.REALTIME.value]
    if realtime:
        console.print(_table(realtime))
    if lockstep:
        console.print(_lockstep(lockstep), highlight=False)
    if ignored := sum(sum(measured.ignored.values()) for _, measured in timed):
        console.print(f'[red]{ignored} messages without the run token were ignored[/]')


def _lockstep(runs: Sequence[Measurements]) -> str:
    frames = sum(measured.frames for measured in runs)
    lost = sum(node.dropped or 0 for measured in runs for node in measured.participants)
    if lost:
        return f'[red]{lost} of {frames} frames were not acknowledged in lockstep[/]'
    return f'no frame is lost in lockstep: {frames} frames in {len(runs)} runs'


def _table(runs: Sequence[tuple[str, Measurements]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style='bold')
    table.add_column('realtime run, node', overflow='fold')
    for name in ('frames', 'received', 'mapped', 'dropped', 'loss', 'p50', 'p95', 'p99', 'max'):
        table.add_column(name, justify='right', no_wrap=True)
    for run_id, measured in runs:
        stale = measured.staleness
        told = '' if stale is None else f'; map staleness {stale.mean_s:.1f} s'
        table.add_row(f'{run_id}{told}')
        for node in measured.participants:
            table.add_row(f'  {node.name}', *_cells(node))
    return table


def _cells(node: Participation) -> list[str]:
    frames = (node.published, node.received, node.mapped, node.dropped)
    latencies = (node.latency_p50_s, node.latency_p95_s, node.latency_p99_s, node.latency_max_s)
    return [
        *(UNKNOWN if value is None else str(value) for value in frames),
        UNKNOWN if node.loss is None else f'{100 * node.loss:.1f} %',
        *(NOT_APPLICABLE if value is None else f'{1000 * value:.0f} ms' for value in latencies),
    ]
