"""Relations between the objects of a scene: one definition for ground truth and for maps.

All follow from boxes, and where the caller has them from points on the surfaces; nothing depends
on a viewpoint. With A the source and B the target:

- A on B: a surface of B supports A. Its bottom is within `support_gap_m` of a surface of B that
  underlies at least `support_share` of A's footprint, and that does not go on upwards through A as
  a wall does behind a painting. Without points, that surface is B's top.
- A in B: A's footprint is in B's, and B's walls surround A: on an arc of `closed_share` of all
  horizontal directions, or of `open_share` if B also covers A from above (a shelf). Without
  points, A's box must lie in B's, bottom and footprint, and at least half of its height.
- A under B: B covers at least half of A's footprint from at most `under_gap_m` above, without
  standing on A or holding it, and no third object carries both (the levels of a shelf).
- A attached to B: A rests on nothing, and touches B: walls and ceilings first, else the largest.
- A next to B: on one level, at most `next_to_m` apart; both ways.
- A near B: at most `near_m` apart and none of the above, not even over a third; both ways.
- A part of B: B is A's room.

Where the points are those that a camera saw (`occluded`), an object hides the surface below it,
and objects in a shelf hide its back. Then A is on B if B's top, or its surface within AROUND_M
around A, is at A's bottom, and `support_share` of A's footprint is over B's box; A is in B if B's
walls close `closed_share` of the circle, or A is in B's box and B covers half as much as
`cover_share`.

An object has at most one carrier (on or in) and one object that it is attached to. Parts of the
building carry objects and have objects attached, but are a source of `part of` only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.cloud import SurfacePoints, close_pairs
from osmabench_ros.semantics.labels import is_structure
from osmabench_ros.semantics.scene_graph import (
    THINGS,
    NodeKind,
    RelationType,
    SceneEdge,
    SceneGraph,
    SceneNode,
)

# The surface under an object that hides it is looked for this far around the object.
AROUND_M = 0.1


@dataclass(frozen=True)
class RelationThresholds:
    """Limits of the predicates; lengths in metres, shares in [0, 1].

    Parameters
    ----------
    support_gap_m : float
        Greatest distance between the bottom of an object and the surface below it.
    support_share : float
        Least share of its footprint above that surface.
    inside_share : float
        Least share of its footprint within its container's.
    closed_share, open_share : float
        Least arc of horizontal directions with a wall, without and with a cover above.
    cover_share : float
        Least share of a footprint that a cover above it hides.
    under_gap_m : float
        Greatest free height below a cover.
    contact_m : float
        Greatest distance of objects that touch.
    next_to_m, near_m : float
        Greatest distance between boxes.
    level_m : float
        Greatest difference in height between the bottoms of objects next to each other.
    """

    support_gap_m: float = 0.04
    support_share: float = 0.3
    inside_share: float = 0.8
    closed_share: float = 0.9
    open_share: float = 0.4
    cover_share: float = 0.5
    under_gap_m: float = 0.8
    contact_m: float = 0.03
    next_to_m: float = 0.3
    near_m: float = 0.8
    level_m: float = 0.25


LIMITS = RelationThresholds()

# How each carried object is carried, and by which, as rows of the objects.
Carriers = Mapping[int, tuple[RelationType, int]]

# Relations that always come in both directions.
SYMMETRIC = frozenset({RelationType.NEXT_TO, RelationType.NEAR})


def derive_relations(
    nodes: Sequence[SceneNode],
    *,
    surfaces: Mapping[int, ArrayLike] | None = None,
    occluded: bool = False,
) -> tuple[SceneEdge, ...]:
    """Derive all relations between nodes.

    Parameters
    ----------
    nodes : sequence of SceneNode
        Objects, parts of the building (kind BACKGROUND, or named so) and rooms; those without a
        box are left out.
    surfaces : mapping of int to array_like, shape (N, 3), optional
        Points on the surfaces of nodes by id, world metres; the predicates need about 1000
        points per square metre. Nodes without points are treated as boxes.
    occluded : bool
        The points are those that a camera saw, so that an object hides the surface below it: it
        is on the part of B's box below it if B's surface goes on at its height around it.

    Returns
    -------
    tuple of SceneEdge
        Ordered by source, relation, target.
    """
    boxed = [node for node in nodes if node.box is not None]
    rooms = [node for node in boxed if node.kind is NodeKind.ROOM]
    things = [n for n in boxed if n.kind in THINGS]
    found = _Relations(things, surfaces or {}, occluded)
    order = {relation.value: i for i, relation in enumerate(RelationType)}
    edges = [*found.edges(), *_join_rooms(things, rooms)]
    return tuple(sorted(edges, key=lambda edge: (edge.source, order[edge.type], edge.target)))


def _join_rooms(things: Iterable[SceneNode], rooms: Sequence[SceneNode]) -> Iterable[SceneEdge]:
    ids = {room.id for room in rooms}
    for node in things:
        room_id = node.parent if node.parent in ids else _find_room_around(node, rooms)
        if room_id is not None:
            yield SceneEdge(node.id, room_id, RelationType.PART_OF.value)


def _find_room_around(node: SceneNode, rooms: Sequence[SceneNode]) -> int | None:
    center = node.known_box.center
    holding = [room for room in rooms if room.known_box.contains(center)]
    return min(holding, key=lambda room: (room.known_box.volume, room.id)).id if holding else None


class _Relations:
    """Evaluates the predicates on all close pairs of objects."""

    def __init__(
        self, things: Sequence[SceneNode], surfaces: Mapping[int, ArrayLike], occluded: bool
    ) -> None:
        self.nodes, self.occluded = things, occluded
        self.boxes = [node.known_box for node in things]
        self.low = np.array([box.minimum for box in self.boxes]).reshape(-1, 3)
        self.high = np.array([box.maximum for box in self.boxes]).reshape(-1, 3)
        self.fixed = np.array(
            [n.kind is NodeKind.BACKGROUND or is_structure(n.label) for n in things], bool
        )
        self.points = {
            i: SurfacePoints(surfaces[node.id])
            for i, node in enumerate(things)
            if node.id in surfaces and np.size(surfaces[node.id])
        }
        reach = max(LIMITS.near_m, LIMITS.under_gap_m)
        first, second = close_pairs(self.low, self.high, reach)
        self.a = np.concatenate([first, second])
        self.b = np.concatenate([second, first])
        movable = ~self.fixed[self.a]
        self.a = self.a[movable]
        self.b = self.b[movable]
        upper = np.minimum(self.high[self.a], self.high[self.b])
        shared = upper - np.maximum(self.low[self.a], self.low[self.b])
        self.gap = np.maximum(-shared, 0.0)
        extent = np.maximum(self.high - self.low, 1e-6)[self.a]
        self.share = np.clip(shared / extent, 0.0, 1.0)
        self.footprint_share = self.share[:, 0] * self.share[:, 1]

    def edges(self) -> Iterable[SceneEdge]:
        """Yield all edges."""
        carriers = self._find_carriers()
        covers = self._find_covers(carriers)
        attached = self._find_attached(carriers)
        for a, (relation, b) in carriers.items():
            yield self._make_edge(a, b, relation)
        for a, b in covers:
            yield self._make_edge(a, b, RelationType.UNDER)
        for a, b in attached.items():
            yield self._make_edge(a, b, RelationType.ATTACHED_TO)
        related = {(a, b) for a, (_, b) in carriers.items()} | covers | set(attached.items())
        yield from self._find_neighbours(carriers, related)

    def _make_edge(self, a: int, b: int, relation: RelationType) -> SceneEdge:
        return SceneEdge(self.nodes[a].id, self.nodes[b].id, relation.value)

    def _list_pairs(self, mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
        return list(zip(self.a[mask].tolist(), self.b[mask].tolist(), strict=True))

    def _find_carriers(self) -> dict[int, tuple[RelationType, int]]:
        """Return the carrier of every object that has one."""
        supports = {a: (RelationType.ON, b) for a, b in self._find_supports().items()}
        return supports | {a: (RelationType.IN, b) for a, b in self._find_containers().items()}

    def _find_supports(self) -> dict[int, int]:
        a, b = self.a, self.b
        bottom = self.low[a, 2]
        possible = (
            (self.footprint_share >= 0.5 * LIMITS.support_share)
            & (self.low[b, 2] <= bottom + LIMITS.support_gap_m)
            & (self.high[b, 2] >= bottom - LIMITS.support_gap_m)
            & (
                (self.low[b, 2] < bottom - 0.005)
                | (self.high[b, 2] <= bottom + LIMITS.support_gap_m)
            )
        )
        best: dict[int, tuple[float, float, int]] = {}
        for i, j in self._list_pairs(possible):
            gap, share = self._measure_support(i, j)
            if gap <= LIMITS.support_gap_m and share >= LIMITS.support_share:
                best[i] = min(best.get(i, (np.inf, 0.0, -1)), (round(gap, 3), -share, j))
        return {i: j for i, (_, _, j) in best.items()}

    def _measure_support(self, i: int, j: int) -> tuple[float, float]:
        """Return the gap between i and the surface of j below it, and its share of i."""
        box, limit = self.boxes[i], LIMITS.support_gap_m
        if j in self.points:
            z = float(box.minimum[2])
            surface = self.points[j]
            share = surface.measure_cover(box, z - limit, z + limit)
            through = surface.measure_cover(box, z + limit, max(float(box.maximum[2]), z + limit))
            if self.occluded:
                around = np.array([AROUND_M, AROUND_M, 0.0])
                share = self._measure_footprint_over(i, j)
                box = AxisAlignedBox(box.minimum - around, box.maximum + around)
            # B goes on upwards through A, as a wall behind a picture does.
            if 2 * through > share:
                return np.inf, 0.0
            gap = surface.measure_height_gap(box, limit)
            if self.occluded:
                gap = min(gap, self._measure_gap_to_top(i, j))
            return gap, share
        return self._measure_gap_to_top(i, j), self._measure_footprint_over(i, j)

    def _measure_gap_to_top(self, i: int, j: int) -> float:
        return abs(float(self.high[j, 2] - self.low[i, 2]))

    def _measure_footprint_over(self, i: int, j: int) -> float:
        """Return the share of i's footprint over the box of j."""
        overlap = np.minimum(self.high[i], self.high[j]) - np.maximum(self.low[i], self.low[j])
        area = max(float(np.prod(self.boxes[i].size[:2])), 1e-9)
        return float(np.prod(np.maximum(overlap[:2], 0.0))) / area

    def _find_containers(self) -> dict[int, int]:
        a, b = self.a, self.b
        volume = np.prod(self.high - self.low, axis=1)
        possible = (
            ~self.fixed[b]
            & (self.footprint_share >= LIMITS.inside_share)
            & (self.low[a, 2] >= self.low[b, 2] - 0.01)
            & (self.share[:, 2] > 0.05)
            & (volume[a] < volume[b])
        )
        best: dict[int, tuple[float, int]] = {}
        for i, j in self._list_pairs(possible):
            if self._is_enclosed(i, j):
                best[i] = min(best.get(i, (np.inf, -1)), (float(volume[j]), j))
        return {i: j for i, (_, j) in best.items()}

    def _is_enclosed(self, i: int, j: int) -> bool:
        box = self.boxes[i]
        z = float(box.minimum[2])
        height = float(box.size[2])
        inside = min(self.high[j, 2], box.maximum[2]) - z
        in_box = bool(inside >= 0.5 * height and self.high[j, 2] > z + LIMITS.support_gap_m)
        if j not in self.points:
            return in_box
        surface = self.points[j]
        # The surface below A is not a wall: look above it.
        lowest = z + LIMITS.support_gap_m + 0.002
        middle = max(z + 0.5 * height, lowest + 0.02)
        walls = surface.measure_enclosure(box, lowest, middle, self.boxes[j])
        if walls >= LIMITS.closed_share:
            return True
        top = float(box.maximum[2])
        cover = surface.measure_cover(box, top - 0.01, float(self.high[j, 2]) + 0.01)
        if self.occluded:
            # Objects in a shelf hide its back, and a low shelf hides half of its boards.
            return in_box and 2 * cover >= LIMITS.cover_share
        return walls >= LIMITS.open_share and cover >= LIMITS.cover_share

    def _find_covers(self, carriers: Carriers) -> set[tuple[int, int]]:
        a, b = self.a, self.b
        possible = (
            ~self.fixed[b]
            & (self.footprint_share >= LIMITS.cover_share)
            & (self.high[b, 2] > self.high[a, 2])
            & (self.low[b, 2] <= self.high[a, 2] + LIMITS.under_gap_m)
        )
        chains = [_find_carrier_chain(i, carriers) for i in range(len(self.nodes))]
        found = set()
        for i, j in self._list_pairs(possible):
            carries = j in chains[i] or i in chains[j]
            # The levels of one shelf are not under each other.
            siblings = any(not self.fixed[k] for k in set(chains[i]) & set(chains[j]))
            if not carries and not siblings and self._is_covered(i, j):
                found.add((i, j))
        # Under a desk, not under the lamp on it.
        return {(i, j) for i, j in found if not any((i, k) in found for k in chains[j])}

    def _is_covered(self, i: int, j: int) -> bool:
        box = self.boxes[i]
        top = float(box.maximum[2])
        if j not in self.points:
            return bool(self.low[j, 2] >= top - LIMITS.support_gap_m)
        share = self.points[j].measure_cover(box, top - 0.01, top + LIMITS.under_gap_m)
        return share >= LIMITS.cover_share

    def _find_attached(self, carriers: Carriers) -> dict[int, int]:
        contact = LIMITS.contact_m
        a = self.a
        b = self.b
        size = np.prod(np.maximum(self.high - self.low, 0.01), axis=1)
        possible = (self.gap <= contact).all(axis=1) & (self.fixed[b] | (size[b] > size[a]))
        best: dict[int, tuple[bool, float, int]] = {}
        for i, j in self._list_pairs(possible):
            carried = i in carriers or (j in carriers and carriers[j][1] == i)
            area = 0.0 if carried else self._measure_contact(i, j)
            if area > 0:
                rank = (not self.fixed[j], -area, j)
                best[i] = min(best.get(i, rank), rank)
        return {i: j for i, (_, _, j) in best.items()}

    def _measure_contact(self, i: int, j: int) -> float:
        """Return a measure of how much i touches j: points, else square metres."""
        contact = LIMITS.contact_m
        if j in self.points:
            return float(self.points[j].touching(self.boxes[i], contact))
        low = np.maximum(self.low[i], self.low[j])
        high = np.minimum(self.high[i], self.high[j])
        extent = np.sort(np.maximum(high - low + contact, 0.0))
        return float(extent[1] * extent[2])

    def _find_neighbours(
        self, carriers: Carriers, related: set[tuple[int, int]]
    ) -> Iterable[SceneEdge]:
        a, b = self.a, self.b
        distance = np.linalg.norm(self.gap, axis=1)
        close = ~self.fixed[b] & (distance <= LIMITS.near_m)
        level = np.abs(self.low[a, 2] - self.low[b, 2]) <= LIMITS.level_m
        beside = (distance <= LIMITS.next_to_m) & level & (self.gap[:, 2] == 0)
        pairs = zip(self._list_pairs(close), beside[close].tolist(), strict=True)
        for (i, j), is_beside in pairs:
            if (i, j) in related or (j, i) in related or self._is_apart(i, j):
                continue
            if j in _find_carrier_chain(i, carriers) or i in _find_carrier_chain(j, carriers):
                continue
            yield self._make_edge(i, j, RelationType.NEXT_TO if is_beside else RelationType.NEAR)

    def _is_apart(self, i: int, j: int) -> bool:
        """Return whether two objects are known to be in different rooms."""
        rooms = self.nodes[i].parent, self.nodes[j].parent
        return None not in rooms and rooms[0] != rooms[1]


