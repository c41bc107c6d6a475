"""`osmabench vqa`: each stage of question answering alone, on a run directory."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.cli.model_options import ModelOptions, with_model_options
from osmabench_ros.cli.progress import shown_progress
from osmabench_ros.cli.vqa_tables import (
    print_check,
    print_estimate,
    print_records,
    print_spending,
)
from osmabench_ros.errors import ConfigError
from osmabench_ros.language.client import Estimate, ModelClient
from osmabench_ros.runs.questioned_map import questioned_map
from osmabench_ros.runs.results_folder import undisturbed
from osmabench_ros.vqa import stages
from osmabench_ros.vqa.answering.language_model import DEFAULT_GRAPH_TOKENS
from osmabench_ros.vqa.applicability import UNSERVED
from osmabench_ros.vqa.exact.generation import DEFAULT_COUNT
from osmabench_ros.vqa.judging.agreement import check_judge, judged_answers
from osmabench_ros.vqa.judging.language_model import LanguageModelJudge
from osmabench_ros.vqa.published import read_saved_answers
from osmabench_ros.vqa.run_folder import RunFolder
from osmabench_ros.vqa.written.expectation import expected_requests
from osmabench_ros.vqa.written.pipeline import QuestionWriter

app = typer.Typer(help='Generate, answer and judge questions about a run.', no_args_is_help=True)

_LISTED_VERDICTS = 20


class QuestionKind(str, Enum):
    """Where questions come from."""

    EXACT = 'exact'
    WRITTEN = 'written'


RunArgument = Annotated[Path, typer.Argument(help='Folder of a run, below its matrix.')]
FolderOption = Annotated[
    str, typer.Option('--folder', help='Folder of the stages in the run; the page shows "vqa".')
]
JudgeOption = Annotated[str, typer.Option('--judge', help='"deterministic", or a model.')]


@app.command()
@with_model_options
def generate(
    run: RunArgument,
    options: ModelOptions,
    kind: Annotated[QuestionKind, typer.Option(help='From the graph, or by a model.')] = (
        QuestionKind.EXACT
    ),
    model: Annotated[str, typer.Option(help='e.g. gemini:gemini-2.5-flash, openai:qwen3')] = '',
    count: Annotated[int, typer.Option(min=1, help='Exact questions wanted.')] = DEFAULT_COUNT,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the exact questions; else the scene's.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help='Write about every n-th kept frame.')] = 1,
    novelty: Annotated[bool, typer.Option(help='Choose frames with a new pose instead.')] = False,
    max_frames: Annotated[int, typer.Option(min=1, help='Frames at most.')] = 40,
    folder: FolderOption = 'vqa',
) -> None:
    """Make the questions of a run's scene."""
    place = RunFolder(run, folder)
    if kind is QuestionKind.EXACT:
        _generate_exact(place, count, seed, dry_run=options.dry_run)
        return
    client = options.client(model)
    if client is None:
        raise ConfigError('written questions need --model, e.g. gemini:gemini-2.5-flash')
    frames = stages.chosen_frames(place, every=every, novelty=novelty, most=max_frames)
    if options.dry_run:
        print_estimate(client.estimate(expected_requests(QuestionWriter(client), frames)))
        typer.echo(f'for {len(frames)} frames, if every question reaches the check')
        return
    with undisturbed(place.folder), shown_progress() as progress:
        questions = stages.generate_written(place, client, frames, progress)
    typer.echo(f'{len(questions)} questions in {place.folder}')
    print_spending(client)


def _generate_exact(place: RunFolder, count: int, seed: int | None, *, dry_run: bool) -> None:
    if dry_run:
        typer.echo('exact questions need no request')
        return
    chosen = place.seed if seed is None else seed
    with undisturbed(place.folder):
        questions = stages.generate_exact(place, seed=chosen, count=count)
    typer.echo(f'{len(questions)} questions in {place.folder}')


