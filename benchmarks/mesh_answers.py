"""Answers questions a second time: from the triangles of a scene, and not from its graph.

Things are found among the seen ones by class and, where there are several, by colour or material.
Extents come from vertices, relations from rays and distances to surfaces (Open3D), ways from the
triangles of the navigation grid.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
import open3d as o3d
from numpy.typing import NDArray
from triangle_ways import TriangleNavigation

from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.scenes.visibility import RayCaster, sample_object
from osmabench_ros.simulation.walkable_grid import WalkableGrid
from osmabench_ros.vqa.kinds import Kind, Query, QueryKind
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import AnswerValue

RADIUS_M, HEIGHT_M = 0.2, 1.5
# Between rays; a towel that hangs over the edge of a bathtub is not wider.
SPACING_M = 0.02

ADJECTIVE_OF = {
    'wood': 'wooden', 'wool': 'woollen', 'metal': 'metal', 'glass': 'glass', 'plastic': 'plastic',
    'fabric': 'fabric', 'leather': 'leather', 'stone': 'stone', 'ceramic': 'ceramic',
}  # fmt: skip


def navmesh_of(grid: WalkableGrid) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (V, 3) and triangles (F, 3) of the free places of a navigation grid."""
    layers, columns, rows = np.nonzero(grid.free)
    shifts = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    cells = np.column_stack([columns, rows])[:, None] + shifts
    heights = np.repeat(grid.heights_m[layers, columns, rows], 4)
    keys = np.column_stack([np.repeat(layers, 4), cells.reshape(-1, 2)])
    corners, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    vertices = np.column_stack([grid.origin_m + corners[:, 1:] * grid.cell_m, heights[first]])
    quads = place.reshape(-1, 4)
    return vertices, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int64)


