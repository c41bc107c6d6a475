"""`osmabench vqa`: each stage of question answering alone, on a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from osmabench_ros.cli.progress import shown_progress
from osmabench_ros.errors import ConfigError
from osmabench_ros.language.budget import Prices
from osmabench_ros.language.client import Estimate, ModelClient
from osmabench_ros.language.settings import ModelSettings
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.vqa import stages
from osmabench_ros.vqa.answering.language_model import DEFAULT_GRAPH_TOKENS
from osmabench_ros.vqa.exact.generation import DEFAULT_COUNT
from osmabench_ros.vqa.judging.agreement import JudgeCheck, check_judge
from osmabench_ros.vqa.published import read_saved_answers
from osmabench_ros.vqa.run_folder import RunFolder
from osmabench_ros.vqa.written.expectation import expected_requests
from osmabench_ros.vqa.written.pipeline import QuestionWriter

app = typer.Typer(help='Generate, answer and judge questions about a run.', no_args_is_help=True)

OFFLINE = ('rule', 'deterministic', 'offline', '')
_LISTED_VERDICTS = 20
_WIDTH = 240


class QuestionKind(str, Enum):
    """Where questions come from."""

    EXACT = 'exact'
    WRITTEN = 'written'


RunArgument = Annotated[Path, typer.Argument(help='Folder of a run, below its matrix.')]
FolderOption = Annotated[
    str, typer.Option('--folder', help='Folder of the stages in the run; the page shows "vqa".')
]
UrlOption = Annotated[str, typer.Option('--base-url', help='Address of a server of your own.')]
CacheOption = Annotated[
    Path | None, typer.Option('--cache', help='Folder of kept replies; else ~/.cache/osmabench.')
]
ConcurrencyOption = Annotated[
    int, typer.Option('--concurrency', min=1, help='Requests under way at a time.')
]
TokensOption = Annotated[
    int | None, typer.Option('--max-tokens', help='Stop before more tokens than these are used.')
]
CostOption = Annotated[
    float | None, typer.Option('--max-cost', help='Stop before more than this is spent.')
]
InputPriceOption = Annotated[
    float, typer.Option('--input-price', help='Price of a million tokens sent.')
]
OutputPriceOption = Annotated[
    float, typer.Option('--output-price', help='Price of a million tokens received.')
]
DryRunOption = Annotated[
    bool, typer.Option('--dry-run', help='Print counts and expected cost; ask nobody.')
]


def _client(
    model: str,
    base_url: str,
    cache: Path | None,
    concurrency: int,
    max_tokens: int | None,
    max_cost: float | None,
    input_price: float,
    output_price: float,
) -> ModelClient | None:
    if model in OFFLINE:
        return None
    prices = Prices(input_price, output_price)
    return ModelSettings(
        model, base_url, cache, concurrency, max_tokens, max_cost, prices
    ).client()


@app.command()
def generate(
    run: RunArgument,
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
    base_url: UrlOption = '',
    cache: CacheOption = None,
    concurrency: ConcurrencyOption = 4,
    max_tokens: TokensOption = None,
    max_cost: CostOption = None,
    input_price: InputPriceOption = 0.0,
    output_price: OutputPriceOption = 0.0,
    dry_run: DryRunOption = False,
) -> None:
    """Make the questions of a run's scene."""
    place = RunFolder(run, folder)
    if kind is QuestionKind.EXACT:
        chosen = place.seed if seed is None else seed
        questions = stages.generate_exact(place, seed=chosen, count=count)
        typer.echo(f'{len(questions)} questions in {place.folder}')
        return
    client = _client(
        model, base_url, cache, concurrency, max_tokens, max_cost, input_price, output_price
    )
    if client is None:
        raise ConfigError('written questions need --model, e.g. gemini:gemini-2.5-flash')
    frames = stages.chosen_frames(place, every=every, novelty=novelty, most=max_frames)
    if dry_run:
        _print_estimate(client.estimate(expected_requests(QuestionWriter(client), frames)))
        typer.echo(f'for {len(frames)} frames, if every question reaches the check')
        return
    with shown_progress() as progress:
        questions = stages.generate_written(place, client, frames, progress)
    typer.echo(f'{len(questions)} questions in {place.folder}')
    _print_spending(client)


@app.command()
def answer(
    run: RunArgument,
    answerer: Annotated[str, typer.Option(help='"rule", or a model.')] = 'rule',
    compat: Annotated[bool, typer.Option(help='Prompts built as the published code does.')] = (
        False
    ),
    without_map: Annotated[bool, typer.Option(help='Ask the model without any map.')] = False,
    graph_tokens: Annotated[int, typer.Option(min=100, help='Budget for the graph.')] = (
        DEFAULT_GRAPH_TOKENS
    ),
    folder: FolderOption = 'vqa',
    base_url: UrlOption = '',
    cache: CacheOption = None,
    concurrency: ConcurrencyOption = 4,
    max_tokens: TokensOption = None,
    max_cost: CostOption = None,
    input_price: InputPriceOption = 0.0,
    output_price: OutputPriceOption = 0.0,
    dry_run: DryRunOption = False,
) -> None:
    """Answer a run's questions from its recorded scene graph."""
    place = RunFolder(run, folder)
    options = stages.AnswerOptions(compat, graph_tokens, without_map)
    client = _client(
        answerer, base_url, cache, concurrency, max_tokens, max_cost, input_price, output_price
    )
    if dry_run:
        _print_dry(place, client, options)
        return
    with shown_progress() as progress:
        answers = stages.answer(place, client, options, progress)
    silent = sum(item.value is None for item in answers)
    typer.echo(f'{len(answers)} answers in {place.folder}, {silent} questions unanswered')
    _print_spending(client)


