"""`osmabench score trajectory`: errors of a trajectory against the true one."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from osmabench_ros.base.files import write_json
from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.cli.options import with_option_groups
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.metrics.trajectory import (
    DEFAULT_MAX_DIFFERENCE_S,
    DeltaInterval,
    DeltaUnit,
    TrajectoryAlignment,
)
from osmabench_ros.metrics.trajectory_records import (
    ALIGNED,
    SUITE,
    TrajectoryScore,
    TrajectorySettings,
    score_trajectory,
)
from osmabench_ros.reports.cells import plain
from osmabench_ros.reports.page.bag_page import write_trajectory_page
from osmabench_ros.runs.prepare.recorded_trajectories import read_trajectory

_NAMES = 'TUM file, or BAG:TOPIC; the topic may be /tf:PARENT.CHILD.'

pose_option = partial(typer.Option, rich_help_panel='Trajectory')

TrajectoryAlign = Annotated[
    TrajectoryAlignment,
    pose_option(help='Alignment of the poses before absolute errors (as in evo).'),
]


@dataclass(frozen=True)
class PairingOptions:
    """Which poses of two trajectories are compared."""

    max_diff: Annotated[
        float,
        pose_option(
            '--max-diff', min=0, help='Largest difference of stamps that belong together, seconds.'
        ),
    ] = DEFAULT_MAX_DIFFERENCE_S
    time_offset: Annotated[
        float, pose_option(help="Seconds added to the stamps of the stack's poses.")
    ] = 0.0
    rpe_delta: Annotated[float, pose_option(help='Interval of relative errors.')] = 1.0
    rpe_unit: Annotated[DeltaUnit, pose_option(help='Unit of that interval.')] = DeltaUnit.FRAMES
    rpe_all_pairs: Annotated[
        bool,
        pose_option(
            '--rpe-all-pairs', help='Relative errors over all pairs, not only consecutive ones.'
        ),
    ] = False

    def settings(self, alignment: TrajectoryAlignment) -> TrajectorySettings:
        """Return how trajectories are compared."""
        interval = DeltaInterval(self.rpe_delta, self.rpe_unit, self.rpe_all_pairs)
        return TrajectorySettings(alignment, self.max_diff, self.time_offset, interval)


@with_option_groups
def trajectory(
    estimate: Annotated[str, typer.Argument(help=f"The stack's own poses: {_NAMES}")],
    reference: Annotated[str, typer.Argument(help=f'True poses: {_NAMES}')],
    pairing: PairingOptions,
    align: TrajectoryAlign = TrajectoryAlignment.SE3,
    out: Annotated[
        Path | None, typer.Option(help='Folder that gets trajectory.json and trajectory.html.')
    ] = None,
    as_json: Annotated[bool, typer.Option('--json', help='Print the figures as JSON.')] = False,
) -> None:
    """Score a trajectory: absolute and relative pose errors by the conventions of evo.

    Needs no ROS. Figures under "trajectory" are those of the poses as recorded, under
    "trajectory@aligned" those after the alignment.
    """
    settings = pairing.settings(align)
    if out is not None:
        claim_folder(out)
    true, own = read_trajectory(reference), read_trajectory(estimate)
    score = score_trajectory(true, own, settings)
    for remark in score.remarks:
        warnings.warn(remark, OsmabenchWarning, stacklevel=2)
    figures = [record.to_json() for record in score.records]
    if out is not None:
        write_json(out / 'trajectory.json', figures)
        page = write_trajectory_page(score, estimate, reference, out)
    if as_json:
        typer.echo(json.dumps(figures, indent=1))
        return
    _print(score)
    if out is not None:
        typer.echo(page)


def _print(score: TrajectoryScore) -> None:
    """Print one row a figure: as recorded and aligned."""
    kind = score.settings.alignment.value
    table = Table(box=None, pad_edge=False, header_style='bold')
    table.add_column('figure', no_wrap=True)
    columns = {SUITE: 'as recorded'}
    if score.settings.alignment is not TrajectoryAlignment.NONE:
        columns[SUITE + ALIGNED] = f'aligned ({kind})'
    for name in columns.values():
        table.add_column(name, justify='right', no_wrap=True)
    table.add_column('n', justify='right')
    rows: dict[str, dict[str, str]] = {}
    for record in score.records:
        rows.setdefault(record.metric, {})[record.suite] = plain(record.value)
    counts = {record.metric: str(record.n) for record in score.records}
    for metric, cells in rows.items():
        table.add_row(metric, *(cells.get(key, '') for key in columns), counts[metric])
    Console(width=110).print(table)
