"""What the stages of question answering print."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table

from osmabench_ros.language.client import Estimate, ModelClient
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.vqa.judging.agreement import JudgeCheck

_WIDTH = 240


def print_estimate(estimate: Estimate) -> None:
    """Print what requests would take."""
    typer.echo(
        f'{estimate.requests} requests, {estimate.cached} of them in the cache; about '
        f'{estimate.prompt_tokens} tokens to send, at most {estimate.most_output_tokens} to '
        f'receive, cost at most {estimate.cost:.4f}'
    )


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


def print_records(records: Sequence[MetricRecord]) -> None:
    """Print accuracies in percent, a row a category."""
    metrics = list(dict.fromkeys(record.metric for record in records))
    table = Table('category', 'n', *metrics)
    for category in dict.fromkeys(record.class_name for record in records):
        own = {r.metric: r for r in records if r.class_name == category}
        cells = [_cell(own.get(metric)) for metric in metrics]
        count = str(next(iter(own.values())).n)
        table.add_row(category or 'all', count, *cells)
    _console().print(table)


def print_check(check: JudgeCheck, listed: int) -> None:
    """Print agreement and kappa by group, then some of the doubtful verdicts."""
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


def _console() -> Console:
    """Return a console; without a terminal no column is cut."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def _cell(record: MetricRecord | None) -> str:
    if record is None or record.value is None:
        return 'n/a'
    return f'{100 * record.value:.1f}'
