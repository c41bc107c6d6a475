"""Answers about rooms, ways and arrangements from a scene graph and the points around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.semantics.storeys import storey_heights, storey_of
from osmabench_ros.vqa.answering.execution import (
    GraphAnswer,
    QueryExecutor,
    ReferenceResolver,
    SilentError,
    yes_no,
)
from osmabench_ros.vqa.answering.ways import FloorWays
from osmabench_ros.vqa.graph_index import GraphIndex
from osmabench_ros.vqa.questions import Query, QueryKind

ALIKE_M = 0.15
"""Things whose heights differ by less than this are equally tall."""

ROW_M = 0.3
"""Things whose centres lie this near to one line stand in a row."""

ROOMS_RATIO = 1.25
"""Rooms are about as large if the area of neither is larger than that of the other so often."""

MIRRORED_M = 0.15
"""Places of things that stand symmetrically differ by less than this from mirror images."""


def storeys_of_map(semantic_map: SemanticMap) -> tuple[float, ...]:
    """Return the heights of the floors in a map's own points."""
    dense = semantic_map.dense
    return () if dense is None else storey_heights(dense.valid_points)


class SpaceExecutor(QueryExecutor):
    """Answers queries about rooms, ways and arrangements beside those of `QueryExecutor`.

    `storeys_m` gives the heights of the floors, and is asked only by a question that needs them.
    """

    def __init__(
        self,
        index: GraphIndex,
        resolver: ReferenceResolver,
        ways: FloorWays | None = None,
        storeys_m: Callable[[], tuple[float, ...]] = tuple,
    ) -> None:
        super().__init__(index, resolver)
        self._ways = ways
        self.storeys_m = cache(storeys_m)
        self._lengths: dict[tuple[int, int], float] = {}

    def execute(self, query: Query) -> GraphAnswer:
        """Return the answer of the graph to a query."""
        handler = _HANDLERS.get(query.kind)
        if handler is None:
            return super().execute(query)
        try:
            return handler(self, query)
        except SilentError as silence:
            return GraphAnswer(None, note=str(silence))

    def _center(self, query: Query) -> GraphAnswer:
        node = self._boxed(query.phrases[0])
        x, y, z = np.round(node.known_box.center, 3).tolist()
        return GraphAnswer((x, y, z), (node.id,))

    def _room(self, node: SceneNode) -> SceneNode:
        room = None if node.parent is None else self._index.graph.by_id[node.parent]
        if room is None or room.kind is not NodeKind.ROOM:
            raise SilentError(f'the map gives no room of the {normalised_name(node.label)}')
        return room

    def _same_room(self, query: Query) -> GraphAnswer:
        nodes = [self._one(phrase) for phrase in query.phrases]
        first, second = (self._room(node) for node in nodes)
        return yes_no(first.id == second.id, *nodes)

    def _count_with(self, query: Query) -> GraphAnswer:
        node = self._one(query.phrases[1])
        room = self._room(node)
        inside = [item.id for item in self._existing(query.phrases[0]) if item.parent == room.id]
        return GraphAnswer(len(inside), (*inside, node.id))

    def _room_area(self, query: Query) -> GraphAnswer:
        node = self._one(query.phrases[0])
        room = self._room(node)
        if room.box is None:
            raise SilentError('the room has no box in the map')
        return GraphAnswer(round(float(np.prod(room.box.size[:2])), 3), (node.id,))

    def _walk_m(self, first: SceneNode, second: SceneNode) -> float:
        if self._ways is None:
            raise SilentError('the map has no points to find a way on')
        key = (min(first.id, second.id), max(first.id, second.id))
        if key not in self._lengths:
            nodes = [self._index.by_id[node_id] for node_id in key]
            length_m = self._ways.between_m(*(node.known_box for node in nodes))
            self._lengths[key] = float('nan') if length_m is None else length_m
        if np.isnan(self._lengths[key]):
            raise SilentError('the map has no way there')
        return self._lengths[key]

    def _walk(self, query: Query) -> GraphAnswer:
        first, second = (self._boxed(phrase) for phrase in query.phrases)
        return GraphAnswer(round(self._walk_m(first, second), 3), (first.id, second.id))

    def _walk_closer(self, query: Query) -> GraphAnswer:
        first, second, origin = (self._boxed(phrase) for phrase in query.phrases)
        return self._choice(query, self._walk_m(origin, first) < self._walk_m(origin, second))

    def _round(self, query: Query) -> GraphAnswer:
        self._needs_relations()
        node = self._one(query.phrases[1])
        beside = set(self._index.sources(RelationType.NEXT_TO.value, node.id))
        found = [item.id for item in self._existing(query.phrases[0]) if item.id in beside]
        return GraphAnswer(len(found), (*found, node.id))

    def _several(self, query: Query) -> list[SceneNode]:
        nodes = [node for node in self._existing(query.phrases[0]) if node.box is not None]
        if len(nodes) < 2:
            raise SilentError(f'the map has fewer than two of "{query.phrases[0]}"')
        return nodes

    def _alike(self, query: Query) -> GraphAnswer:
        nodes = self._several(query)
        return yes_no(height_spread_m(nodes) <= ALIKE_M, *nodes)

    def _row(self, query: Query) -> GraphAnswer:
        nodes = self._several(query)
        return yes_no(off_line_m(nodes) <= ROW_M, *nodes)

    def _floor_of(self, query: Query) -> GraphAnswer:
        node = self._boxed(query.phrases[0])
        if not self.storeys_m():
            raise SilentError('the map has no points to find floors in')
        number = int(storey_of(node.known_box.minimum[2], self.storeys_m()))
        return GraphAnswer(number, (node.id,))

    def _upstairs(self, query: Query) -> GraphAnswer:
        floor = self._floor_of(query)
        return GraphAnswer('yes' if floor.value else 'no', floor.nodes)

    def _fits_on(self, query: Query) -> GraphAnswer:
        nodes = [self._boxed(phrase) for phrase in query.phrases]
        return yes_no(slack_m(*(node.known_box for node in nodes)) >= 0, *nodes)

    def _walk_side(self, query: Query) -> GraphAnswer:
        first, second = (self._boxed(phrase) for phrase in query.phrases)
        line = None if self._ways is None else self._ways.path(first.known_box, second.known_box)
        if line is None:
            raise SilentError('the map has no way there')
        left_m, right_m = bends_m(line)
        return GraphAnswer('left' if left_m > right_m else 'right', (first.id, second.id))

    def _rooms_alike(self, query: Query) -> GraphAnswer:
        nodes = [self._one(phrase) for phrase in query.phrases]
        areas = [np.prod(room.known_box.size[:2]) for room in map(self._room, nodes) if room.box]
        if len(areas) < 2:
            raise SilentError('a room has no box in the map')
        return yes_no(max(areas) <= ROOMS_RATIO * min(areas), *nodes)

    def _mirrored(self, query: Query) -> GraphAnswer:
        nodes, about = self._several(query), self._boxed(query.phrases[1])
        if len(nodes) > 2:
            raise SilentError(f'the map has more than two of "{query.phrases[0]}"')
        return yes_no(mirror_error_m(nodes, about) <= MIRRORED_M, *nodes, about)

    def _which_fits(self, query: Query) -> GraphAnswer:
        first, second, lower = (self._boxed(phrase).known_box for phrase in query.phrases)
        return self._choice(query, slack_m(first, lower) > slack_m(second, lower))


