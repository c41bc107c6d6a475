"""`osmabench run` and `osmabench demo`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osmabench_ros.base.owned_folder import check_file
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import Overwrite, RerunFile
from osmabench_ros.errors import ConfigError, RequirementError, RunError, needing

if TYPE_CHECKING:
    from osmabench_ros.runs.config import MatrixConfig
    from osmabench_ros.runs.results.report_model import MatrixReport

Out = Annotated[Path, typer.Option(help='Folder that gets a folder of results a configuration.')]
Fresh = Annotated[
    bool,
    typer.Option('--fresh', help='Start over; earlier results go to previous/ in their folder.'),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help='Most runs at once; by default what cores and memory allow.'),
]


def run(
    config: Annotated[str, typer.Argument(help='YAML file, or a name in config/, e.g. demo.')],
    out: Out = Path('runs'),
    fresh: Fresh = False,
    rerun: RerunFile = None,
    overwrite: Overwrite = False,
    jobs: Jobs = None,
    cluster: Annotated[
        str,
        typer.Option(
            metavar='HOST:PORT|auto',
            help='Run on the nodes of a Ray cluster that share --out; needs the extra "cluster".',
        ),
    ] = '',
    tries: Annotated[
        int, typer.Option(min=1, max=100, help='Most tries of a run when nodes of --cluster fail.')
    ] = 3,
    upload: Annotated[
        str,
        typer.Option(metavar='URL', help='Where nodes of --cluster copy finished runs (fsspec).'),
    ] = '',
    dry_run: Annotated[
        bool,
        typer.Option('--dry-run', help='Print runs and language models asked; do nothing.'),
    ] = False,
    scene: Annotated[
        str, typer.Option('--scene', help='Take this scene in place of those of the file.')
    ] = '',
) -> None:
    """Run a configuration: every scene under every condition with every mapper.

    A run that was cut off goes on where it stopped. Exits with 0 if and only if every stage
    completed and every threshold under `requirements:` holds.
    """
    from osmabench_ros.runs.config import load_config, with_scene

    settings = load_config(config)
    settings = with_scene(settings, scene, 0) if scene else settings
    if dry_run:
        from osmabench_ros.runs.dry_run import expected_work

        for line in expected_work(settings, out):
            typer.echo(line)
        return
    if cluster and jobs is not None:
        raise ConfigError('--jobs is for this machine; with --cluster the nodes decide')
    if upload and not cluster:
        raise ConfigError('--upload is for runs on a --cluster')
    nodes = {'address': cluster, 'tries': tries, 'upload': upload} if cluster else None
    _run(settings, out, fresh, rerun, overwrite, jobs, nodes)


def demo(
    scene: Annotated[
        str, typer.Argument(help="'apartment', or a *.scene_dataset_config.json to try.")
    ] = 'apartment',
    seed: Annotated[int, typer.Option(min=0, help='Another seed is another apartment.')] = 5,
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
    nodes: Mapping[str, Any] | None = None,
) -> None:
    with needs_ros():
        from osmabench_ros.bringup.runner.cluster import Cluster
        from osmabench_ros.bringup.runner.matrix_runner import run_matrix
    from osmabench_ros.reports.rerun.rerun_export import record_runs
    from osmabench_ros.reports.terminal import print_report
    from osmabench_ros.runs.results.report_model import Status

    if rerun is not None:
        check_file(rerun, overwrite=overwrite)
    root = out / config.name
    with shown_progress() as progress:
        report = run_matrix(
            config,
            out,
            fresh=fresh,
            jobs=jobs,
            cluster=None if nodes is None else Cluster(**nodes),
            progress=progress,
        )
        if rerun is not None:
            done = [item.run_id for item in report.runs if item.status is Status.COMPLETE]
            folders = [root / run_id for run_id in done]
            record_runs(folders, rerun, progress, overwrite=overwrite)
    print_report(report, root, requirements=config.requirements)
    exit_with_verdict(report)


def exit_with_verdict(report: MatrixReport) -> None:
    """Raise what a command ends with if a run did not complete, or a requirement does not hold."""
    from osmabench_ros.runs.results.report_model import Status

    failed = [item for item in report.runs if item.status is not Status.COMPLETE]
    if failed:
        reasons = '; '.join(f'{item.run_id} {item.status.value}: {item.error}' for item in failed)
        raise RunError(f'{len(failed)} of {len(report.runs)} runs did not complete. {reasons}')
    if report.failed_requirements:
        raise RequirementError(
            'requirements do not hold: ' + '; '.join(report.failed_requirements)
        )
