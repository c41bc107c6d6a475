"""`osmabench evaluate` and `osmabench ground-truth`: scores of a map, without ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.owned_folder import check_file
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import RerunFile, with_option_groups
from osmabench_ros.errors import RequirementError
from osmabench_ros.reports.outcomes import max_distance_of
from osmabench_ros.reports.page.bag_page import write_map_page
from osmabench_ros.reports.rerun.rerun_export import record_map
from osmabench_ros.reports.terminal import print_figures
from osmabench_ros.runs.config import MatrixConfig, Requirement, SuiteConfig, load_config
from osmabench_ros.runs.evaluate.evaluation import EvaluationInputs
from osmabench_ros.runs.evaluate.map_evaluation import evaluate_map, unnamed_run
from osmabench_ros.runs.prepare.preparation import GROUND_TRUTH_FOLDER, Preparation
from osmabench_ros.runs.requirement import BAG_SUITES
from osmabench_ros.runs.results.report_model import RunReport
from osmabench_ros.runs.results.results_folder import undisturbed

DEFAULT_CONFIG = 'single_run'
GROUND_TRUTH_HELP = "A run's shared/SCENE/ground_truth, or from osmabench ground-truth."


class Device(str, Enum):
    """Where to compute."""

    AUTO = 'auto'
    CPU = 'cpu'
    CUDA = 'cuda'


@dataclass(frozen=True)
class Scoring:
    """Options of scoring and of the report."""

    questions: Annotated[
        Path | None, typer.Option(help='questions.jsonl of the scene; default: made anew.')
    ] = None
    suite: Annotated[list[str] | None, typer.Option(help='Only this suite; may be repeated.')] = (
        None
    )
    config: Annotated[
        str, typer.Option(help='Configuration that suites, requirements, text_features are from.')
    ] = DEFAULT_CONFIG
    out: Annotated[Path, typer.Option(help='Folder of report.json and page.')] = Path('evaluation')
    device: Annotated[Device, typer.Option(help='Where to compute.')] = Device.AUTO
    seed: Annotated[int, typer.Option(min=0, help='Seed of resampling and questions.')] = 0
    force: Annotated[
        bool, typer.Option('--force', help='Replace the report that is in --out, and the --rerun.')
    ] = False
    rerun: RerunFile = None

    @cached_property
    def settings(self) -> MatrixConfig:
        """The configuration."""
        return load_config(self.config)

    @cached_property
    def suites(self) -> list[SuiteConfig]:
        """The chosen suites, with the options that the configuration has for them."""
        if not self.suite:
            return list(self.settings.suites)
        configured = {item.name: item for item in self.settings.suites}
        return [configured.get(name, SuiteConfig(name=name)) for name in self.suite]

    @property
    def requirements(self) -> list[Requirement]:
        """Requirements of the chosen suites, and of suites that only bags have."""
        names = [item.name for item in self.suites]
        return [
            item
            for item in self.settings.requirements
            if item.base_suite in names or item.suite in BAG_SUITES
        ]

    @contextmanager
    def at_work(self) -> Iterator[Callable[[str, float], None]]:
        """Lock the folder of the report, and show the progress."""
        if self.rerun is not None:
            check_file(self.rerun, overwrite=self.force)
        with undisturbed(self.out), shown_progress() as progress:
            yield progress

    def record(
        self, map_directory: Path, ground_truth: Path, progress: Callable[[str, float], None]
    ) -> None:
        """Write the recording for Rerun, if it is wanted."""
        if self.rerun is not None:
            folders = map_directory, ground_truth
            max_distance_m, overwrite = max_distance_of(self.suites), self.force
            record_map(
                *folders, self.rerun, progress, max_distance_m=max_distance_m, overwrite=overwrite
            )


def conclude(report: RunReport, *files: Path) -> None:
    """Print figures and files; raises RequirementError if a requirement does not hold."""
    print_figures(report)
    for file in files:
        typer.echo(file)
    if report.failed_requirements:
        raise RequirementError(
            'requirements do not hold: ' + '; '.join(report.failed_requirements)
        )


@with_option_groups
def evaluate(
    map_directory: Annotated[
        Path, typer.Argument(metavar='MAP_DIR', help='Folder with map.json.')
    ],
    ground_truth: Annotated[Path, typer.Option(help=GROUND_TRUTH_HELP)],
    scoring: Scoring,
) -> None:
    """Score a map against the ground truth of its scene; needs no ROS.

    The map of a bag is scored by osmabench evaluate-bag.

    Exits with 4 if a requirement of the configuration does not hold.
    """
    inputs = EvaluationInputs(
        unnamed_run(scoring.seed),
        map_directory,
        ground_truth,
        scoring.out,
        scoring.questions,
        scoring.device.value,
        scoring.settings.text_features,
        allow_partial=True,
    )
    with scoring.at_work() as progress:
        report = evaluate_map(
            inputs,
            scoring.suites,
            scoring.requirements,
            replace=scoring.force,
            progress=progress,
        )
        page = write_map_page(report, scoring.out)
        scoring.record(map_directory, ground_truth, progress)
    conclude(report, scoring.out / 'report.json', page)


def ground_truth(
    config: Annotated[str, typer.Argument(help='YAML file, or a name such as "demo".')],
    out: Annotated[Path, typer.Option(help='Folder that gets shared/SCENE/.')],
) -> None:
    """Make path, ground truth and questions of every scene of a configuration; needs no ROS."""
    with shown_progress() as progress:
        made = Preparation().prepare_all(load_config(config), out, progress)
    for directory in made:
        typer.echo(directory / GROUND_TRUTH_FOLDER)
