"""`osmabench sweep`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.base.settings import Named
from osmabench_ros.base.strict import validated
from osmabench_ros.cli.options import with_option_groups
from osmabench_ros.cli.run import Fresh, Out, needs_ros
from osmabench_ros.errors import ConfigError, RequirementError, RunError
from osmabench_ros.reports.sweep import print_sweep
from osmabench_ros.runs.config import MatrixConfig, SweepConfig, load_config
from osmabench_ros.runs.sweep import SweepReport


@with_option_groups
def sweep(
    config: Annotated[str, typer.Argument(help='YAML file, or a name in config/, e.g. demo.')],
    changes: Annotated[
        dict[str, Any],
        Named('lowest', 'highest', 'steps_per_octave', 'max_loss', changes=SweepConfig),
    ],
    speeds: Annotated[
        str,
        typer.Option(help="Speed factors to try, e.g. '0.5,1,2,4'; without, a search is made."),
    ] = '',
    out: Out = Path('runs'),
    fresh: Fresh = False,
) -> None:
    """Find the fastest speed at which each mapper follows, and what speed costs its map.

    Every scene, condition and mapper of the configuration is run in realtime at several speeds;
    a mapper follows a speed if it loses at most 5 % of the frames. Without --speeds the edge is
    searched by bisection on a geometric grid. What is not given comes from `sweep:` in the
    configuration. Runs that are done stay done. Exits with 0 if and only if a speed was found
    for every mapper.
    """
    loaded = load_config(config)
    chosen = _chosen(loaded, speeds, changes)
    with needs_ros():
        from osmabench_ros.bringup.runner.sweep_runner import run_sweep, sweep_folder
    with shown_progress() as progress:
        report = run_sweep(loaded, out, chosen, fresh=fresh, progress=progress)
    print_sweep(report, sweep_folder(loaded, out))
    _exit_with_verdict(report)


def _chosen(config: MatrixConfig, speeds: str, changes: dict[str, Any]) -> SweepConfig:
    if speeds:
        changes = {**changes, 'speeds': _numbers(speeds)}
    elif {'lowest', 'highest', 'steps_per_octave'} & changes.keys():
        changes = {**changes, 'speeds': ()}
    return validated(SweepConfig, {**config.sweep.model_dump(), **changes}, 'sweep')


def _numbers(text: str) -> tuple[float, ...]:
    numbers = [item for item in re.split(r'[,\s]+', text) if item]
    try:
        return tuple(float(item) for item in numbers)
    except ValueError as error:
        raise ConfigError(f"--speeds {text}: give numbers, e.g. '0.5,1,2,4' ({error})") from error


def _exit_with_verdict(report: SweepReport) -> None:
    failed = [
        f'{point.run_id}: {point.error}'
        for series in report.series
        for point in series.points
        if point.error
    ]
    if failed:
        raise RunError(f'{len(failed)} runs failed. {"; ".join(failed)}')
    lost = [f'{item.title}: {item.verdict}' for item in report.series if item.fastest is None]
    if lost:
        raise RequirementError('; '.join(lost))
