"""The comparison of two results as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.reports.cells import format_plain
from osmabench_ros.reports.changes import ResultChanges, format_interval, join_full_name
from osmabench_ros.reports.page.page import read_scripts, write_rendered

COMPARISON_PAGE = 'comparison.html'


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
        overall=list(overall.itertuples()),
        classes=list(classes.itertuples()),
        full_name=join_full_name,
        interval_text=format_interval,
        plain=format_plain,
        missing=[(title.capitalize(), names) for title, names in found.missing],
        scripts=[read_scripts('tables.js')],
    )
