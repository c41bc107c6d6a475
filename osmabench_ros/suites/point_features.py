"""Features of the points of a map, wherever the map keeps them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap


@dataclass(frozen=True, eq=False)
class FeaturedPoints:
    """Rows of a feature space, comparable with text, for the points and nodes of a map.

    `rows` has shape (N,), as the dense map has points, with -1 for none.
    """

    space: FeatureSpace
    rows: NDArray[np.int64]
    node_rows: dict[int, int]


def featured_points(semantic_map: SemanticMap) -> FeaturedPoints | None:
    """Return the features of a map's points, from the points or the nodes they belong to.

    None if none compare with text; raises MetricError if a feature row or space does not exist.
    """
    dense = semantic_map.dense
    if dense is None:
        return None
    nodes = [node for node in semantic_map.graph.nodes if node.feature_row is not None]
    names = [dense.feature_space] if dense.feature_rows is not None else []
    names += sorted({node.feature_space for node in nodes})
    for name in names:
        if name not in semantic_map.feature_spaces:
            raise MetricError(f'map: there is no feature space "{name}"')
        space = semantic_map.feature_spaces[name]
        if not space.text_comparable:
            continue
        own = {n.id: n.feature_row for n in nodes if n.feature_space == name}
        node_rows = {key: row for key, row in own.items() if row is not None}
        rows = _point_rows(semantic_map, name, node_rows)
        if rows is not None:
            _check(rows, node_rows, space)
            return FeaturedPoints(space, rows, node_rows)
    return None


def _point_rows(
    semantic_map: SemanticMap, name: str, node_rows: dict[int, int]
) -> NDArray[np.int64] | None:
    dense = semantic_map.dense
    assert dense is not None
    if dense.feature_rows is not None and dense.feature_space == name:
        return dense.feature_rows.astype(np.int64)
    if dense.instances is None:
        return None
    ids, inverse = np.unique(dense.instances, return_inverse=True)
    return np.array([node_rows.get(int(item), -1) for item in ids], np.int64)[inverse]


def _check(rows: NDArray[np.int64], node_rows: dict[int, int], space: FeatureSpace) -> None:
    used = [*node_rows.values(), int(rows.min(initial=0)), int(rows.max(initial=-1))]
    if min(used) < -1 or max(used) >= len(space.vectors):
        raise MetricError(
            f'map: feature rows reach from {min(used)} to {max(used)}, but feature space '
            f'"{space.name}" has {len(space.vectors)} rows'
        )