def with_neighbours_within(graph: SceneGraph, shift_m: float) -> SceneGraph:
    """Return a graph with the distances of next to and near larger by `shift_m`.

    Things that are neither next to nor near each other stay so.
    """
    edges = []
    for edge in graph.edges:
        if edge.type in (RelationType.NEXT_TO.value, RelationType.NEAR.value):
            a, b = (graph.by_id[end].known_box for end in (edge.source, edge.target))
            distance = a.measure_gap(b)
            if distance > LIMITS.near_m + shift_m:
                continue
            beside = (
                distance <= LIMITS.next_to_m + shift_m
                and abs(a.minimum[2] - b.minimum[2]) <= LIMITS.level_m + shift_m
                and max(a.minimum[2] - b.maximum[2], b.minimum[2] - a.maximum[2])
                <= max(shift_m, 0.0)
            )
            kind = RelationType.NEXT_TO if beside else RelationType.NEAR
            edge = replace(edge, type=kind.value)
        edges.append(edge)
    return replace(graph, edges=tuple(edges))


def _find_carrier_chain(i: int, carriers: Carriers) -> list[int]:
    """Return the chain of objects that carry an object."""
    chain: list[int] = []
    while i in carriers and carriers[i][1] not in chain:
        i = carriers[i][1]
        chain.append(i)
    return chain