class Meshes:
    """Answers queries from the triangles of a scene's seen objects."""

    def __init__(self, scene: Scene, seen: frozenset[int]) -> None:
        self.scene = scene
        self.seen = [item for item in scene.objects if item.instance_id in seen]
        known = scene.label_set.by_id
        building = [item for item in scene.objects if item.class_id in known]
        building = [item for item in building if known[item.class_id].structure]
        # Lamps hang in the way of rays under the ceiling.
        self.building = RayCaster(replace(scene, objects=tuple(building)))

    def label(self, item: SceneObject) -> str:
        """Return the class of an object as questions spell it."""
        return knowledge().spelt(self.scene.class_name(item))

    def named(self, phrase: str) -> list[SceneObject]:
        """Return the seen objects that a phrase means."""
        words = phrase.split()
        for cut in range(len(words)):
            found = [item for item in self.seen if self.label(item) == ' '.join(words[cut:])]
            if found:
                return [item for item in found if set(words[:cut]) <= set(_adjectives(item))]
        return []

    def one(self, phrase: str) -> SceneObject:
        """Return the only seen object that a phrase means."""
        (item,) = self.named(phrase)
        return item

    def first(self, query: Query) -> SceneObject:
        """Return the only seen object that the first phrase of a query means."""
        return self.one(query.phrases[0])

    def corners(self, item: SceneObject) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and the upper corner of the box around an object."""
        parts = [
            mesh.vertices.astype(np.float64) @ item.pose.rotation.T + item.pose.translation
            for mesh in item.meshes
        ]
        points = np.concatenate(parts)
        return points.min(axis=0), points.max(axis=0)

    def center(self, item: SceneObject) -> NDArray[np.float64]:
        """Return the middle of that box."""
        return np.mean(self.corners(item), axis=0)

    def size(self, item: SceneObject) -> NDArray[np.float64]:
        """Return the edges of that box."""
        low, high = self.corners(item)
        return high - low

    def points(self, item: SceneObject) -> NDArray[np.float64]:
        """Return points on the surface of an object."""
        rng = np.random.default_rng(item.instance_id + 1)
        return sample_object(item, 6000.0, rng)[0].astype(np.float64)

    def room(self, item: SceneObject) -> str:
        """Return the room that most of an object's surface is in."""
        points = self.points(item)
        rooms = self.scene.rooms
        inside = {room.name: float(room.box.contains(points, 0.05).mean()) for room in rooms}
        return max(inside, key=lambda name: inside[name])

    @cached_property
    def grid(self) -> WalkableGrid:
        """Where a robot can go among the meshes."""
        return WalkableGrid.of_scene(self.scene, radius_m=RADIUS_M, height_m=HEIGHT_M, seed=1)

    def foot(self, item: SceneObject) -> NDArray[np.float64]:
        """Return the point of the floor below the middle of an object."""
        x, y, z = self.center(item)
        return np.array([x, y, max(floor_m for floor_m in self.grid.storeys_m if floor_m <= z)])

    def side(self, first: SceneObject, second: SceneObject) -> str:
        """Return the side of the straight line that most of the area under a way lies on."""
        free = self.grid.positions(np.argwhere(self.grid.free))
        ends = [
            free[np.argmin(np.linalg.norm(free - self.foot(item), axis=1))]
            for item in (first, second)
        ]
        x, y = (self.grid.find_shortest_path(*ends)[:, :2] - ends[0][:2]).T
        # The area between chord and way, by the shoelace formula: a way on the left of its chord
        # goes around it clockwise.
        area = float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))
        return 'left' if area < 0 else 'right'

    @cached_property
    def ways(self) -> TriangleNavigation:
        """Return the ways on the triangles of the navigation grid."""
        return TriangleNavigation(*navmesh_of(self.grid))

    def way_m(self, first: SceneObject, second: SceneObject) -> float:
        """Return the length of the way between two objects."""
        return self.ways.distance_m(self.foot(first), self.foot(second))

    def room_area_m2(self, item: SceneObject) -> float:
        """Return width times depth between walls, by level rays close under the ceiling."""
        x, y, _ = self.center(item)
        (room,) = (room for room in self.scene.rooms if room.name == self.room(item))
        z = float(room.box.maximum[2]) - 0.05
        rays = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)], np.float32)
        origins = np.tile(np.array([x, y, z], np.float32), (4, 1))
        east, west, north, south = self.building.distances(origins, rays).tolist()
        return (east + west) * (north + south)

    def above_floor_m(self, item: SceneObject) -> float:
        """Return the height of an object's top above the lowest surface below its centre."""
        low, high = self.corners(item)
        x, y, _ = self.center(item)
        tops = [
            end[2]
            for start, end in self.floors
            if start[0] <= x <= end[0] and start[1] <= y <= end[1] and end[2] <= low[2] + 0.1
        ]
        return float(high[2] - max(tops))

    @property
    def floors(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """The corners of all floors."""
        every = self.scene.objects
        return [self.corners(item) for item in every if self.scene.class_name(item) == 'floor']

    def floor_number(self, item: SceneObject) -> int:
        """Return how many floors, 2 m apart, are below an object, without the lowest one."""
        low, _ = self.corners(item)
        below = sorted(end[2] for _, end in self.floors if end[2] <= low[2] + 0.1)
        return int((np.diff(below) > 2.0).sum())

    def gap_m(self, first: SceneObject, second: SceneObject) -> NDArray[np.float64]:
        """Return the gaps of two objects along the axes, 0 where they overlap."""
        (low, high), (lower, higher) = self.corners(first), self.corners(second)
        return np.maximum(np.maximum(low - higher, lower - high), 0)

    def within(self, first: SceneObject, second: SceneObject, distance_m: float) -> bool:
        """Return whether things in one room are so close."""
        gap_m = float(np.linalg.norm(self.gap_m(first, second)))
        return gap_m <= distance_m and self.room(first) == self.room(second)

    def beside(self, first: SceneObject, second: SceneObject) -> bool:
        """Return whether one stands next to another: 0.3 m apart at most, on one level.

        What stands in or on the other is not next to it, nor what is behind a wall.
        """
        bottoms = [self.corners(item)[0][2] for item in (first, second)]
        near = self.within(first, second, 0.3)
        if not near or abs(bottoms[0] - bottoms[1]) > 0.25:
            return False
        pairs = ((first, second), (second, first))
        return not any(self.holds(a, b) or self.bears(a, b) for a, b in pairs)

    @lru_cache(maxsize=256)  # noqa: B019 - it lives as long as the scene is asked about
    def _rays(self, key: int) -> o3d.t.geometry.RaycastingScene:
        """Return the triangles of one object, for rays and distances."""
        item, found = self.scene.by_instance[key], o3d.t.geometry.RaycastingScene()
        faces = o3d.core.Tensor(item.world_faces.astype(np.uint32))
        found.add_triangles(o3d.core.Tensor(item.world_vertices.astype(np.float32)), faces)
        return found

    def hits_m(self, item: SceneObject, origins: NDArray, way: NDArray) -> NDArray[np.float64]:
        """Return how far rays (N,) go until they meet an object, inf if they do not."""
        ways = np.broadcast_to(way, origins.shape)
        rays = np.concatenate([origins, ways], axis=1).astype(np.float32)
        return self._rays(item.instance_id).cast_rays(o3d.core.Tensor(rays))['t_hit'].numpy()

    def touches(self, first: SceneObject, second: SceneObject) -> bool:
        """Return whether surfaces come within 3 cm, give or take the spacing of the samples."""
        points = self.points(first).astype(np.float32)
        found = self._rays(second.instance_id).compute_distance(o3d.core.Tensor(points))
        return bool(found.numpy().min() <= 0.035)

    def footprint(self, item: SceneObject, height_m: float) -> NDArray[np.float64]:
        """Return points (N, 3) at a height over or under the box of an object."""
        low, high = self.corners(item)
        counts = np.maximum(12, (high - low) / SPACING_M).astype(int)
        axes = [np.linspace(low[i] + 0.005, high[i] - 0.005, counts[i]) for i in (0, 1)]
        level = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
        return np.column_stack([level, np.full(len(level), height_m)])

    def covers(self, upper: SceneObject, lower: SceneObject) -> float:
        """Return the share of a footprint from which rays up meet an object within 0.8 m."""
        top = self.corners(lower)[1][2]
        found = self.hits_m(upper, self.footprint(lower, top - 0.01), np.array([0.0, 0, 1]))
        return float((found <= 0.81).mean())

    def holds(self, outer: SceneObject, inner: SceneObject) -> bool:
        """Return whether walls stand around a thing, or around half of it under a cover."""
        (low, high), (lower, higher) = self.corners(inner), self.corners(outer)
        shared = np.minimum(high, higher)[:2] - np.maximum(low, lower)[:2]
        if (shared <= 0).any() or np.prod(shared) < 0.75 * np.prod((high - low)[:2]):
            return False
        if low[2] < lower[2] - 0.03 or (low[2] + high[2]) / 2 > higher[2]:
            return False
        angles = np.arange(64) * np.pi / 32
        hit = np.zeros(64, bool)
        for z in np.linspace(low[2] + 0.01, high[2], 6):
            level = np.broadcast_to([*self.center(inner)[:2], z], (64, 3))
            ways = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(64)])
            hit |= np.isfinite(self.hits_m(outer, level, ways))
        return bool(hit.mean() >= (0.4 if self.covers(outer, inner) >= 0.4 else 0.85))

    def free_above_m(self, item: SceneObject) -> float:
        """Return how far up rays from an object's top go, ceilings aside, 0 if it bears one."""
        if any(self.bears(item, other) for other in self.seen if other is not item):
            return 0.0
        origins = self.footprint(item, self.corners(item)[1][2] + 1e-3)
        others = (other for other in self.things if other is not item)
        up = np.array([0.0, 0, 1])
        return min((float(self.hits_m(other, origins, up).min()) for other in others), default=9e9)

    @cached_property
    def things(self) -> list[SceneObject]:
        """The seen objects that are not parts of the building."""
        known = self.scene.label_set.by_id
        return [item for item in self.seen if not known[item.class_id].structure]

    def related(self, source: SceneObject, word: str, target: SceneObject) -> bool:
        """Return whether a relation holds, by rays and distances."""
        if word == 'next to':
            return self.beside(source, target)
        if word == 'near':
            return self.within(source, target, 0.8)
        if word == 'on':
            return self.bears(target, source) and not self.holds(target, source)
        if word == 'in':
            return self.holds(target, source)
        if word == 'under':
            return self.covers(target, source) >= 0.5 and not self.bears(source, target)
        rests = any(self.bears(item, source) for item in self.scene.objects if item is not source)
        return not rests and self.touches(source, target)

    def sources(self, word: str, target: SceneObject) -> Iterator[SceneObject]:
        """Yield the seen things that stand in a relation to one."""
        for item in self.things:
            if item is not target and self.related(item, word, target):
                yield item

    def targets(self, source: SceneObject, word: str) -> Iterator[SceneObject]:
        """Yield the seen things that one stands in a relation to."""
        for item in self.things:
            if item is not source and self.related(source, word, item):
                yield item

    def bears(self, lower: SceneObject, upper: SceneObject) -> bool:
        """Return whether rays down from the bottom of one meet the other at once."""
        if (self.gap_m(lower, upper) > 0.05).any():
            return False
        bottom = self.corners(upper)[0][2]
        origins = self.footprint(upper, bottom + 0.05)
        found = self.hits_m(lower, origins, np.array([0.0, 0, -1]))
        return bool((found <= 0.1).mean() >= 0.25)


