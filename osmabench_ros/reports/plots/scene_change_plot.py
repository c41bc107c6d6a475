"""Changes of a scene from above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.metrics.graph_matching import box_of
from osmabench_ros.reports.plots.svg import (
    INK,
    MUTED,
    SERIES,
    inline_svg,
    new_figure,
    page_style,
)
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.suites.scene_changes.detection import CHANGE_TYPES, Differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def scene_change_plot(found: Sequence[tuple[str, Differences]], after: SceneGraph) -> str:
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
