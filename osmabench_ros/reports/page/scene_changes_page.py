"""What changed between two maps, as one self-contained page with boxes seen from above."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.graph_matching import box_of
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.cells import plain
from osmabench_ros.reports.page.page import PAGE, trusted, write_rendered
from osmabench_ros.reports.plots.svg import (
    INK,
    MUTED,
    SERIES,
    inline_svg,
    new_figure,
    page_style,
)
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.suites.scene_changes.detection import CHANGE_TYPES, Differences, ObjectChange

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    return write_rendered(
        directory / PAGE,
        'scene_changes.html',
        before=str(sources[0]),
        after=str(sources[1]),
        methods=[item.header.provenance.method for item in maps],
        tables=[(title, [_row(item) for item in part.changes]) for title, part in titled],
        unseen=[_row(item) for item in found[0].unseen],
        figures=[
            (item.metric, item.mode, item.class_name or 'all', plain(item.value), item.n)
            for item in records
        ],
        plot=trusted(_plot(titled, maps[1].graph)),
    )


def _row(change: ObjectChange) -> Row:
    before, after = ('' if n is None else n.label for n in (change.before, change.after))
    x, y, z = change.boxes[-1].center
    way = f'{change.moved_m:.2f}' if change.moved_m else ''
    return change.type.value, before, after, way, f'{x:.2f}, {y:.2f}, {z:.2f}'


def _plot(found: Sequence[tuple[str, Differences]], after: SceneGraph) -> str:
    """Return lists of changes side by side as SVG: boxes after them, dashed where a thing was."""
    with page_style('scene changes'):
        figure = new_figure(9.3, 4.6)
        for number, (title, differences) in enumerate(found, start=1):
            axes = figure.add_subplot(1, len(found), number)
            for node in after.of_kind(NodeKind.OBJECT):
                _outline(axes, box_of(node), MUTED, '-', 0.6)
            for kind, color in zip(CHANGE_TYPES, SERIES, strict=False):
                own = differences.of_type(kind)
                axes.plot([], [], color=color, label=f'{kind.value} ({len(own)})')
                for item in own:
                    for thing, dashes in ((item.before, '--'), (item.after, '-')):
                        if thing is None or (box := box_of(thing)) is None:
                            continue
                        _outline(axes, box, color, dashes, 1.6)
                        x, y = (float(value) for value in box.center[:2])
                        axes.text(x, y, thing.label, color=INK, fontsize=7, ha='center')
            axes.set_aspect('equal', adjustable='datalim')
            axes.autoscale_view()
            axes.set_title(title)
            axes.set_xlabel('x, m')
            axes.set_ylabel('y, m')
            axes.legend(loc='best', fontsize=7)
        return inline_svg(
            figure, 'scene changes', 'Boxes of the things that changed, seen from above'
        )


def _outline(
    axes: Axes, box: AxisAlignedBox | None, color: str, dashes: str, width: float
) -> None:
    """Draw a box from above, if there is one."""
    from matplotlib.patches import Rectangle

    if box is None:
        return
    corner, size = (float(box.minimum[0]), float(box.minimum[1])), box.size
    axes.add_patch(
        Rectangle(
            corner,
            float(size[0]),
            float(size[1]),
            fill=False,
            edgecolor=color,
            linestyle=dashes,
            linewidth=width,
        )
    )
