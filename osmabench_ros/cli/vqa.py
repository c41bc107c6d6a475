"""`osmabench vqa`: each stage of question answering, on the folder of a run."""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import DryRun, ModelOptions, with_option_groups
from osmabench_ros.errors import ConfigError

if TYPE_CHECKING:
    from osmabench_ros.language.client import ModelClient, Spending
    from osmabench_ros.metrics.record import MetricRecord

app = typer.Typer(
    name='vqa', help='Generate, answer and judge questions about a run.', no_args_is_help=True
)
# Answering and judging without a model.
_OFFLINE = ('rule', 'deterministic', 'offline', '')

RunArgument = Annotated[Path, Argument(help='Folder of a run, below its matrix.')]


def _checked_name(name: str) -> str:
    if name != Path(name).name or name in ('', '.', '..'):
        raise ConfigError(f'--folder is "{name}"; it must be the name of a folder in the run')
    return name


FolderOption = Annotated[
    str,
    Option('--folder', callback=_checked_name, help='In the run; the page shows "vqa".'),
]
JudgeOption = Annotated[str, Option('--judge', help='"deterministic", or a model.')]


@app.command()
@with_option_groups
def generate(
    run: RunArgument,
    options: ModelOptions,
    dry_run: DryRun = False,
    kind: Annotated[Literal['exact', 'written'], Option(help='By rule or by a model.')] = 'exact',
    model: Annotated[str, Option(help='e.g. gemini:gemini-2.5-flash, openai:qwen3')] = '',
    count: Annotated[
        int | None, Option(min=1, help='Of exact questions; default: 184 or fewer.')
    ] = None,
    seed: Annotated[int | None, Option(help='Default: the seed of the scene.')] = None,
    every: Annotated[int, Option(min=1, help='Write about every n-th kept frame.')] = 1,
    novelty: Annotated[bool, Option(help='Choose frames with a new pose instead.')] = False,
    max_frames: Annotated[int, Option(min=1, help='Frames at most.')] = 40,
    folder: FolderOption = 'vqa',
) -> None:
    """Make the questions of a run's scene."""
    from osmabench_ros.runs.run_manifest import lock_results
    from osmabench_ros.vqa import stages

    place = stages.RunFolder(run, folder)
    client = None
    if kind == 'exact':
        if dry_run:
            typer.echo('exact questions need no request')
            return
        with lock_results(place.folder):
            chosen = place.seed if seed is None else seed
            questions = stages.generate_exact(place, seed=chosen, count=count)
    else:
        client = _client(options, model, dry_run=dry_run)
        if client is None:
            raise ConfigError('written questions need --model, e.g. gemini:gemini-2.5-flash')
        frames = stages.chosen_frames(place, every=every, novelty=novelty, most=max_frames)
        if dry_run:
            _print_estimate(stages.estimate_written(client, frames))
            typer.echo(f'for {len(frames)} frames, if every question reaches the check')
            return
        with lock_results(place.folder), shown_progress() as progress:
            questions = stages.generate_written(place, client, frames, progress)
    typer.echo(f'{len(questions)} questions in {place.folder}')
    print_spending(client)


@app.command()
@with_option_groups
def answer(
    run: RunArgument,
    options: ModelOptions,
    dry_run: DryRun = False,
    answerer: Annotated[str, Option(help='"rule", MODEL, tools:MODEL, ...')] = 'rule',
    compat: Annotated[bool, Option(help='Prompts built as the published code does.')] = (False),
    without_map: Annotated[bool, Option(help='Ask the model without any map.')] = False,
    graph_tokens: Annotated[int, Option(min=100, help='Budget for the graph.')] = 60_000,
    folder: FolderOption = 'vqa',
) -> None:
    """Answer a run's questions from its recorded scene graph."""
    from osmabench_ros.runs.matrix_on_disk import questioned_map
    from osmabench_ros.runs.run_manifest import lock_results
    from osmabench_ros.vqa import stages
    from osmabench_ros.vqa.answering.answerer import parse_reference
    from osmabench_ros.vqa.scores import UNSERVED

    place = stages.RunFolder(run, folder)
    shown = stages.AnswerOptions(compat, graph_tokens, without_map)
    answerer = stages.RULE if answerer in _OFFLINE else answerer
    client = _client(options, parse_reference(answerer)[1], dry_run=dry_run)
    count = len(place.questions())
    if dry_run and client is None:
        typer.echo(f'{count} questions by {answerer}: no request')
        return
    given = questioned_map(place)
    chosen = stages.choose_answerer(place, given, answerer, client, shown)
    if dry_run and client is not None:
        unknown = f'{count} questions; how many requests each takes depends on the replies'
        _print_estimate(stages.estimate_answers(place, given, chosen, client), unknown)
        return
    with lock_results(place.folder), shown_progress() as progress:
        answers = stages.answer(place, given, chosen, client, shown, progress)
    asked = [item for item in answers if item.note != UNSERVED]
    silent = sum(item.value is None for item in asked)
    typer.echo(f'{len(asked)} answers in {place.folder}, {silent} questions unanswered')
    _print_unasked(len(answers) - len(asked))
    print_spending(client)


