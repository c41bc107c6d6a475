"""`osmabench score`: metrics from saved intermediate results, such as published ones."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import AsJson, ModelOptions, with_option_groups, with_verbosity
from osmabench_ros.errors import ConfigError, MetricError, errors_as, warn

if TYPE_CHECKING:
    from osmabench_ros.metrics.trajectory_records import TrajectorySettings
    from osmabench_ros.vqa.published import Published

Format = Annotated[Literal['csv', 'json'], Option('--format', help='How to print the rows.')]


class _Protocols(TyperGroup):
    """The commands, and one for each installed suite with published files."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command of the package, else of the suite with its name."""
        from osmabench_ros.base.configuration import SUITES, extension_names

        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in extension_names(SUITES):
            return own
        single = typer.Typer()

        @single.command()
        @with_verbosity
        def score(files: list[Path], table_format: Format = 'csv') -> None:
            """Score published files of a suite."""
            _score_files(cmd_name, files, table_format)

        return typer.main.get_command(single)


app = typer.Typer(
    cls=_Protocols, name='score', no_args_is_help=True,
    help='Score saved results: confusion matrices, answers, trajectories, and published files of '
    'any installed suite that describes them, by its name.',
)  # fmt: skip


@app.command()
def confusion(
    files: Annotated[list[Path], Argument(help='.npz, published pickles, or folders of them.')],
    table_format: Format = 'csv',
    ignore: Annotated[
        list[int] | None, Option(help='Class id to leave out; default: 0, "other".')
    ] = None,
    together: Annotated[bool, Option('--together', help='All files are one set.')] = False,
) -> None:
    """Score confusion matrices by the rules of OSMa-Bench.

    Prints miou, fmiou, macc and scene: a row for each scene, then "overall" (the summed matrix)
    and "overall_mean". With several sets of scenes a column names the set of a row.
    """
    from osmabench_ros.metrics.confusion import read_confusion_sets
    from osmabench_ros.metrics.segmentation import COMPAT_IGNORED, score_scenes

    sets = read_confusion_sets(files, together=together)
    ignored = COMPAT_IGNORED if ignore is None else tuple(ignore)
    rows: list[dict[str, Any]] = [
        {**row._asdict(), **({'source': source} if len(sets) > 1 else {})}
        for source, matrices in sets.items()
        for row in score_scenes(matrices, ignored=ignored)
    ]
    _print_rows(rows, table_format)


@app.command()
def answers(
    files: Annotated[
        list[Path],
        Argument(
            help='Runs of ours, *_evaluated.json of OSMa-Bench, *answered*.json of OSMa-Bench++, '
            'folders of them, or JSON lines, plain or .gz, with question, answer, category, '
            'scene_graph_answer and, if known, similar, scene and condition.'
        ),
    ],
    table_format: Format = 'csv',
    reference: Annotated[str, Option(help='Condition that changes start from.')] = '',
    baselines: Annotated[bool, Option(help='Add constant and question-only answers.')] = True,
) -> None:
    """Recompute accuracies, overall and by category, from saved answers.

    Verdicts are taken from "similar"; answers without one are judged by rule, and answers with
    the verdict "N/A" count as wrong and are counted as unjudged. A row for each scene
    and condition, then pooled rows with an interval over scenes. With published files of several
    folders a column names the folder of a row.
    """
    from osmabench_ros.base.processes import without_garbage_collection
    from osmabench_ros.vqa.saved_answers import saved_answers

    with without_garbage_collection():
        rows = saved_answers(reference, baselines=baselines).score_files(files)
    _print_rows(rows, table_format)


@app.command()
def hypo3d(
    files: Annotated[list[Path], Argument(help='JSON of Hypo3D with "predicted_answer".')],
    table_format: Format = 'csv',
) -> None:
    """Score saved answers of Hypo3D by exact and partial match, as published and strictly.

    A row for all answers, then by kind of change and of question. "similarity" is the mean cosine
    of all-MiniLM-L6-v2, where that is installed.
    """
    _score_files('hypo3d', files, table_format)


@app.command()
def cospace(
    files: Annotated[list[Path], Argument(help='JSON lines, with "pred" where answered.')],
    table_format: Format = 'csv',
) -> None:
    """Score predictions for CoSpace as published and strictly, a row a task and order of images.

    With several orders of a task a row "all" has them together: "accuracy" is ACC_q of the paper,
    "accuracy_pairs" its ACC_p. Annotations without predictions give only the baselines.
    """
    _score_files('cospace', files, table_format)


def _score_files(suite: str, files: Sequence[Path], table_format: str) -> None:
    from osmabench_ros.base.configuration import SUITES, load_extension

    published = getattr(load_extension(SUITES, suite), 'published', None)
    if published is None:
        raise ConfigError(f'suite "{suite}" describes no published files')
    _print_rows(published.score_files(files), table_format)


@app.command()
def grounding(
    predictions: Annotated[Path, Argument(help='pred.json, or Nr3D with "predicted_id".')],
    truth: Annotated[Path | None, Option(help='True boxes of ScanRefer.')] = None,
    table_format: Format = 'csv',
) -> None:
    """Score predictions of visual grounding as published and strictly, by difficulty.

    Of ScanRefer Acc@0.25 and Acc@0.5, unique and multiple; of ReferIt3D the accuracy, easy and
    hard, by viewpoint or without.
    """
    from osmabench_ros.suites.grounding.suite import REFERIT3D, scanrefer

    published: Published[Any] = REFERIT3D if truth is None else scanrefer(truth)
    _print_rows(published.score_files([predictions]), table_format)


