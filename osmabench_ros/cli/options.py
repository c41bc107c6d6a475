"""Options that several commands share, also for scoring."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from osmabench_ros.base.files import check_file
from osmabench_ros.base.log import set_verbosity
from osmabench_ros.base.progress import Progress, shown_progress
from osmabench_ros.errors import ConfigError

if TYPE_CHECKING:
    from osmabench_ros.language.settings import ModelAccess
    from osmabench_ros.runs.config import Requirement, ScoringConfig, SuiteConfig
    from osmabench_ros.runs.report_model import RunReport

GROUND_TRUTH_HELP = "A run's shared/SCENE/ground_truth, or from osmabench scene ground-truth."


def _checked(file: Path | None) -> Path | None:
    # A missing library is reported before minutes are spent.
    if file is not None:
        from osmabench_ros.reports.rerun_recording import require_rerun

        require_rerun()
    return file


Config = Annotated[str, Argument(help='YAML file, or a name in config/, e.g. demo.')]
NewFolder = Annotated[Path, Option('--out', help='Folder to write; must not exist, or be empty.')]
Overwrite = Annotated[bool, Option('--overwrite', help='Replace a file that no run made.')]
SceneName = Annotated[str, Option('--scene', help='Scene of a data set.')]
Seed = Annotated[int, Option('--seed', min=0, help='Seed of the apartment.')]
AsJson = Annotated[bool, Option('--json', help='Print JSON for programs.')]
RerunFile = Annotated[
    Path | None,
    Option('--rerun', metavar='FILE.rrd', callback=_checked, help='Also record runs for Rerun.'),
]
_model_option = partial(Option, rich_help_panel='Language model')
DryRun = Annotated[bool, _model_option('--dry-run', help='Print counts and costs; ask no model.')]


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """Options of language models; None leaves the default of `ModelAccess`."""

    base_url: Annotated[str | None, _model_option(help='Address of your own server.')] = None
    cache: Annotated[Path | None, _model_option(help='Folder of replies; else ~/.cache.')] = None
    concurrency: Annotated[int | None, _model_option(help='Requests at a time; else 4.')] = None
    max_tokens: Annotated[int | None, _model_option(help='Stop before more tokens.')] = None
    max_cost: Annotated[float | None, _model_option(help='Stop before more is spent.')] = None
    input_price: Annotated[float | None, _model_option(help='For a million tokens sent.')] = None
    output_price: Annotated[float | None, _model_option(help='For a million received.')] = None
    timeout_s: Annotated[
        float | None, _model_option('--timeout', help='Seconds for a reply; else 120.')
    ] = None

    @property
    def access(self) -> ModelAccess:
        """The checked settings."""
        from osmabench_ros.base.strict import validated
        from osmabench_ros.language.settings import ModelAccess

        return validated(ModelAccess, given_of(**vars(self)), 'options')


def given_of(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def pair_of(text: str, sign: str, option: str, form: str) -> tuple[str, str]:
    """Return both sides of a sign in the value of an option; ConfigError names the right form."""
    before, found, after = text.partition(sign)
    if not (before and found and after):
        raise ConfigError(f'{option} "{text}" is not of the form {form}')
    return before, after


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of the dataclasses among its parameters.

    Typer reads options from a signature: the one of the command, with each dataclass replaced by
    its fields, which are annotated with their options.
    """
    groups: dict[str, tuple[type, list[str]]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            options.append(parameter)
            continue
        fields = inspect.signature(kind, eval_str=True).parameters
        groups[parameter.name] = (kind, list(fields))
        options += fields.values()

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: group(**{field: values.pop(field) for field in fields})
            for name, (group, fields) in groups.items()
        }
        command(**values, **made)

    only = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([item.replace(kind=only) for item in options])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


@dataclass(frozen=True)
class Verbosity:
    """Options of every command."""

    verbose: Annotated[bool, Option('--verbose', help='Show details and tracebacks.')] = False
    quiet: Annotated[bool, Option('--quiet', help='Show results and errors only.')] = False


def with_verbosity(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options --verbose and --quiet."""

    def run(*, verbosity: Verbosity, **values: Any) -> None:
        if verbosity.verbose and verbosity.quiet:
            raise ConfigError('--verbose and --quiet contradict each other')
        set_verbosity(verbose=verbosity.verbose, quiet=verbosity.quiet)
        command(**values)

    signature = inspect.signature(command, eval_str=True)
    own = inspect.Parameter('verbosity', inspect.Parameter.KEYWORD_ONLY, annotation=Verbosity)
    functools.update_wrapper(run, command)
    run.__signature__ = inspect.Signature([*signature.parameters.values(), own])  # type: ignore[attr-defined]
    return with_option_groups(run)


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
    def settings(self) -> ScoringConfig:
        """The configuration."""
        from osmabench_ros.runs.config import load_scoring

        return load_scoring(self.config)

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
        from osmabench_ros.metrics.trajectory_records import ALIGNED
        from osmabench_ros.runs.config import BAG_SUITES

        names = [item.name for item in self.suites]
        return [
            item
            for item in self.settings.requirements
            if item.suite.removesuffix(ALIGNED) in names or item.suite in BAG_SUITES
        ]

    @contextmanager
    def at_work(self) -> Iterator[Progress]:
        """Lock the folder of the report, and show the progress."""
        from osmabench_ros.runs.run_manifest import lock_results

        if self.rerun is not None:
            check_file(self.rerun, overwrite=self.force)
        with lock_results(self.out), shown_progress() as progress:
            yield progress

    def record(self, map_directory: Path, ground_truth: Path, progress: Progress) -> None:
        """Write the recording for Rerun, if it is wanted."""
        if self.rerun is not None:
            from osmabench_ros.reports.pictures.graph_errors import read_max_distance
            from osmabench_ros.reports.rerun_recording import read_map_scene, write_rerun

            max_distance_m = read_max_distance(self.suites)
            view = read_map_scene(map_directory, ground_truth, max_distance_m)
            write_rerun(view, self.rerun, progress, overwrite=self.force)


def conclude(report: RunReport, *files: Path) -> None:
    """Print metrics and files; raises RequirementError if a requirement does not hold."""
    from osmabench_ros.reports.terminal import print_metrics

    print_metrics(report)
    for file in files:
        typer.echo(file)
    report.check_requirements()