@app.command()
def judge(
    run: RunArgument,
    judge_name: Annotated[str, typer.Option('--judge', help='"deterministic", or a model.')] = (
        'deterministic'
    ),
    folder: FolderOption = 'vqa',
    base_url: UrlOption = '',
    cache: CacheOption = None,
    concurrency: ConcurrencyOption = 4,
    max_tokens: TokensOption = None,
    max_cost: CostOption = None,
    input_price: InputPriceOption = 0.0,
    output_price: OutputPriceOption = 0.0,
    dry_run: DryRunOption = False,
) -> None:
    """Judge a run's answers."""
    place = RunFolder(run, folder)
    client = _client(
        judge_name, base_url, cache, concurrency, max_tokens, max_cost, input_price, output_price
    )
    if dry_run:
        if client is not None:
            _print_estimate(stages.estimate_verdicts(place, client))
        else:
            typer.echo('the deterministic judge makes no request')
        return
    verdicts = stages.judge(place, client)
    right = sum(item.correct for item in verdicts)
    typer.echo(f'{right} of {len(verdicts)} answers are right; verdicts in {place.folder}')
    _print_spending(client)


@app.command()
def report(
    run: RunArgument,
    compat: Annotated[bool, typer.Option(help='Leave out what the paper leaves out.')] = False,
    folder: FolderOption = 'vqa',
) -> None:
    """Print the accuracies of a run's verdicts, by category, beside the baselines."""
    _print_records(stages.report(RunFolder(run, folder), compat=compat))


@app.command('judge-check')
def judge_check(
    files: Annotated[list[Path], typer.Argument(help='Saved answers with "similar".')],
    judge_name: Annotated[str, typer.Option('--judge', help='"deterministic", or a model.')] = (
        'deterministic'
    ),
    base_url: UrlOption = '',
    cache: CacheOption = None,
    concurrency: ConcurrencyOption = 4,
    max_tokens: TokensOption = None,
    max_cost: CostOption = None,
    input_price: InputPriceOption = 0.0,
    output_price: OutputPriceOption = 0.0,
    list_doubtful: Annotated[
        int, typer.Option(min=0, help='Doubtful published verdicts to list.')
    ] = _LISTED_VERDICTS,
) -> None:
    """Compare a judge with published verdicts: agreement and Cohen's kappa, by category.

    Exit code 1 if the judge rejects an answer that is equal to the right one.
    """
    client = _client(
        judge_name, base_url, cache, concurrency, max_tokens, max_cost, input_price, output_price
    )
    check = check_judge(read_saved_answers(files), stages.judge_of_free_text(client))
    _print_check(check, list_doubtful)
    if check.equal_strings_rejected:
        raise typer.Exit(1)


def _print_dry(
    place: RunFolder, client: ModelClient | None, options: stages.AnswerOptions
) -> None:
    if client is None:
        typer.echo(f'{len(place.questions())} questions by rule: no request')
        return
    _print_estimate(stages.estimate_answers(place, client, options))


def _print_estimate(estimate: Estimate) -> None:
    typer.echo(
        f'{estimate.requests} requests, {estimate.cached} of them in the cache; about '
        f'{estimate.prompt_tokens} tokens to send, at most {estimate.most_output_tokens} to '
        f'receive, cost at most {estimate.cost:.4f}'
    )


def _print_spending(client: ModelClient | None) -> None:
    if client is None:
        return
    spent = client.ledger.spending
    typer.echo(
        f'{spent.requests} requests, {spent.cache_hits} replies from the cache, '
        f'{spent.prompt_tokens} tokens sent, {spent.output_tokens} received, '
        f'cost {spent.cost:.4f}'
    )


def _print_records(records: Sequence[MetricRecord]) -> None:
    metrics = list(dict.fromkeys(record.metric for record in records))
    table = Table('category', 'n', *metrics)
    for category in dict.fromkeys(record.class_name for record in records):
        own = {r.metric: r for r in records if r.class_name == category}
        cells = [_cell(own.get(metric)) for metric in metrics]
        count = str(next(iter(own.values())).n)
        table.add_row(category or 'all', count, *cells)
    _console().print(table)


def _console() -> Console:
    """Return a console; without a terminal no column is cut."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def _cell(record: MetricRecord | None) -> str:
    if record is None or record.value is None:
        return 'n/a'
    return f'{100 * record.value:.1f}'


def _print_check(check: JudgeCheck, listed: int) -> None:
    table = Table('answers', 'n', 'agreement', 'kappa', f'{check.judge} yes', 'published yes')
    for row in check.rows:
        table.add_row(
            row.group,
            str(row.n),
            f'{100 * row.agreement:.2f} %',
            f'{row.kappa:.3f}',
            f'{100 * row.judge_yes:.1f} %',
            f'{100 * row.published_yes:.1f} %',
        )
    _console().print(table)
    typer.echo(f'equal strings rejected: {len(check.equal_strings_rejected)}')
    typer.echo(f'published verdicts that contradict equality: {len(check.doubtful)}')
    for item in check.doubtful[:listed]:
        verdict = 'Yes' if item.similar else 'No'
        typer.echo(
            f'  {item.question.scene} {item.condition}: "{item.question.text}" right '
            f'"{item.question.answer}", given "{item.answer.value}", verdict {verdict}'
        )
