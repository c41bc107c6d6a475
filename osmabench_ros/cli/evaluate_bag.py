"""The part of `osmabench evaluate` that scores the map of a bag."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from osmabench_ros.base.files import check_file
from osmabench_ros.cli.progress import shown_progress
from osmabench_ros.errors import ConfigError
from osmabench_ros.reports.bag_page import write_bag_page
from osmabench_ros.reports.figures import print_figures
from osmabench_ros.reports.outcomes import gate_of
from osmabench_ros.reports.view_of_run import record_map
from osmabench_ros.runs.bag_comparison import MAP_FOLDER
from osmabench_ros.runs.bag_evaluation import evaluate_bag
from osmabench_ros.runs.bag_report import BagReport
from osmabench_ros.runs.bag_settings import BagSource, ReferenceChoice
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.results_folder import undisturbed


def reference_choice(
    scene: str,
    run: Path | None,
    ground_truth: Path | None,
    cloud: Path | None,
    frame_id: str | None,
) -> ReferenceChoice:
    """Return what a map is compared with.

    Raises
    ------
    ConfigError
        If more than one reference is given.
    """
    if run is not None and ground_truth is not None:
        raise ConfigError(f'a map has one reference, not 2: {run}, {ground_truth}')
    return ReferenceChoice(scene, run or ground_truth, cloud, frame_id)


def evaluate_recorded(
    source: BagSource,
    suites: Sequence[SuiteConfig],
    out: Path,
    requirements: Sequence[Requirement],
    *,
    replace: bool,
    rerun: Path | None,
) -> BagReport:
    """Evaluate the map of a bag, write the page, print the figures and what to know about them.

    Raises
    ------
    ConfigError
        If a Rerun recording is wanted without a reference.
    OsmabenchError
        As of `evaluate_bag`.
    """
    if rerun is not None and not source.reference.exists:
        raise ConfigError('--rerun shows a map beside its reference; name one')
    if rerun is not None:
        check_file(rerun, overwrite=replace)
    with undisturbed(out), shown_progress() as progress:
        done = evaluate_bag(source, suites, out, requirements, replace=replace, progress=progress)
        progress('writing the page', 1.0)
        page = write_bag_page(done.report, done.trajectory, out)
        if rerun is not None and done.ground_truth_directory is not None:
            record_map(
                out / MAP_FOLDER,
                done.ground_truth_directory,
                rerun,
                progress,
                gate_m=gate_of(suites),
                overwrite=replace,
            )
    print_figures(done.report)
    typer.echo(out / 'report.json')
    typer.echo(page)
    return done.report
