"""`osmabench score answers`: accuracies from saved answers, such as published ones."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from osmabench_ros.cli.score import TableFormat
from osmabench_ros.vqa.answer_table import AnswerRow, answer_table
from osmabench_ros.vqa.published import read_saved_answers

_CHANGES = ('change', 'change_low', 'change_high')


def answers(
    files: Annotated[
        list[Path],
        typer.Argument(
            help='JSON lines, plain or .gz, with question, answer, category, scene_graph_answer '
            'and, if known, similar, scene and condition.'
        ),
    ],
    table_format: Annotated[
        TableFormat, typer.Option('--format', help='How to print the rows.')
    ] = TableFormat.CSV,
    reference: Annotated[
        str, typer.Option(help='Condition that paired changes of the pooled rows start from.')
    ] = '',
    baselines: Annotated[
        bool, typer.Option(help='Add constants, most frequent answers and question-only.')
    ] = True,
) -> None:
    """Recompute accuracies, overall and by category, from saved answers.

    Verdicts are taken from "similar"; answers without one are judged by rule. A row for each
    scene and condition, then pooled rows with an interval over scenes.
    """
    table = answer_table(
        read_saved_answers(files), reference_condition=reference, baselines=baselines
    )
    rows = _flat(table, with_changes=bool(reference))
    if table_format is TableFormat.JSON:
        typer.echo(json.dumps(rows, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)


def _flat(table: Sequence[AnswerRow], *, with_changes: bool) -> list[dict[str, Any]]:
    categories = sorted({name for row in table for name in row.categories})
    return [
        {
            'scene': row.scene,
            'condition': row.condition,
            'answers': row.answers,
            'questions': row.questions,
            'accuracy': row.accuracy,
            'low': row.low,
            'high': row.high,
            'accuracy_without_spatial': row.accuracy_without_spatial,
            **{name: getattr(row, name) for name in _CHANGES if with_changes},
            **{name: row.categories.get(name) for name in categories},
        }
        for row in table
    ]