def _print_rows(rows: Sequence[dict[str, Any]], table_format: str) -> None:
    # Both formats can write None, and not NaN.
    rows = [{key: x if x == x else None for key, x in row.items()} for row in rows]
    if table_format == 'json':
        typer.echo(json.dumps(rows, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)


@app.command()
def promptgt(
    standard: Annotated[Path, Argument(help='Folder of answers to standard questions.')],
    prompt: Annotated[Path, Argument(help='Folder of answers to PromptGT questions.')],
    long: Annotated[bool, Option('--long', help='A row for each block, with counts.')] = False,
    table_format: Format = 'csv',
) -> None:
    """Compare answers to standard and to PromptGT questions as OSMa-Bench++ does.

    Answers without verdict stay in the denominator.
    """
    from osmabench_ros.suites.promptgt import compare_sources

    _print_rows(compare_sources(long=long).score_files([standard, prompt]), table_format)


@app.command()
@with_option_groups
def space3d(
    folders: Annotated[list[Path], Argument(help='Scene folders, with answers.json.')],
    options: ModelOptions,
    answers_file: Annotated[
        Path | None, Option('--answers', help='Answers of one scene, if they are elsewhere.')
    ] = None,
    mode: Annotated[
        Literal['compat', 'strict'], Option(help='Published, or by rule first.')
    ] = 'strict',
    judge: Annotated[str, Option(help='Model that judges texts, e.g. openai:qwen3.')] = '',
    vision_judge: Annotated[str, Option('--vision-judge', help='Judges by an image.')] = '',
    out: Annotated[Path, Option(help='Folder that gets the verdicts, SCENE/result.json.')] = Path(
        'space3d_results'
    ),
) -> None:
    """Score answers to Space3D-Bench, a row per scene, and keep the verdicts.

    In compat models judge all answers; call again after an interruption to go on.
    """
    from osmabench_ros.metrics.record import Mode
    from osmabench_ros.suites.space3d.scoring import Grading

    access = options.access
    text, vision = (access.client_of(x) if x else None for x in (judge, vision_judge))
    with shown_progress() as progress:
        grading = Grading(Mode(mode), out, text, vision, answers_file, progress)
        rows = grading.published().score_files(folders)
    _print_rows(rows, 'csv')


_NAMES = 'TUM file, or BAG:TOPIC; the topic may be /tf:PARENT.CHILD.'

pose_option = partial(Option, rich_help_panel='Trajectory')

TrajectoryAlign = Annotated[
    Literal['none', 'se3', 'sim3', 'origin'], pose_option(help='Alignment before absolute errors.')
]


@dataclass(frozen=True)
class PairingOptions:
    """Which poses of two trajectories are compared."""

    max_diff: Annotated[float, pose_option('--max-diff', min=0, help='Of stamps, seconds.')] = 0.01
    time_offset: Annotated[float, pose_option(help="Seconds to add to the stack's stamps.")] = 0.0
    rpe_delta: Annotated[float, pose_option(help='Interval of relative errors.')] = 1.0
    rpe_unit: Annotated[
        Literal['frames', 'seconds', 'metres'], pose_option(help='Unit of that interval.')
    ] = 'frames'
    rpe_all_pairs: Annotated[bool, pose_option('--rpe-all-pairs', help='All intervals.')] = False

    def settings(self, align: str) -> TrajectorySettings:
        """Return how trajectories are compared."""
        from osmabench_ros.metrics.trajectory import DeltaInterval, DeltaUnit, TrajectoryAlignment
        from osmabench_ros.metrics.trajectory_records import TrajectorySettings

        alignment = TrajectoryAlignment(align)
        interval = DeltaInterval(self.rpe_delta, DeltaUnit(self.rpe_unit), self.rpe_all_pairs)
        return TrajectorySettings(alignment, self.max_diff, self.time_offset, interval)


@app.command()
@with_option_groups
def trajectory(
    estimate: Annotated[str, Argument(help=f"The stack's own poses: {_NAMES}")],
    reference: Annotated[str, Argument(help=f'True poses: {_NAMES}')],
    pairing: PairingOptions,
    align: TrajectoryAlign = 'se3',
    out: Annotated[Path | None, Option(help='Folder of JSON and page.')] = None,
    as_json: AsJson = False,
) -> None:
    """Score a trajectory: absolute and relative pose errors by the conventions of evo.

    Needs no ROS. Metrics under "trajectory" are of the poses as recorded, metrics under
    "trajectory@aligned" of the poses after the alignment.
    """
    from osmabench_ros.base.files import claim_folder, write_json
    from osmabench_ros.metrics.trajectory_records import score_trajectory
    from osmabench_ros.reports.page.single_pages import write_trajectory_page
    from osmabench_ros.reports.terminal import print_trajectory
    from osmabench_ros.runs.bag_content import read_trajectory

    settings = pairing.settings(align)
    if out is not None:
        claim_folder(out)
    true = read_trajectory(reference)
    own = read_trajectory(estimate)
    with errors_as(MetricError, f'{estimate} against {reference}', MetricError):
        score = score_trajectory(true, own, settings)
    for remark in score.remarks:
        warn(remark)
    figures = [record.to_json() for record in score.records]
    if out is not None:
        write_json(out / 'trajectory.json', figures)
        page = write_trajectory_page(score, estimate, reference, out)
    if as_json:
        typer.echo(json.dumps(figures, indent=1))
        return
    print_trajectory(score)
    if out is not None:
        typer.echo(page)