@app.command()
@with_model_options
def answer(
    run: RunArgument,
    options: ModelOptions,
    answerer: Annotated[str, typer.Option(help='"rule", or a model.')] = 'rule',
    compat: Annotated[bool, typer.Option(help='Prompts built as the published code does.')] = (
        False
    ),
    without_map: Annotated[bool, typer.Option(help='Ask the model without any map.')] = False,
    graph_tokens: Annotated[int, typer.Option(min=100, help='Budget for the graph.')] = (
        DEFAULT_GRAPH_TOKENS
    ),
    folder: FolderOption = 'vqa',
) -> None:
    """Answer a run's questions from its recorded scene graph."""
    place = RunFolder(run, folder)
    shown = stages.AnswerOptions(compat, graph_tokens, without_map)
    client = options.client(answerer)
    if options.dry_run:
        _print_dry_answers(place, client, shown)
        return
    given = questioned_map(place)
    with undisturbed(place.folder), shown_progress() as progress:
        answers = stages.answer(place, given, client, shown, progress)
    asked = [item for item in answers if item.note != UNSERVED]
    silent = sum(item.value is None for item in asked)
    typer.echo(
        f'{len(asked)} answers in {place.folder}, {silent} questions unanswered'
        f'{_not_asked(len(answers) - len(asked))}'
    )
    print_spending(client)


def _not_asked(count: int) -> str:
    return f'; {count} questions are {UNSERVED}' if count else ''


def _print_dry_answers(
    place: RunFolder, client: ModelClient | None, shown: stages.AnswerOptions
) -> None:
    if client is None:
        typer.echo(f'{len(place.questions())} questions by rule: no request')
        return
    print_estimate(stages.estimate_answers(place, questioned_map(place), client, shown))


@app.command()
@with_model_options
def judge(
    run: RunArgument,
    options: ModelOptions,
    judge_name: JudgeOption = 'deterministic',
    folder: FolderOption = 'vqa',
) -> None:
    """Judge a run's answers."""
    place = RunFolder(run, folder)
    client = options.client(judge_name)
    if options.dry_run:
        _print_dry_judge(client, lambda asked: stages.estimate_verdicts(place, asked))
        return
    given = questioned_map(place)
    with undisturbed(place.folder), shown_progress() as progress:
        verdicts = stages.judge(place, given, client, progress)
    asked = [item for item in verdicts if item.reason != UNSERVED]
    right = sum(item.correct for item in asked)
    typer.echo(
        f'{right} of {len(asked)} answers are right; verdicts in {place.folder}'
        f'{_not_asked(len(verdicts) - len(asked))}'
    )
    print_spending(client)


def _print_dry_judge(
    client: ModelClient | None, estimate: Callable[[ModelClient], Estimate]
) -> None:
    if client is None:
        typer.echo('the deterministic judge makes no request')
    else:
        print_estimate(estimate(client))


@app.command()
def report(
    run: RunArgument,
    compat: Annotated[bool, typer.Option(help='Leave out what the paper leaves out.')] = False,
    folder: FolderOption = 'vqa',
) -> None:
    """Print the accuracies of a run's verdicts, by category, beside the baselines."""
    place = RunFolder(run, folder)
    with undisturbed(place.folder):
        scores = stages.report(place, questioned_map(place), compat=compat)
    print_records(scores)
    for line in stages.remarks(place):
        typer.echo(line)


@app.command('judge-check')
@with_model_options
def judge_check(
    files: Annotated[list[Path], typer.Argument(help='Saved answers with "similar".')],
    options: ModelOptions,
    judge_name: JudgeOption = 'deterministic',
    list_doubtful: Annotated[
        int, typer.Option(min=0, help='Doubtful published verdicts to list.')
    ] = _LISTED_VERDICTS,
) -> None:
    """Compare a judge with published verdicts: agreement and Cohen's kappa, by category.

    Exit code 1 if the judge rejects an answer that is equal to the right one.
    """
    client = options.client(judge_name)
    saved = read_saved_answers(files)
    if options.dry_run:
        pairs = judged_answers(saved)
        _print_dry_judge(
            client, lambda asked: asked.estimate(LanguageModelJudge(asked).requests(pairs))
        )
        return
    with shown_progress() as progress:
        check = check_judge(saved, stages.judge_of_free_text(client), progress)
    print_check(check, list_doubtful)
    print_spending(client)
    if check.equal_strings_rejected:
        raise typer.Exit(1)
