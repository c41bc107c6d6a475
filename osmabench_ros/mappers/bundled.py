"""Shared by the bundled mapping methods: frame counts, headers, labelled points, rooms.

Rooms are floor space that doors, not walls, connect. A cell of the floor plan is a wall if points
fill its column from knee to door height. Places that keep half a door's width from all walls fall
apart into one piece a room; a watershed grows the pieces until they meet in the doorways
(distance-transform segmentation, Bormann et al., Room Segmentation: Survey, Implementation, and
Analysis, ICRA 2016).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.mappers.fusion import FusedCells
from osmabench_ros.mappers.nodes import rows_by, trimmed_box
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    FeatureSpace,
    MapHeader,
    Provenance,
    SemanticMap,
)
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.semantics.storeys import find_lowest_level, find_storey, find_storeys

CELL_M = 0.05
# Heights above the floor between which a wall is closed, and how finely that is looked at.
WALL_FROM_M, WALL_TO_M, WALL_BIN_M = 0.4, 1.9, 0.1

# Fraction of the column that a wall fills.
WALL_SHARE = 0.7

# Wider openings do not part rooms.
DOOR_M = 1.1

MIN_AREA_M2 = 2.0
NO_ROOM = 0


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


# Name of the feature space of the words of labels.
LABEL_TEXT = 'label_text'


class LabelFeatures:
    """Text features of the class names of a label set, for maps that are queried by words.

    They encode the name of a label, not the looks of an object. Raises
    MissingDependencyError if the sentence embedder is not installed.
    """

    def __init__(self, label_set: LabelSet) -> None:
        embedder = SentenceEmbedder()
        names = [item.name for item in label_set.classes]
        self._space = FeatureSpace(
            LABEL_TEXT, embedder.embed(names), embedder.name, normalised=True
        )
        self._rows = {item.id: row for row, item in enumerate(label_set.classes)}

    def add_to(self, semantic_map: SemanticMap) -> SemanticMap:
        """Return the map with a reference to the class feature in labelled nodes and points."""
        graph, dense = semantic_map.graph, semantic_map.dense
        nodes = tuple(
            replace(node, feature_row=self._rows[node.class_id], feature_space=LABEL_TEXT)
            if node.class_id in self._rows
            else node
            for node in graph.nodes
        )
        if dense is not None and dense.labels is not None:
            ids, inverse = np.unique(dense.labels, return_inverse=True)
            rows = np.array([self._rows.get(item, -1) for item in ids.tolist()], np.int32)
            dense = replace(dense, feature_rows=rows[inverse], feature_space=LABEL_TEXT)
        return replace(
            semantic_map,
            graph=replace(graph, nodes=nodes),
            dense=dense,
            feature_spaces={**semantic_map.feature_spaces, LABEL_TEXT: self._space},
        )


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
    features: LabelFeatures | None = None,
) -> SemanticMap:
    """Return the map of labelled cells and the nodes of their instances, with relations.

    With `rooms`, nodes of rooms are added, and are the parents of the objects in them. With
    `features`, labels come with their text features.
    """
    placed = with_rooms(nodes, cells.points) if rooms else tuple(nodes)
    surfaces = {item: cells.points[rows] for item, rows in rows_by(instances).items()}
    made = SemanticMap(
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
    return made if features is None else features.add_to(made)


@dataclass(frozen=True, eq=False)
class FoundRooms:
    """Floor plan with rooms.

    Parameters
    ----------
    origin_m : ndarray of float64, shape (2,)
        World x and y of the corner of cell (0, 0).
    rooms : ndarray of int32, shape (W, H)
        1-based room of each cell, first index along x; NO_ROOM in walls and outside.
    boxes : tuple of AxisAlignedBox
        Bounds of room 1, 2, ... from floor to ceiling.
    """

    origin_m: NDArray[np.float64]
    rooms: NDArray[np.int32]
    boxes: tuple[AxisAlignedBox, ...]

    def room_of(self, points: NDArray[np.floating]) -> NDArray[np.int32]:
        """Return the room of points (..., 3), of the nearest cell of a room for those in walls."""
        cells = np.floor((points[..., :2] - self.origin_m) / CELL_M).astype(np.int64)
        cells = np.clip(cells, 0, np.array(self.rooms.shape) - 1)
        return np.asarray(self._nearest_room[cells[..., 0], cells[..., 1]])

    @cached_property
    def _nearest_room(self) -> NDArray[np.int32]:
        if not self.boxes:
            return self.rooms
        nearest = ndimage.distance_transform_edt(
            self.rooms == NO_ROOM, return_distances=False, return_indices=True
        )
        return np.asarray(self.rooms[tuple(nearest)])


def find_rooms(points: NDArray[np.floating]) -> FoundRooms:
    """Find the rooms of a map of one storey from surface points (N, 3), z up, metres."""
    from skimage.segmentation import watershed

    if not len(points):
        return FoundRooms(np.zeros(2), np.zeros((1, 1), np.int32), ())
    origin = points[:, :2].min(axis=0).astype(np.float64) - CELL_M
    cells = np.floor((points[:, :2] - origin) / CELL_M).astype(np.int64)
    shape = tuple(cells.max(axis=0) + 2)
    height = points[:, 2] - find_lowest_level(points)
    wall = _walls(cells, height, shape)
    seen = np.zeros(shape, np.bool_)
    seen[cells[:, 0], cells[:, 1]] = True
    inside = ndimage.binary_closing(np.pad(seen, 8), iterations=6)[8:-8, 8:-8] & ~wall
    clearance = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1] * CELL_M
    cores, _ = ndimage.label(clearance > DOOR_M / 2, structure=np.ones((3, 3)))
    rooms = _without_small(watershed(-clearance, cores, mask=inside & (clearance > 0)))
    return FoundRooms(origin, rooms, _boxes(rooms, cells, points))


def _walls(
    cells: NDArray[np.int64], height: NDArray[np.floating], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return the cells with a column that is filled from WALL_FROM_M to WALL_TO_M."""
    bins = round((WALL_TO_M - WALL_FROM_M) / WALL_BIN_M)
    level = np.floor((height - WALL_FROM_M) / WALL_BIN_M).astype(np.int64)
    used = (level >= 0) & (level < bins)
    filled = np.zeros((*shape, bins), np.bool_)
    filled[cells[used, 0], cells[used, 1], level[used]] = True
    # A wall may lie on the edge of a cell, and its samples in two cells by turns.
    joined = filled.copy()
    for axis in (0, 1):
        joined |= np.roll(filled, 1, axis=axis)
    return np.asarray(joined.mean(axis=2) >= WALL_SHARE)


