"""What the bundled mapping methods share: frame counts, headers, and maps of labelled points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.fusion import FusedCells
from osmabench_ros.mappers.nodes import rows_by
from osmabench_ros.mappers.rooms import with_rooms
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode


class BundledMapper:
    """Counts frames, and makes maps that name the method."""

    name: str
    uses_ground_truth = False

    def __init__(self, label_set: LabelSet, seed: int) -> None:
        self.label_set, self.seed = label_set, seed
        self._frames = self._stamp_ns = 0

    def count(self, frame: Frame) -> None:
        """Count a frame, whether it changes the map or not."""
        self._frames += 1
        self._stamp_ns = max(self._stamp_ns, frame.stamp_ns)

    def header(self, *, final: bool, **provenance: Any) -> MapHeader:
        """Return the header of the map so far."""
        made = Provenance(self.name, frames_used=self._frames, **provenance)
        return MapHeader(made, stamp_ns=self._stamp_ns, complete=final)


def map_of_instances(
    header: MapHeader,
    label_set: LabelSet,
    cells: FusedCells,
    nodes: Sequence[SceneNode],
    labels: NDArray[np.int32],
    instances: NDArray[np.int32],
    scores: NDArray[np.floating],
    *,
    rooms: bool,
) -> SemanticMap:
    """Return the map of labelled cells and the nodes of their instances, with relations.

    With `rooms`, nodes of rooms are added, and are the parents of the objects in them.
    """
    placed = with_rooms(nodes, cells.points) if rooms else tuple(nodes)
    surfaces = {item: cells.points[rows] for item, rows in rows_by(instances).items()}
    return SemanticMap(
        header,
        SceneGraph(placed, derive_relations(placed, surfaces=surfaces, occluded=True)),
        DenseMap(
            points=cells.points,
            colors=cells.colors,
            labels=labels,
            instances=instances,
            scores=scores.astype(np.float32),
        ),
        label_set,
    )
