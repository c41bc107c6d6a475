"""Tables of the suites that ask questions of other protocols, by their kinds of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osmabench_ros.reports.cells import Cell, plain, record_cell
from osmabench_ros.reports.report_run import Run, distinct, full_titles
from osmabench_ros.suites.hypo3d.generation import SUITE as HYPO3D
from osmabench_ros.vqa.exact.generation import SUITE as EXACT

_AFTER_CHANGES = (
    ('unchanged', 'accuracy_unchanged'),
    ('told', 'accuracy_told'),
    ('mapped again', 'accuracy_remapped'),
    ('imagination gap', 'imagination_gap'),
    ('irrelevant told', 'accuracy_irrelevant'),
)
_OF_MAPS = (
    ('hallucination rate', 'hallucination_rate'),
    ('staleness', 'staleness'),
    ('right after a change on the way', 'accuracy_live'),
    ('frames until then', 'frames_until_updated'),
)


@dataclass(frozen=True)
class ProtocolTable:
    """A table of one suite: rows are runs, or figures of runs."""

    suite: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def protocol_tables(runs: Sequence[Run]) -> list[ProtocolTable]:
    """Return the accuracies by kind of question, and what changes do to answers."""
    scored = [run for run in runs if not run.failed]
    suites = distinct(
        suite for run in scored for suite, _, metric, name in run.records
        if metric == 'accuracy' and name and suite != EXACT
    )  # fmt: skip
    tables = [_by_kind(suite, scored) for suite in suites]
    return [*tables, *_of_changes(scored)]


def _by_kind(suite: str, runs: Sequence[Run]) -> ProtocolTable:
    titles, asked = full_titles(runs), [run for run in runs if _classes([run], suite, 'accuracy')]
    kinds = ('', *_classes(asked, suite, 'accuracy'))
    return ProtocolTable(
        suite,
        'Share of questions that the map answers rightly, by kind, in percent',
        tuple(kind or 'all' for kind in kinds),
        tuple(
            (titles[run], tuple(_cell(run, suite, 'accuracy', kind) for kind in kinds))
            for run in asked
        ),
    )


def _of_changes(runs: Sequence[Run]) -> Iterator[ProtocolTable]:
    titles = full_titles(runs)
    asked = [run for run in runs if (HYPO3D, None, 'accuracy_told', '') in run.records]
    if not asked:
        return
    kinds = ('', *_classes(asked, HYPO3D, 'accuracy_told'))
    yield ProtocolTable(
        HYPO3D,
        'Right answers around a change, in percent: nothing told, about the scene before it; the '
        'change told; the changed scene mapped again; that minus told; another change told',
        tuple(kind or 'all' for kind in kinds),
        tuple(
            (f'{titles[run]} · {title}', tuple(_cell(run, HYPO3D, metric, k) for k in kinds))
            for run in asked
            for title, metric in _AFTER_CHANGES
            if (HYPO3D, None, metric, '') in run.records
        ),
    )
    shown = [(t, m) for t, m in _OF_MAPS if any((HYPO3D, None, m, '') in r.records for r in asked)]
    yield ProtocolTable(
        HYPO3D,
        'Answers that an irrelevant change flips; answers of the old map that a change makes '
        'wrong; answers that are right once the scene changed halfway a run, in percent; and how '
        'many frames after the change more than half of them are',
        tuple(title for title, _ in shown),
        tuple(
            (titles[r], tuple(_cell(r, HYPO3D, metric, '') for _, metric in shown)) for r in asked
        ),
    )


def _classes(runs: Sequence[Run], suite: str, metric: str) -> list[str]:
    return distinct(
        name for run in runs for of, _, figure, name in run.records
        if (of, figure) == (suite, metric) and name
    )  # fmt: skip


def _cell(run: Run, suite: str, metric: str, name: str) -> Cell:
    record = run.records.get((suite, None, metric, name))
    return record_cell(record, plain if metric == 'frames_until_updated' else _percent)


def _percent(value: float) -> str:
    return f'{100 * value:.1f}'
