"""Options of `map evaluate` and `bag evaluate`, and how both end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from osmabench_ros.base.files import check_file
from osmabench_ros.base.progress import Progress, shown_progress
from osmabench_ros.cli.options import RerunFile

if TYPE_CHECKING:
    from osmabench_ros.runs.config import MatrixConfig, Requirement, SuiteConfig
    from osmabench_ros.runs.results.report_model import RunReport

GROUND_TRUTH_HELP = "A run's shared/SCENE/ground_truth, or from osmabench scene ground-truth."


@dataclass(frozen=True)
class Scoring:
    """Options of scoring and of the report."""

    questions: Annotated[Path | None, Option(help='questions.jsonl; default: made now.')] = None
    suite: Annotated[list[str] | None, Option(help='Only this suite; may be repeated.')] = None
    config: Annotated[str, Option(help='Of suites, requirements, text_features.')] = 'single_run'
    out: Annotated[Path, Option(help='Folder of report.json and page.')] = Path('evaluation')
    device: Annotated[Literal['auto', 'cpu', 'cuda'], Option(help='Where to compute.')] = 'auto'
    seed: Annotated[int, Option(min=0, help='Seed of resampling and questions.')] = 0
    force: Annotated[bool, Option('--force', help='Replace --out and --rerun.')] = False
    rerun: RerunFile = None

    @cached_property
    def settings(self) -> MatrixConfig:
        """The configuration."""
        from osmabench_ros.runs.config import load_config

        return load_config(self.config)

    @cached_property
    def suites(self) -> list[SuiteConfig]:
        """The chosen suites, with the options that the configuration has for them."""
        from osmabench_ros.runs.config import SuiteConfig

        if not self.suite:
            return list(self.settings.suites)
        configured = {item.name: item for item in self.settings.suites}
        return [configured.get(name, SuiteConfig(name=name)) for name in self.suite]

    @property
    def requirements(self) -> list[Requirement]:
        """Requirements of the chosen suites, and of suites that only bags have."""
        from osmabench_ros.runs.requirement import BAG_SUITES

        names = [item.name for item in self.suites]
        return [
            item
            for item in self.settings.requirements
            if item.base_suite in names or item.suite in BAG_SUITES
        ]

    @contextmanager
    def at_work(self) -> Iterator[Progress]:
        """Lock the folder of the report, and show the progress."""
        from osmabench_ros.runs.results.results_folder import undisturbed

        if self.rerun is not None:
            check_file(self.rerun, overwrite=self.force)
        with undisturbed(self.out), shown_progress() as progress:
            yield progress

    def record(self, map_directory: Path, ground_truth: Path, progress: Progress) -> None:
        """Write the recording for Rerun, if it is wanted."""
        if self.rerun is not None:
            from osmabench_ros.reports.outcomes import max_distance_of
            from osmabench_ros.reports.rerun.rerun_export import record_map

            folders = map_directory, ground_truth
            max_distance_m, overwrite = max_distance_of(self.suites), self.force
            record_map(
                *folders, self.rerun, progress, max_distance_m=max_distance_m, overwrite=overwrite
            )


def conclude(report: RunReport, *files: Path) -> None:
    """Print figures and files; raises RequirementError if a requirement does not hold."""
    from osmabench_ros.reports.terminal import print_figures

    print_figures(report)
    for file in files:
        typer.echo(file)
    report.check_requirements()
