"""Scene-graph nodes from the points and label votes of an object."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from osmabench_ros.base.images import decode_srgb, encode_srgb_image
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.fusion import FusedCells
from osmabench_ros.semantics.labels import LabelSet, choose_color, color_indices
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode, ScoredLabel

COLUMN_M = 1.0
# The luminance that this share of a column stays below counts as white.
BRIGHT_SHARE = 0.9

WHITE_LUMINANCE = 0.85
MAX_GAIN = 8.0

_REC709 = np.array([0.2126, 0.7152, 0.0722])


def without_light(points: NDArray[np.floating], colors: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return sRGB colours as if every column of the map were lit brightly; none gets darker."""
    if not len(points):
        return colors
    linear = decode_srgb(colors / 255.0)
    luminance = linear @ _REC709
    columns = np.floor(points[:, :2] / COLUMN_M).astype(np.int64)
    _, column = np.unique(columns, axis=0, return_inverse=True)
    column = column.reshape(-1)
    order = np.lexsort((luminance, column))
    sizes = np.bincount(column)
    starts = np.cumsum(sizes) - sizes
    white = luminance[order][starts + (BRIGHT_SHARE * (sizes - 1)).astype(np.int64)]
    gain = np.clip(WHITE_LUMINANCE / np.maximum(white, 1e-6), 1.0, MAX_GAIN)
    return encode_srgb_image(linear * gain[column][:, None])


# Fraction of the points that may lie beyond each face of a box.
TRIM = 0.002

# An oriented box is turned only if that makes its footprint smaller than this share.
_WORTHWHILE = 0.95


def trimmed_box(points: NDArray[np.floating]) -> AxisAlignedBox:
    """Return the axis-aligned box of points (N, 3), N >= 1, without the outermost TRIM."""
    low, high = np.quantile(np.asarray(points, np.float64), [TRIM, 1 - TRIM], axis=0)
    return AxisAlignedBox(low, high)


def _hull_yaws(footprint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the headings of the convex hull's edges in [0, pi/2); one of them is optimal."""
    try:
        corners = footprint[ConvexHull(footprint).vertices]
    except (QhullError, ValueError):  # all points on one line
        spread = footprint - footprint.mean(axis=0)
        direction = np.linalg.eigh(spread.T @ spread)[1][:, 1]
        return np.array([float(np.arctan2(direction[1], direction[0])) % (np.pi / 2)])
    edges = np.roll(corners, -1, axis=0) - corners
    return np.asarray(np.unique(np.mod(np.arctan2(edges[:, 1], edges[:, 0]), np.pi / 2)))


def _turned(footprint: NDArray[np.float64], yaw_rad: float) -> NDArray[np.float64]:
    cos = np.cos(yaw_rad)
    sin = np.sin(yaw_rad)
    return np.asarray(footprint @ np.array([[cos, -sin], [sin, cos]]))


def upright_box(points: NDArray[np.floating]) -> OrientedBox:
    """Return the upright box of smallest footprint around points (N, 3), N >= 1.

    The best heading is along an edge of the footprint's convex hull (Freeman and Shapira,
    1975). Headings are in (-pi/4, pi/4]; the box stays along the world's axes unless turning it
    makes its footprint at least 5 % smaller.
    """
    inside = trimmed_box(points).contains(points)
    footprint = (points[inside] if inside.any() else points)[:, :2].astype(np.float64)
    yaws = np.concatenate([[0.0], _hull_yaws(footprint)])
    areas = [float(np.prod(np.ptp(_turned(footprint, yaw), axis=0))) for yaw in yaws]
    best = int(np.argmin(areas))
    yaw = float(yaws[best]) if areas[best] < _WORTHWHILE * areas[0] else 0.0
    if yaw > np.pi / 4:
        yaw -= np.pi / 2
    pose = Pose.from_yaw(yaw)
    box = trimmed_box(pose.inverse().transform(points))
    return OrientedBox(Pose(pose.rotation, pose.transform(box.center)), box.size)


_MIN_LABEL_SHARE = 0.02


def voted_labels(votes: NDArray[np.floating], label_set: LabelSet) -> tuple[ScoredLabel, ...]:
    """Return the classes that got at least 2 % of the votes, best first, lower id in a tie."""
    shares = votes / max(float(votes.sum()), 1e-12)
    ranked = np.argsort(-shares, kind='stable')
    return tuple(
        ScoredLabel(label_set.classes[i].name, float(shares[i]), label_set.classes[i].id)
        for i in ranked[shares[ranked] >= _MIN_LABEL_SHARE]
    )


class NodeBuilder:
    """Makes nodes of groups of fused cells; the label set separates structure from objects.

    Colours are taken as `lit`, and the brightness of the light is taken out of them.
    """

    def __init__(self, cells: FusedCells, label_set: LabelSet, *, lit: bool = True) -> None:
        self._cells = cells
        colors = without_light(cells.points, cells.colors) if lit else cells.colors
        self._colors = color_indices(colors)
        self._label_set = label_set

    def node(
        self,
        node_id: int,
        rows: NDArray[np.integer],
        votes: NDArray[np.floating],
        observations: int,
    ) -> SceneNode:
        """Build the node of an object from its cells, class votes and frame count."""
        points = self._cells.points[rows]
        counts = self._cells.counts[rows]
        labels = voted_labels(votes, self._label_set)
        known = self._label_set.by_id.get(labels[0].class_id) if labels else None
        structure = known is not None and known.structure
        oriented = upright_box(points)
        width, length = sorted(oriented.size[:2].tolist())
        return SceneNode(
            id=node_id,
            kind=NodeKind.BACKGROUND if structure else NodeKind.OBJECT,
            labels=labels,
            attributes={
                'color': choose_color(self._colors[rows], counts),
                'height_m': round(float(oriented.size[2]), 3),
                'length_m': round(length, 3),
                'width_m': round(width, 3),
            },
            box=trimmed_box(points),
            oriented_box=oriented,
            observations=observations,
        )


def rows_by(owners: NDArray[np.integer]) -> dict[int, NDArray[np.int64]]:
    """Return the rows (in order) of each owner, ascending."""
    order = np.argsort(owners, kind='stable')
    ids, starts = np.unique(owners[order], return_index=True)
    return dict(zip(ids.tolist(), np.split(order, starts)[1:], strict=True))