def _adjectives(item: SceneObject) -> list[str]:
    color = str(item.attributes.get('color', '')).replace('grey', 'gray')
    material = str(item.attributes.get('material', ''))
    return [*color.split(), ADJECTIVE_OF.get(material, material)]


def _yes_no(value: bool) -> str:
    return 'yes' if value else 'no'


def _off_line_m(centers: NDArray[np.float64]) -> float:
    """Return the largest distance from a line, the least over lines in 3600 directions."""
    angles = np.arange(3600) * np.pi / 3600
    normals = np.column_stack([-np.sin(angles), np.cos(angles)])
    off = (centers - centers.mean(axis=0)) @ normals.T
    best = np.argmin((off**2).sum(axis=0))
    return float(np.abs(off[:, best]).max())


def _mirrored(meshes: Meshes, label: str, about: str) -> bool:
    """Return whether one of two things, reflected at a middle plane, lands on the other."""
    first, second = meshes.named(label)
    middle = meshes.center(meshes.one(about))[:2]
    one, other = (meshes.center(item)[:2] - middle for item in (first, second))
    return any(
        bool(np.linalg.norm(other * mirror - one) <= 0.15 and (one * other)[axis] < 0)
        for axis, mirror in enumerate(((-1, 1), (1, -1)))
    )


