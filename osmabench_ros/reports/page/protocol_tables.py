"""Tables of other published protocols: of each the figures that its field looks at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from osmabench_ros.reports.cells import Cell, plain, record_cell, scaled_cell
from osmabench_ros.reports.charts.question_chart import QUESTIONS, question_figures
from osmabench_ros.reports.report_run import Run, distinct, full_titles
from osmabench_ros.suites.grounding.generation import SUITE as GROUNDING
from osmabench_ros.suites.hypo3d.generation import SUITE as HYPO3D
from osmabench_ros.suites.promptgt import MEASUREMENTS, PROMPT, RELATIONS, STANDARD
from osmabench_ros.vqa.exact.prompt_ground_truth import SUITE as PROMPTGT

Figures = Sequence[tuple[str, str]]
"""Titles and metrics."""

_AFTER_CHANGES: Figures = (
    ('unchanged', 'accuracy_unchanged'),
    ('told', 'accuracy_told'),
    ('mapped again', 'accuracy_remapped'),
    ('imagination gap', 'imagination_gap'),
    ('irrelevant told', 'accuracy_irrelevant'),
)
_OF_MAPS: Figures = (
    ('hallucination rate', 'hallucination_rate'),
    ('staleness', 'staleness'),
    ('right after a change on the way', 'accuracy_live'),
    ('frames until then', 'frames_until_updated'),
)
_STANDARD = {
    MEASUREMENTS: ('Measurement',),
    RELATIONS: ('Relations-Spatial', 'Relations-Functional'),
}
"""Categories of the exact questions in each block that OSMa-Bench++ compares."""


@dataclass(frozen=True)
class ProtocolTable:
    """A table of one suite: rows are runs, or figures of runs; `charts` are shown below it."""

    suite: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    charts: tuple[str, ...] = ()


def protocol_tables(runs: Sequence[Run]) -> list[ProtocolTable]:
    """Return what each protocol reports of the runs that it scored."""
    scored = [run for run in runs if not run.failed]
    found = [*_by_kind(scored), *_of_changes(scored), *_grounding(scored), *_prompts(scored)]
    return [table for table in found if table.rows]


def _by_kind(runs: Sequence[Run]) -> Iterator[ProtocolTable]:
    asked = dict.fromkeys(
        (suite, mode) for run in runs for suite, mode, metric, name in run.records
        if metric == 'accuracy' and name and mode != 'compat'
        and suite not in (QUESTIONS, PROMPTGT)
    )  # fmt: skip
    for suite, mode in asked:
        caption = 'Share of questions that the map answers rightly, by kind, in percent'
        yield _by_class(runs, suite, mode, caption, [('', 'accuracy')])


def _of_changes(runs: Sequence[Run]) -> Iterator[ProtocolTable]:
    yield _by_class(
        runs,
        HYPO3D,
        None,
        'Right answers around a change, in percent: nothing told, about the scene before it; the '
        'change told; the changed scene mapped again; that minus told; another change told',
        _AFTER_CHANGES,
        of='accuracy_told',
    )
    yield _by_metric(
        runs,
        HYPO3D,
        None,
        'Answers that an irrelevant change flips; answers of the old map that a change makes '
        'wrong; answers that are right once the scene changed halfway a run, in percent; and how '
        'many frames after the change more than half of them are',
        _OF_MAPS,
    )


def _grounding(runs: Sequence[Run]) -> Iterator[ProtocolTable]:
    yield _by_class(
        runs,
        GROUNDING,
        'strict',
        'Expressions answered with a box of that IoU at least, in percent, by difficulty (unique '
        'and multiple as ScanRefer, easy and hard as ReferIt3D), length, and kind of clue',
        [('Acc@0.25', 'acc_025'), ('Acc@0.5', 'acc_05')],
    )


def _prompts(runs: Sequence[Run]) -> Iterator[ProtocolTable]:
    titles = full_titles(runs)
    asked = [run for run in runs if run.records.get((PROMPTGT, 'strict', 'accuracy_faithful', ''))]
    yield ProtocolTable(
        PROMPTGT,
        'Right answers in percent, in the blocks that OSMa-Bench++ compares: exact questions '
        'about the scene, and questions whose answers the prompt gives; then those of them alone '
        'that the scene answers as its prompt does: the quality of the map',
        (
            *(f'{source} | {block}' for block in _STANDARD for source in (STANDARD, PROMPT)),
            'map quality',
        ),
        tuple((titles[run], tuple(_blocks(run))) for run in asked),
    )
    first = list({run.scene: run for run in reversed(asked)}.values())[::-1]
    kinds = ('', *_classes(first, PROMPTGT, None, 'fidelity'))
    yield ProtocolTable(
        PROMPTGT,
        'Prompt fidelity: share of what the prompt asks for that the scene holds, in percent, '
        'whatever is mapped',
        tuple(kind or 'all' for kind in kinds),
        tuple(
            (run.scene, tuple(_cell(run, PROMPTGT, None, 'fidelity', kind) for kind in kinds))
            for run in first
            if (PROMPTGT, None, 'fidelity', '') in run.records
        ),
    )


def _blocks(run: Run) -> Iterator[Cell]:
    for block, categories in _STANDARD.items():
        found = [run.records.get((QUESTIONS, None, 'accuracy', name)) for name in categories]
        known = [(x.value, x.n) for x in found if x is not None and x.value is not None]
        count = sum(n for _, n in known)
        value = math.fsum(value * n for value, n in known) / count if count else None
        yield scaled_cell(value, 100.0, 1)
        yield _cell(run, PROMPTGT, 'compat', 'accuracy_block', block)
    yield _cell(run, PROMPTGT, 'strict', 'accuracy_faithful', '')


def _by_class(
    runs: Sequence[Run],
    suite: str,
    mode: str | None,
    caption: str,
    figures: Figures,
    of: str = '',
) -> ProtocolTable:
    """Return a table with a column a class of the figure `of`, by default the first one."""
    titles, main = full_titles(runs), of or figures[0][1]
    asked = [run for run in runs if _classes([run], suite, mode, main)]
    kinds = ('', *_classes(asked, suite, mode, main))
    return ProtocolTable(
        suite,
        caption,
        tuple(kind or 'all' for kind in kinds),
        tuple(
            (
                ' · '.join(filter(None, (titles[run], title))),
                tuple(_cell(run, suite, mode, metric, kind) for kind in kinds),
            )
            for run in asked
            for title, metric in figures
            if (suite, mode, metric, '') in run.records
        ),
        tuple(item.name for item in question_figures() if item.suite == suite),
    )


def _by_metric(
    runs: Sequence[Run], suite: str, mode: str | None, caption: str, figures: Figures
) -> ProtocolTable:
    """Return a table with a column a figure that some run has."""
    titles = full_titles(runs)
    shown = [(t, m) for t, m in figures if any((suite, mode, m, '') in r.records for r in runs)]
    asked = [r for r in runs if any((suite, mode, m, '') in r.records for _, m in shown)]
    return ProtocolTable(
        suite,
        caption,
        tuple(title for title, _ in shown),
        tuple((titles[r], tuple(_cell(r, suite, mode, m, '') for _, m in shown)) for r in asked),
    )


def _classes(runs: Sequence[Run], suite: str, mode: str | None, metric: str) -> list[str]:
    return distinct(
        name for run in runs for of, scored, figure, name in run.records
        if (of, scored, figure) == (suite, mode, metric) and name
    )  # fmt: skip


def _cell(run: Run, suite: str, mode: str | None, metric: str, name: str) -> Cell:
    number: Callable[[float], str] = plain if metric == 'frames_until_updated' else _percent
    return record_cell(run.records.get((suite, mode, metric, name)), number)


def _percent(value: float) -> str:
    return f'{100 * value:.1f}'