@app.command()
@with_option_groups
def judge(
    run: RunArgument,
    options: ModelOptions,
    dry_run: DryRun = False,
    judge_name: JudgeOption = 'deterministic',
    folder: FolderOption = 'vqa',
) -> None:
    """Judge a run's answers."""
    from osmabench_ros.runs.matrix_on_disk import questioned_map
    from osmabench_ros.runs.run_manifest import lock_results
    from osmabench_ros.vqa import stages
    from osmabench_ros.vqa.scores import UNSERVED

    place = stages.RunFolder(run, folder)
    client = _client(options, judge_name, dry_run=dry_run)
    if dry_run:
        _print_estimate(stages.estimate_verdicts(place, client))
        return
    given = questioned_map(place)
    with lock_results(place.folder), shown_progress() as progress:
        verdicts = stages.judge(place, given, client, progress)
    asked = [item for item in verdicts if item.reason != UNSERVED]
    right = sum(item.correct for item in asked)
    typer.echo(f'{right} of {len(asked)} answers are right; verdicts in {place.folder}')
    _print_unasked(len(verdicts) - len(asked))
    print_spending(client)


@app.command()
def report(
    runs: Annotated[list[Path], Argument(help='Folders of runs, below their matrix.')],
    compat: Annotated[bool, Option(help='Leave out what the paper leaves out.')] = False,
    folder: FolderOption = 'vqa',
) -> None:
    """Print the accuracies of verdicts, by category, with the baselines.

    Of several runs also those over the questions that all of their maps can serve.
    """
    from osmabench_ros.reports.terminal import print_accuracies
    from osmabench_ros.runs.matrix_on_disk import questioned_map
    from osmabench_ros.runs.run_manifest import lock_results
    from osmabench_ros.vqa import stages
    from osmabench_ros.vqa.scores import common_accuracies

    scenes: dict[str, dict[stages.RunFolder, list[MetricRecord]]] = defaultdict(dict)
    for place in (stages.RunFolder(run, folder) for run in runs):
        with lock_results(place.folder):
            scores = stages.report(place, questioned_map(place), compat=compat)
        scenes[place.scene][place] = scores
    for compared in scenes.values():
        stages.check_same_questions(list(compared))
        common = common_accuracies(compared)
        for place, scores in compared.items():
            if len(runs) > 1:
                typer.echo(place.directory)
            print_accuracies([*scores, *common[place]])
            for line in stages.remarks(place):
                typer.echo(line)


@app.command()
@with_option_groups
def judge_check(
    files: Annotated[list[Path], Argument(help='Saved answers with verdicts.')],
    options: ModelOptions,
    dry_run: DryRun = False,
    judge_name: JudgeOption = 'deterministic',
    list_doubtful: Annotated[int, Option(min=0, help='Doubtful published verdicts to list.')] = 20,
) -> None:
    """Compare a judge with published verdicts: agreement and Cohen's kappa, by category.

    Exit code 1 if the judge rejects an answer that is equal to the right one.
    """
    from osmabench_ros.reports.terminal import print_judge_check
    from osmabench_ros.vqa import stages
    from osmabench_ros.vqa.agreement import check_judge
    from osmabench_ros.vqa.saved_answers import read_saved_answers

    client = _client(options, judge_name, dry_run=dry_run)
    saved = read_saved_answers(files)
    judge = stages.judge_of_free_text(client)
    if dry_run:
        _print_estimate(stages.estimate(client, lambda: check_judge(saved, judge)))
        return
    with shown_progress() as progress:
        check = check_judge(saved, judge, progress)
    print_judge_check(check, list_doubtful)
    print_spending(client)
    if check.equal_strings_rejected:
        raise typer.Exit(1)


def _client(options: ModelOptions, model: str, *, dry_run: bool) -> ModelClient | None:
    if model in _OFFLINE:
        return None
    from osmabench_ros.language.settings import run_dry

    with run_dry() if dry_run else nullcontext():
        return options.access.client_of(model)


def _print_unasked(count: int) -> None:
    from osmabench_ros.vqa.scores import UNSERVED

    if count:
        typer.echo(f'{count} questions are {UNSERVED}')


def _print_estimate(
    estimate: Spending | None, text: str = 'the deterministic judge makes no request'
) -> None:
    """Print the most that a command would take, or why there is no estimate."""
    if estimate is not None:
        text = (
            f'{estimate.requests + estimate.cache_hits} requests, {estimate.cache_hits} of them '
            f'in the cache; about {estimate.prompt_tokens} tokens to send, at most '
            f'{estimate.output_tokens} to receive, cost at most {estimate.cost:.4f}'
        )
    typer.echo(text)


def print_spending(client: ModelClient | None) -> None:
    """Print the accounts of a model, nothing if none was asked."""
    if client is None:
        return
    spent = client.ledger.spending
    typer.echo(
        f'{spent.requests} requests, {spent.cache_hits} replies from the cache, '
        f'{spent.prompt_tokens} tokens sent, {spent.output_tokens} received, '
        f'cost {spent.cost:.4f}'
    )
