"""`osmabench run` and `osmabench demo`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.files import check_file
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import Overwrite, RerunFile
from osmabench_ros.errors import RequirementError, RunError, needing
from osmabench_ros.reports.rerun.rerun_export import record_runs
from osmabench_ros.reports.terminal import print_report
from osmabench_ros.runs.config import MatrixConfig, load_config, with_scene
from osmabench_ros.runs.dry_run import expected_work
from osmabench_ros.runs.results.report_model import MatrixReport, Status

Out = Annotated[Path, typer.Option(help='Folder that gets a folder of results a configuration.')]
Fresh = Annotated[
    bool,
    typer.Option('--fresh', help='Start over, deleting earlier results; what is not ours stays.'),
]


def run(
    config: Annotated[str, typer.Argument(help='YAML file, or a name in config/, e.g. demo.')],
    out: Out = Path('runs'),
    fresh: Fresh = False,
    rerun: RerunFile = None,
    overwrite: Overwrite = False,
    dry_run: Annotated[
        bool,
        typer.Option('--dry-run', help='Print runs and language models asked; do nothing.'),
    ] = False,
) -> None:
    """Run a configuration: every scene under every condition with every mapper.

    A run that was cut off goes on where it stopped. Exits with 0 if and only if every stage
    completed and every threshold under `requirements:` holds.
    """
    settings = load_config(config)
    if dry_run:
        for line in expected_work(settings, out):
            typer.echo(line)
        return
    _run(settings, out, fresh, rerun, overwrite)


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
    _run(with_scene(load_config('demo'), scene, seed), out, fresh, rerun, overwrite)


def needs_ros(what: str = 'a run') -> AbstractContextManager[None]:
    """Return a context in which a failed import of ROS becomes an error with the remedy."""
    return needing(
        f'{what} needs ROS 2 and the messages of this package',
        'source your ROS workspace, or make env; osmabench doctor says what is missing',
    )


def _run(
    config: MatrixConfig, out: Path, fresh: bool, rerun: Path | None, overwrite: bool
) -> None:
    with needs_ros():
        from osmabench_ros.bringup.runner.matrix_runner import run_matrix
    if rerun is not None:
        check_file(rerun, overwrite=overwrite)
    with shown_progress() as progress:
        report = run_matrix(config, out, fresh=fresh, progress=progress)
        if rerun is not None:
            done = [item.run_id for item in report.runs if item.status is Status.COMPLETE]
            folders = [out / config.name / run_id for run_id in done]
            record_runs(folders, rerun, progress, overwrite=overwrite)
    print_report(report, out / config.name)
    _exit_with_verdict(report)


def _exit_with_verdict(report: MatrixReport) -> None:
    failed = [item for item in report.runs if item.status is not Status.COMPLETE]
    if failed:
        reasons = '; '.join(f'{item.run_id} {item.status.value}: {item.error}' for item in failed)
        raise RunError(f'{len(failed)} of {len(report.runs)} runs did not complete. {reasons}')
    if report.failed_requirements:
        raise RequirementError(
            'requirements do not hold: ' + '; '.join(report.failed_requirements)
        )