def _fits(meshes: Meshes, query: Query) -> bool:
    upper, lower = (sorted(meshes.size(meshes.one(p))[:2]) for p in query.phrases)
    return all(a <= b for a, b in zip(upper, lower, strict=True))


def _shorter(meshes: Meshes, query: Query) -> str:
    first, second, origin = map(meshes.one, query.phrases)
    nearer = meshes.way_m(origin, first) < meshes.way_m(origin, second)
    return query.phrases[0 if nearer else 1]


Proof = Callable[[Meshes, Query], AnswerValue | None]


def _only(meshes: Meshes, items: Iterator[SceneObject]) -> str | None:
    """Return the class of one thing, None if there are several or none."""
    labels = {meshes.label(item) for item in items}
    return labels.pop() if len(labels) == 1 else None


def _extent(meshes: Meshes, item: SceneObject, word: str) -> float:
    size = meshes.size(item)
    return float(
        {
            'taller': size[2],
            'bulkier': np.prod(size),
            'wider': size[:2].max(),
            'higher up': meshes.center(item)[2],
        }[word]
    )


def _more(meshes: Meshes, query: Query) -> bool:
    first, second = (_extent(meshes, meshes.one(p), query.word) for p in query.phrases)
    return first > second


def _straight_m(meshes: Meshes, first: str, second: str) -> float:
    one, other = (meshes.center(meshes.one(name)) for name in (first, second))
    return float(np.linalg.norm(one - other))


def _affords(meshes: Meshes, items: Iterator[SceneObject], query: Query) -> int:
    return sum(knowledge().affords(meshes.label(item), query.word) for item in items)


def _there(test: Callable[..., bool]) -> Proof:
    return lambda m, q: _yes_no(test(*(bool(m.named(phrase)) for phrase in q.phrases)))


