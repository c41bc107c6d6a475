"""`osmabench evaluate` and `osmabench ground-truth`: scores of a map, without ROS."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.cli.progress import shown_progress
from osmabench_ros.cli.rerun_option import RerunFile
from osmabench_ros.errors import RequirementError
from osmabench_ros.reports.figures import print_figures
from osmabench_ros.reports.outcomes import gate_of
from osmabench_ros.reports.view_of_run import record_map
from osmabench_ros.runs.config import MatrixConfig, SuiteConfig, load_config
from osmabench_ros.runs.map_evaluation import MapOnDisk, evaluate_map
from osmabench_ros.runs.preparation import GROUND_TRUTH_FOLDER, prepare_scenes

DEFAULT_CONFIG = 'single_run'


class Device(str, Enum):
    """Where to compute."""

    AUTO = 'auto'
    CPU = 'cpu'
    CUDA = 'cuda'


def evaluate(
    map_directory: Annotated[
        Path, typer.Argument(metavar='MAP_DIR', help='Folder with map.json.')
    ],
    ground_truth: Annotated[
        Path,
        typer.Option(help="A run's shared/SCENE/ground_truth, or from osmabench ground-truth."),
    ],
    questions: Annotated[
        Path | None, typer.Option(help='questions.jsonl of the scene; default: made anew.')
    ] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help='Only this suite; may be repeated.')
    ] = None,
    config: Annotated[
        str, typer.Option(help='Configuration that suites, requirements, text_features are from.')
    ] = DEFAULT_CONFIG,
    out: Annotated[Path, typer.Option(help='Folder that gets report.json.')] = Path('evaluation'),
    device: Annotated[Device, typer.Option(help='Where to compute.')] = Device.AUTO,
    seed: Annotated[int, typer.Option(min=0, help='Seed of resampling and questions.')] = 0,
    force: Annotated[
        bool, typer.Option('--force', help='Replace the report that is in --out.')
    ] = False,
    rerun: RerunFile = None,
) -> None:
    """Score a map against the ground truth of its scene; needs no ROS.

    Exits with 4 if a requirement of the configuration does not hold.
    """
    settings = load_config(config)
    suites = _suites(settings, suite)
    names = [item.name for item in suites]
    requirements = [item for item in settings.requirements if item.suite in names]
    source = MapOnDisk(
        map_directory, ground_truth, questions, settings.text_features, device.value, seed
    )
    with shown_progress() as progress:
        report = evaluate_map(source, suites, out, requirements, replace=force, progress=progress)
        if rerun is not None:
            record_map(map_directory, ground_truth, rerun, progress, gate_m=gate_of(suites))
    print_figures(report)
    typer.echo(out / 'report.json')
    if report.failed_requirements:
        raise RequirementError(
            'requirements do not hold: ' + '; '.join(report.failed_requirements)
        )


def _suites(settings: MatrixConfig, names: list[str] | None) -> list[SuiteConfig]:
    """Return the named suites, with the options that the configuration has for them."""
    if not names:
        return list(settings.suites)
    configured = {item.name: item for item in settings.suites}
    return [configured.get(name, SuiteConfig(name=name)) for name in names]


def ground_truth(
    config: Annotated[str, typer.Argument(help='YAML file, or a name such as "demo".')],
    out: Annotated[Path, typer.Option(help='Folder that gets shared/SCENE/.')],
) -> None:
    """Make path, ground truth and questions of every scene of a configuration; needs no ROS."""
    with shown_progress() as progress:
        made = prepare_scenes(load_config(config), out, progress)
    for directory in made:
        typer.echo(directory / GROUND_TRUTH_FOLDER)
