"""Warns of maps that lie beside the scene they are scored against, as with wrong axes or units."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.sequences.ground_truth import GroundTruth

LEAST_INSIDE = 0.5
MARGIN_M = 0.5


def warn_of_misplaced_map(semantic_map: SemanticMap, truth: GroundTruth) -> None:
    """Warn if less than half of a map lies in the box of the true scene, grown by half a metre.

    The share is of the map's points, or of its nodes' centres where it has no points. What is
    scored does not change.
    """
    places = _places(semantic_map)
    clouds = [cloud.points for cloud in (truth.surface, truth.unseen) if len(cloud.points)]
    if not len(places) or not clouds:
        return
    scene = AxisAlignedBox.around(
        np.concatenate([(points.min(axis=0), points.max(axis=0)) for points in clouds])
    )
    inside = float(scene.contains(places, MARGIN_M).mean())
    if inside < LEAST_INSIDE:
        own = AxisAlignedBox.around(places)
        warnings.warn(
            f'only {inside:.0%} of the map lies within the true scene: the map is '
            f'{_extent(own)}, the scene {_extent(scene)}. If its axes, unit or frame are wrong, '
            'import it again with --world, --metres-per-unit or --pose',
            OsmabenchWarning,
            stacklevel=2,
        )


def _places(semantic_map: SemanticMap) -> NDArray[np.floating]:
    dense = semantic_map.dense
    if dense is not None and len(dense.points):
        return dense.points
    centers = [node.box.center for node in semantic_map.graph.nodes if node.box is not None]
    return np.array(centers, np.float64).reshape(-1, 3)


def _extent(box: AxisAlignedBox) -> str:
    sides = zip('xyz', box.minimum.tolist(), box.maximum.tolist(), strict=True)
    return ', '.join(f'{axis} {low:.1f} to {high:.1f}' for axis, low, high in sides)
