"""What changed between two maps, as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.base.files import write_text
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.cells import plain
from osmabench_ros.reports.page.page import PAGE, page_environment, trusted
from osmabench_ros.reports.plots.scene_change_plot import scene_change_plot
from osmabench_ros.suites.scene_changes.detection import Differences, ObjectChange

Row = tuple[str, str, str, str, str]
"""Type, thing before, thing after, way in metres, where the thing is or was."""


def write_scene_changes_page(
    found: Sequence[Differences],
    maps: tuple[SemanticMap, SemanticMap],
    records: Sequence[MetricRecord],
    sources: tuple[Path, Path],
    directory: Path,
) -> Path:
    """Write report.html of the detected changes, and of the true ones where they are known."""
    titled = list(zip(('detected', 'true'), found, strict=False))
    text = (
        page_environment()
        .get_template('scene_changes.html')
        .render(
            before=str(sources[0]),
            after=str(sources[1]),
            methods=[item.header.provenance.method for item in maps],
            tables=[(title, [_row(item) for item in part.changes]) for title, part in titled],
            unseen=[_row(item) for item in found[0].unseen],
            figures=[
                (item.metric, item.mode, item.class_name or 'all', plain(item.value), item.n)
                for item in records
            ],
            plot=trusted(scene_change_plot(titled, maps[1].graph)),
        )
    )
    write_text(directory / PAGE, text)
    return directory / PAGE


def _row(change: ObjectChange) -> Row:
    before, after = ('' if n is None else n.label for n in (change.before, change.after))
    x, y, z = change.boxes[-1].center
    way = f'{change.moved_m:.2f}' if change.moved_m else ''
    return change.type.value, before, after, way, f'{x:.2f}, {y:.2f}, {z:.2f}'