def _without_small(rooms: NDArray[np.int32]) -> NDArray[np.int32]:
    """Drop rooms below MIN_AREA_M2 and number the others from 1, largest first."""
    areas = np.bincount(rooms.ravel())
    areas[NO_ROOM] = 0
    kept = np.flatnonzero(areas * CELL_M**2 >= MIN_AREA_M2)
    kept = kept[np.argsort(-areas[kept], kind='stable')]
    number = np.zeros(len(areas), np.int32)
    number[kept] = np.arange(1, len(kept) + 1)
    return np.asarray(number[rooms])


def _boxes(
    rooms: NDArray[np.int32], cells: NDArray[np.int64], points: NDArray[np.floating]
) -> tuple[AxisAlignedBox, ...]:
    owner = rooms[cells[:, 0], cells[:, 1]]
    numbers = range(1, int(rooms.max()) + 1)
    return tuple(trimmed_box(points[owner == room]) for room in numbers)


# Ids of rooms are above the ids of instances.
FIRST_ROOM_ID = 1_000_001

# Objects by which the purpose of a room is guessed.
TELLING_OBJECTS = MappingProxyType(
    {
        'bathroom': ('bathtub', 'shower', 'toilet', 'toilet paper', 'towel', 'washing machine'),
        'bedroom': ('bed', 'bedside table', 'blanket', 'nightstand', 'pillow', 'wardrobe'),
        'dining room': ('dining chair', 'dining table'),
        'kitchen': (
            'cooktop',
            'fridge',
            'kitchen counter',
            'microwave',
            'oven',
            'range hood',
            'refrigerator',
            'stove',
        ),
        'living room': ('armchair', 'coffee table', 'couch', 'sofa', 'television', 'tv'),
        'study': ('computer', 'desk', 'desk lamp', 'keyboard', 'monitor', 'office chair'),
    }
)

UNKNOWN_ROOM = 'room'


def room_label(object_names: Iterable[str]) -> ScoredLabel:
    """Return the purpose that most indicative objects suggest, and their share; else 'room'."""
    names = list(object_names)
    votes = {
        purpose: sum(name in telling for name in names)
        for purpose, telling in TELLING_OBJECTS.items()
    }
    best = max(votes, key=lambda purpose: votes[purpose])
    if not votes[best]:
        return ScoredLabel(UNKNOWN_ROOM)
    return ScoredLabel(best, votes[best] / sum(votes.values()))


def with_rooms(nodes: Sequence[SceneNode], points: NDArray[np.floating]) -> tuple[SceneNode, ...]:
    """Return the nodes, which have boxes, with their room as parent, then the room nodes."""
    if not nodes or not len(points):
        return tuple(nodes)
    low, centers = (
        np.array([getattr(node.box, name) for node in nodes]) for name in ('minimum', 'center')
    )
    storeys_m = find_storeys(points)
    of_points, of_nodes = (find_storey(z, storeys_m) for z in (points[:, 2], low[:, 2]))
    rooms = np.full(len(nodes), NO_ROOM, np.int64)
    boxes: list[AxisAlignedBox] = []
    for storey in range(max(1, len(storeys_m))):
        plan, own = find_rooms(points[of_points == storey]), of_nodes == storey
        found = plan.room_of(centers[own])
        rooms[own] = np.where(found == NO_ROOM, NO_ROOM, found + len(boxes))
        boxes += plan.boxes
    placed = []
    inside: dict[int, list[str]] = {}
    for node, room in zip(nodes, rooms.tolist(), strict=True):
        lies_in_one = node.kind is NodeKind.OBJECT and room != NO_ROOM
        placed.append(replace(node, parent=FIRST_ROOM_ID + room - 1) if lies_in_one else node)
        if lies_in_one:
            inside.setdefault(room, []).append(node.label)
    for room, box in enumerate(boxes, start=1):
        label = room_label(inside.get(room, ()))
        placed.append(SceneNode(FIRST_ROOM_ID + room - 1, NodeKind.ROOM, (label,), box=box))
    return tuple(placed)
