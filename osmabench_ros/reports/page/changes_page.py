"""The comparison of two results as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.reports.cells import plain
from osmabench_ros.reports.changes import Change, ChangeVerdict, ResultChanges
from osmabench_ros.reports.page.page import read_scripts, write_rendered

COMPARISON_PAGE = 'comparison.html'
_KINDS = {ChangeVerdict.BETTER: 'passed', ChangeVerdict.WORSE: 'failed'}


@dataclass(frozen=True)
class ChangeRow:
    """A change as text; `kind` is how its verdict looks."""

    figure: str
    class_name: str
    condition: str
    mapper: str
    before: str
    after: str
    difference: str
    gain: float
    interval: str
    scenes: int
    verdict: str
    kind: str


def write_changes_page(
    found: ResultChanges, broken: Sequence[str], results: tuple[Path, Path], directory: Path
) -> Path:
    """Write comparison.html of two results; byte-identical for equal input."""
    overall, classes = found.shown
    names = [path.absolute().name for path in results]
    if names[0] == names[1]:
        names = ['before', 'after']
    return write_rendered(
        directory / COMPARISON_PAGE,
        'changes.html',
        before=names[0],
        after=names[1],
        paths=[str(path) for path in results],
        counts=found.counts,
        broken=broken,
        sentence=found.sentence,
        overall=[_row(item) for item in overall],
        classes=[_row(item) for item in classes],
        missing=[(title.capitalize(), names) for title, names in found.missing],
        scripts=[read_scripts('tables.js')],
    )


def _row(change: Change) -> ChangeRow:
    data, figure = change.to_json(), change.figure
    interval = '' if data['low'] is None else f'[{data["low"]:+.3g}, {data["high"]:+.3g}]'
    return ChangeRow(
        figure.names[0],
        figure.class_name,
        figure.condition,
        figure.mapper,
        plain(change.before),
        plain(change.after),
        f'{data["difference"]:+.3g}',
        change.gain,
        interval,
        data['scenes'],
        change.verdict.value,
        _KINDS.get(change.verdict, ''),
    )
