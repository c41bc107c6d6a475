"""Arrangements of objects: bends of ways, symmetry, rows, equal heights, what fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import SceneNode


def bends_m(line: NDArray[np.float64]) -> tuple[float, float]:
    """Return how far a way (N, 3) is left and right of the straight line between its ends."""
    offsets = line[:, :2] - line[0, :2]
    chord = offsets[-1] / max(1e-9, float(np.linalg.norm(offsets[-1])))
    left = chord[0] * offsets[:, 1] - chord[1] * offsets[:, 0]
    return float(max(0.0, left.max())), float(max(0.0, -left.min()))


def mirror_error_m(pair: Sequence[SceneNode], about: SceneNode) -> float:
    """Return how far one of two is from the mirror image of the other about an object's middle.

    The mirror is upright along an axis of the world, the one of two that fits better. It
    parts the two: otherwise there is no such image, and the error is infinite.
    """
    one, other, middle = (node.known_box.center[:2] for node in (*pair, about))
    errors = [float('inf')]
    for axis in (0, 1):
        if (one[axis] - middle[axis]) * (other[axis] - middle[axis]) < 0:
            image = other.copy()
            image[axis] = 2 * middle[axis] - other[axis]
            errors.append(float(np.linalg.norm(image - one)))
    return min(errors)


def height_spread_m(nodes: Sequence[SceneNode]) -> float:
    """Return the difference in height between the tallest and the lowest of boxed objects."""
    return float(np.ptp([node.known_box.size[2] for node in nodes]))


def off_line_m(nodes: Sequence[SceneNode]) -> float:
    """Return how far the centre of an object is from the best line through all, from above."""
    centers = np.array([node.known_box.center[:2] for node in nodes])
    offsets = centers - centers.mean(axis=0)
    _, _, axes = np.linalg.svd(offsets)
    return float(np.abs(offsets @ axes[1]).max())


def slack_m(upper: AxisAlignedBox, lower: AxisAlignedBox) -> float:
    """Return by how much the top of a box is larger than the footprint of another, turned to fit.

    That is the smaller of the differences of the short edges and of the long ones.
    """
    return float((np.sort(lower.size[:2]) - np.sort(upper.size[:2])).min())
