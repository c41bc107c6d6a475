"""`osmabench run` and `osmabench demo`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from osmabench_ros.base.files import check_file
from osmabench_ros.base.log import log_to
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import Config, Overwrite, RerunFile
from osmabench_ros.errors import ConfigError, needing

if TYPE_CHECKING:
    from osmabench_ros.runs.config import MatrixConfig

Out = Annotated[Path, Option(help='Folder of results, with a folder for each configuration.')]
Fresh = Annotated[bool, Option('--fresh', help='Start over; earlier results go to previous/.')]


def run(
    config: Config,
    out: Out = Path('runs'),
    fresh: Fresh = False,
    rerun: RerunFile = None,
    overwrite: Overwrite = False,
    jobs: Annotated[
        int | None, Option(min=1, help='Most runs at once; default: by cores and memory.')
    ] = None,
    speeds: Annotated[
        str, Option(metavar='1,2,4|auto', help='Find the fastest speed that each mapper follows.')
    ] = '',
    cluster: Annotated[
        str, Option(metavar='HOST:PORT|auto', help='Run on a Ray cluster that shares --out.')
    ] = '',
    tries: Annotated[
        int, Option(min=1, max=100, help='Most tries of a run when its node of --cluster fails.')
    ] = 3,
    upload: Annotated[
        str, Option(metavar='URL', help='Where nodes of --cluster copy finished runs (fsspec).')
    ] = '',
    dry_run: Annotated[bool, Option('--dry-run', help='Only print what would be run.')] = False,
    scene: Annotated[str, Option(help='Take this scene in place of those of the file.')] = '',
) -> None:
    """Run a configuration: every scene under every condition with every mapper.

    A run that was cut off goes on where it stopped. Exits with 0 if and only if every stage
    completed and every threshold under `requirements:` holds; with --speeds, if a speed was found
    for every mapper.
    """
    from osmabench_ros.runs.config import load_config, with_scene

    settings = load_config(config)
    settings = with_scene(settings, scene, 0) if scene else settings
    if cluster and jobs is not None:
        raise ConfigError('--jobs is for this machine; with --cluster the nodes decide')
    if upload and not cluster:
        raise ConfigError('--upload is for runs on a --cluster')
    if speeds and (rerun or jobs or cluster or dry_run):
        raise ConfigError('--speeds goes without --rerun, --jobs, --cluster and --dry-run')
    if dry_run:
        from osmabench_ros.runs.preparation import list_expected_work

        for line in list_expected_work(settings, out, fresh=fresh):
            typer.echo(line)
    elif speeds:
        _run_at_speeds(settings, speeds, out, fresh)
    else:
        nodes = {'address': cluster, 'tries': tries, 'upload': upload} if cluster else None
        _run(settings, out, fresh, rerun, overwrite, jobs, nodes)


def demo(
    scene: Annotated[str, Argument(help='Or a *.scene_dataset_config.json.')] = 'apartment',
    seed: Annotated[int, Option(min=0, help='Another seed is another apartment.')] = 5,
    out: Out = Path('runs'),
    fresh: Fresh = False,
    rerun: RerunFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Map a furnished scene with three mappers under two lights, and report."""
    from osmabench_ros.runs.config import load_config, with_scene

    _run(with_scene(load_config('demo'), scene, seed), out, fresh, rerun, overwrite, 1)


def needs_ros(what: str = 'a run') -> AbstractContextManager[None]:
    """Return a context in which a failed import of ROS becomes an error with the remedy."""
    return needing(
        f'{what} needs ROS 2 and the messages of this package',
        'source your ROS workspace, or make env; osmabench doctor says what is missing',
    )


def _run(
    config: MatrixConfig,
    out: Path,
    fresh: bool,
    rerun: Path | None,
    overwrite: bool,
    jobs: int | None,
    cluster: dict[str, Any] | None = None,
) -> None:
    with needs_ros():
        from osmabench_ros.bringup.runner.cluster import Cluster
        from osmabench_ros.bringup.runner.matrix_runner import run_matrix
    from osmabench_ros.reports.rerun_recording import record_runs
    from osmabench_ros.reports.terminal import print_report
    from osmabench_ros.runs.report_model import Status

    if rerun is not None:
        check_file(rerun, overwrite=overwrite)
    root = out / config.name
    with shown_progress() as progress:
        report = run_matrix(
            config,
            out,
            fresh=fresh,
            jobs=jobs,
            cluster=Cluster(**cluster) if cluster else None,
            progress=progress,
        )
        if rerun is not None:
            done = [item.run_id for item in report.runs if item.status is Status.COMPLETE]
            folders = [root / run_id for run_id in done]
            record_runs(folders, rerun, progress, overwrite=overwrite)
    print_report(report, root, config=config)
    with log_to(root):
        report.check_verdict()


def _run_at_speeds(config: MatrixConfig, speeds: str, out: Path, fresh: bool) -> None:
    with needs_ros():
        from osmabench_ros.bringup.runner.matrix_runner import run_sweep, sweep_folder
    from osmabench_ros.base.strict import validated
    from osmabench_ros.reports.sweep import print_sweep
    from osmabench_ros.runs.config import SweepConfig

    sweep = config.sweep
    if speeds != 'auto':
        given = {**sweep.model_dump(), 'speeds': speeds.split(',')}
        sweep = validated(SweepConfig, given, f'--speeds {speeds}')
    with shown_progress() as progress:
        report = run_sweep(config, out, sweep, fresh=fresh, progress=progress)
    root = sweep_folder(config, out)
    print_sweep(report, root)
    with log_to(root):
        report.check_verdict()