def bends_m(line: NDArray[np.float64]) -> tuple[float, float]:
    """Return how far a way (N, 3) lies left and right of the straight line between its ends."""
    offsets = line[:, :2] - line[0, :2]
    chord = offsets[-1] / max(1e-9, float(np.linalg.norm(offsets[-1])))
    left = chord[0] * offsets[:, 1] - chord[1] * offsets[:, 0]
    return float(max(0.0, left.max())), float(max(0.0, -left.min()))


def mirror_error_m(pair: Sequence[SceneNode], about: SceneNode) -> float:
    """Return how far one of two is from the mirror image of the other about a thing's middle.

    The mirror stands upright along an axis of the world, the one of two that fits better. It
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
    """Return the difference in height between the tallest and the lowest of boxed things."""
    return float(np.ptp([node.known_box.size[2] for node in nodes]))


def off_line_m(nodes: Sequence[SceneNode]) -> float:
    """Return how far the centre of a thing lies from the best line through all, from above."""
    centers = np.array([node.known_box.center[:2] for node in nodes])
    offsets = centers - centers.mean(axis=0)
    _, _, axes = np.linalg.svd(offsets)
    return float(np.abs(offsets @ axes[1]).max())


def slack_m(upper: AxisAlignedBox, lower: AxisAlignedBox) -> float:
    """Return by how much the top of a box is larger than the footprint of another, turned to fit.

    That is the smaller of the differences of the short edges and of the long ones.
    """
    return float((np.sort(lower.size[:2]) - np.sort(upper.size[:2])).min())


_HANDLERS: Mapping[QueryKind, Callable[[SpaceExecutor, Query], GraphAnswer]] = {
    QueryKind.CENTER: SpaceExecutor._center,
    QueryKind.SAME_ROOM: SpaceExecutor._same_room,
    QueryKind.COUNT_WITH: SpaceExecutor._count_with,
    QueryKind.ROOM_AREA: SpaceExecutor._room_area,
    QueryKind.WALK: SpaceExecutor._walk,
    QueryKind.WALK_CLOSER: SpaceExecutor._walk_closer,
    QueryKind.ROUND: SpaceExecutor._round,
    QueryKind.ALIKE: SpaceExecutor._alike,
    QueryKind.ROW: SpaceExecutor._row,
    QueryKind.FITS_ON: SpaceExecutor._fits_on,
    QueryKind.WALK_SIDE: SpaceExecutor._walk_side,
    QueryKind.ROOMS_ALIKE: SpaceExecutor._rooms_alike,
    QueryKind.MIRRORED: SpaceExecutor._mirrored,
    QueryKind.WHICH_FITS: SpaceExecutor._which_fits,
    QueryKind.UPSTAIRS: SpaceExecutor._upstairs,
    QueryKind.FLOOR_OF: SpaceExecutor._floor_of,
}