PROOFS: Mapping[Kind, Proof] = {
    QueryKind.CENTER: lambda m, q: tuple(m.center(m.first(q)).tolist()),
    QueryKind.SAME_ROOM: lambda m, q: _yes_no(len({m.room(m.one(p)) for p in q.phrases}) == 1),
    QueryKind.COUNT: lambda m, q: len(m.named(q.phrases[0])),
    QueryKind.COUNT_WITH: lambda m, q: sum(
        m.room(item) == m.room(m.one(q.phrases[1])) for item in m.named(q.phrases[0])
    ),
    QueryKind.MORE_OF: lambda m, q: _yes_no(
        len(m.named(q.phrases[0])) > len(m.named(q.phrases[1]))
    ),
    QueryKind.ROOM_AREA: lambda m, q: m.room_area_m2(m.first(q)),
    QueryKind.HEIGHT: lambda m, q: float(m.size(m.first(q))[2]),
    QueryKind.DISTANCE: lambda m, q: float(
        np.linalg.norm(np.subtract(*(m.center(m.one(p)) for p in q.phrases)))
    ),
    QueryKind.WALK: lambda m, q: m.way_m(*map(m.one, q.phrases)),
    QueryKind.WALK_CLOSER: _shorter,
    QueryKind.RELATED: lambda m, q: _yes_no(m.related(m.first(q), q.word, m.one(q.phrases[1]))),
    QueryKind.RELATED_TO: lambda m, q: _only(m, m.sources(q.word, m.first(q))),
    QueryKind.SUPPORTED_BY: lambda m, q: _only(m, m.sources('on', m.first(q))),
    QueryKind.CONTAINER_OF: lambda m, q: _only(m, m.targets(m.first(q), 'in')),
    QueryKind.OPEN_FIRST: lambda m, q: _only(m, m.targets(m.first(q), 'in')),
    QueryKind.FIXED_TO: lambda m, q: _only(m, m.targets(m.first(q), 'attached to')),
    QueryKind.EXISTS: _there(lambda there: there),
    QueryKind.ABSENT: _there(lambda there: not there),
    QueryKind.BOTH: _there(lambda first, second: first and second),
    QueryKind.EITHER: _there(lambda first, second: first or second),
    QueryKind.FIRST_ONLY: _there(lambda first, second: first and not second),
    QueryKind.NEITHER: _there(lambda first, second: not first and not second),
    QueryKind.WHICH_MORE: lambda m, q: q.phrases[0 if _more(m, q) else 1],
    QueryKind.IS_MORE: lambda m, q: _yes_no(_more(m, q)),
    QueryKind.CLOSER: lambda m, q: min(
        q.phrases[:2], key=lambda phrase: _straight_m(m, phrase, q.phrases[2])
    ),
    QueryKind.CLEARANCE: lambda m, q: _yes_no(m.free_above_m(m.first(q)) >= (q.number or 0)),
    QueryKind.AFFORDS_ON: lambda m, q: _yes_no(_affords(m, m.sources('on', m.first(q)), q) > 0),
    QueryKind.AFFORDS_NEAR: lambda m, q: _yes_no(
        _affords(m, m.sources('next to', m.first(q)), q) > 0
    ),
    QueryKind.AFFORDS_COUNT: lambda m, q: _affords(m, iter(m.things), q),
    QueryKind.LOADED: lambda m, q: _yes_no(any(m.sources('on', m.first(q)))),
    QueryKind.UNLOADED: lambda m, q: _yes_no(not any(m.sources('on', m.first(q)))),
    QueryKind.SUPPORT_OF: lambda m, q: (
        _only(m, m.targets(m.first(q), 'on'))
        or _only(m, (item for item in m.seen if m.bears(item, m.first(q))))
    ),
    QueryKind.ROUND: lambda m, q: sum(
        m.beside(item, m.one(q.phrases[1])) for item in m.named(q.phrases[0])
    ),
    QueryKind.ALIKE: lambda m, q: _yes_no(
        float(np.ptp([m.size(item)[2] for item in m.named(q.phrases[0])])) <= 0.15
    ),
    QueryKind.ROW: lambda m, q: _yes_no(
        _off_line_m(np.array([m.center(item)[:2] for item in m.named(q.phrases[0])])) <= 0.3
    ),
    QueryKind.WALK_SIDE: lambda m, q: m.side(*map(m.one, q.phrases)),
    QueryKind.ROOMS_ALIKE: lambda m, q: _yes_no(
        abs(float(np.log(np.divide(*(m.room_area_m2(m.one(p)) for p in q.phrases)))))
        <= np.log(1.25)
    ),
    QueryKind.MIRRORED: lambda m, q: _yes_no(_mirrored(m, *q.phrases)),
    QueryKind.WHICH_FITS: lambda m, q: next(
        (p for p in q.phrases[:2] if _fits(m, Query(q.kind, (p, q.phrases[2])))), None
    ),
    QueryKind.FLOOR_OF: lambda m, q: m.floor_number(m.first(q)),
    QueryKind.UPSTAIRS: lambda m, q: _yes_no(m.floor_number(m.first(q)) > 0),
    QueryKind.FITS_ON: lambda m, q: _yes_no(_fits(m, q)),
    QueryKind.PASSABLE: lambda m, q: _yes_no(
        float(np.linalg.norm(m.gap_m(*map(m.one, q.phrases))[:2])) >= (q.number or 0)
    ),
    QueryKind.REACHABLE: lambda m, q: _yes_no(m.above_floor_m(m.first(q)) <= (q.number or 0)),
}  # fmt: skip

_DIRECTION = re.compile(
    r'With .*, in which direction is the (?P<thing>.+) as seen from the (?P<origin>.+)\?'
)
_EIGHT = (
    'front', 'front left', 'left', 'back left', 'back', 'back right', 'right', 'front right',
)  # fmt: skip


def direction(meshes: Meshes, text: str) -> str | None:
    """Return the answer to a question of Hypo3D for a direction; the front is the world's +x."""
    asked = _DIRECTION.fullmatch(text)
    if asked is None:
        return None
    x, y, _ = np.subtract(*(meshes.center(meshes.one(asked[k])) for k in ('thing', 'origin')))
    return _EIGHT[int(np.degrees(np.arctan2(y, x)) % 360 / 45 + 0.5) % 8]
