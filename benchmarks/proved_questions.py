"""Proves generated questions a second time, from the meshes of the scene and not from its graph.

python benchmarks/proved_questions.py [--seeds 10] [--count 60]

Apartments are seen from random places. A question names things by class and, where there are
several, by colour or material: the proof finds them among the seen objects of the scene, and
computes the answer from their triangles: extents, rays (Open3D), and ways on the triangles of the
navigation grid. Exit code 1 if an answer disagrees by more than the tolerance of its question, or
if fewer than 50 questions a seed are proved. Kinds without a second computation are counted apart.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.scenes.visibility import RayCaster, sample_object
from osmabench_ros.sequences.ground_truth import GroundTruth, build_ground_truth
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.suites.space3d.export import navmesh_of
from osmabench_ros.suites.space3d.navmesh import TriangleNavigation
from osmabench_ros.suites.space3d.suite import SPACE3D
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import AnswerValue, Query, QueryKind, Question
from osmabench_ros.vqa.wording import parsed

CAMERA = Intrinsics.from_hfov(160, 120, 1.5)
PLACES = 16
RADIUS_M, HEIGHT_M = 0.2, 1.5
ADJECTIVE_OF = {
    'wood': 'wooden', 'wool': 'woollen', 'metal': 'metal', 'glass': 'glass', 'plastic': 'plastic',
    'fabric': 'fabric', 'leather': 'leather', 'stone': 'stone', 'ceramic': 'ceramic',
}  # fmt: skip


def seen_truth(scene: Scene, seed: int) -> GroundTruth:
    """Return the ground truth of a scene that is seen from random places, all around."""
    grid = NavigationMap.of_scene(scene, radius_m=RADIUS_M, height_m=HEIGHT_M)
    places = grid.random_points(PLACES, np.random.default_rng(seed))
    poses = [
        Pose.from_yaw(yaw, (x, y, z + 1.2)) @ optical_pose_in_link()
        for x, y, z in places.tolist()
        for yaw in np.arange(4) * np.pi / 2
    ]
    return build_ground_truth(scene, poses, CAMERA, seed=seed)


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
        """Return the room that most of an object's surface lies in."""
        points = self.points(item)
        inside = {
            room.name: float(room.box.contains(points, 0.05).mean()) for room in self.scene.rooms
        }
        return max(inside, key=lambda name: inside[name])

    @cached_property
    def ways(self) -> TriangleNavigation:
        """Return the ways on the triangles of the navigation grid."""
        grid = NavigationMap.of_scene(self.scene, radius_m=RADIUS_M, height_m=HEIGHT_M, seed=1)
        return TriangleNavigation(*navmesh_of(grid))

    def way_m(self, first: SceneObject, second: SceneObject) -> float:
        """Return the length of the way between the centres of two objects."""
        return self.ways.distance_m(self.center(first), self.center(second))

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
        floors = [other for other in self.scene.objects if self.scene.class_name(other) == 'floor']
        tops = [
            self.corners(floor)[1][2]
            for floor in floors
            if (self.corners(floor)[0][:2] <= self.center(item)[:2]).all()
            and (self.corners(floor)[1][:2] >= self.center(item)[:2]).all()
            and self.corners(floor)[1][2] <= low[2] + 0.1
        ]
        return float(high[2] - max(tops))

    def gap_m(self, first: SceneObject, second: SceneObject) -> NDArray[np.float64]:
        """Return the gaps of two objects along the axes, 0 where they overlap."""
        (low, high), (lower, higher) = self.corners(first), self.corners(second)
        return np.maximum(np.maximum(low - higher, lower - high), 0)

    def beside(self, first: SceneObject, second: SceneObject) -> bool:
        """Return whether one stands next to another: 0.3 m apart at most, on one level."""
        bottoms = [self.corners(item)[0][2] for item in (first, second)]
        near = np.linalg.norm(self.gap_m(first, second)) <= 0.3
        return bool(near and abs(bottoms[0] - bottoms[1]) <= 0.25)

    def bears(self, lower: SceneObject, upper: SceneObject) -> bool:
        """Return whether rays down from the bottom of one meet the other at once."""
        low, high = self.corners(upper)
        grid = np.stack(np.meshgrid(*np.linspace(low[:2], high[:2], 12).T), -1).reshape(-1, 2)
        points = self.points(lower)
        under = 0
        for x, y in grid:
            near = (np.abs(points[:, :2] - (x, y)) < 0.03).all(axis=1)
            heights = points[near, 2]
            under += bool((np.abs(heights - low[2]) < 0.05).any())
        return under / len(grid) >= 0.25


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


def _fits(meshes: Meshes, query: Query) -> bool:
    upper, lower = (sorted(meshes.size(meshes.one(p))[:2]) for p in query.phrases)
    return all(a <= b for a, b in zip(upper, lower, strict=True))


def _shorter(meshes: Meshes, query: Query) -> str:
    first, second, origin = map(meshes.one, query.phrases)
    nearer = meshes.way_m(origin, first) < meshes.way_m(origin, second)
    return query.phrases[0 if nearer else 1]


def _related(meshes: Meshes, query: Query) -> str | None:
    source, target = map(meshes.one, query.phrases)
    if query.word == 'next to':
        return _yes_no(meshes.beside(source, target))
    if query.word == 'near':
        return _yes_no(float(np.linalg.norm(meshes.gap_m(source, target))) <= 0.8)
    if query.word == 'on':
        return _yes_no(meshes.bears(target, source))
    return None


Proof = Callable[[Meshes, Query], AnswerValue | None]
PROOFS: dict[QueryKind, Proof] = {
    QueryKind.CENTER: lambda m, q: tuple(m.center(m.one(q.phrases[0])).tolist()),
    QueryKind.SAME_ROOM: lambda m, q: _yes_no(len({m.room(m.one(p)) for p in q.phrases}) == 1),
    QueryKind.COUNT: lambda m, q: len(m.named(q.phrases[0])),
    QueryKind.COUNT_WITH: lambda m, q: sum(
        m.room(item) == m.room(m.one(q.phrases[1])) for item in m.named(q.phrases[0])
    ),
    QueryKind.MORE_OF: lambda m, q: _yes_no(
        len(m.named(q.phrases[0])) > len(m.named(q.phrases[1]))
    ),
    QueryKind.ROOM_AREA: lambda m, q: m.room_area_m2(m.one(q.phrases[0])),
    QueryKind.HEIGHT: lambda m, q: float(m.size(m.one(q.phrases[0]))[2]),
    QueryKind.DISTANCE: lambda m, q: float(
        np.linalg.norm(np.subtract(*(m.center(m.one(p)) for p in q.phrases)))
    ),
    QueryKind.WALK: lambda m, q: m.way_m(*map(m.one, q.phrases)),
    QueryKind.WALK_CLOSER: _shorter,
    QueryKind.RELATED: _related,
    QueryKind.SUPPORT_OF: lambda m, q: next(
        (
            m.label(item)
            for item in m.seen
            if item is not m.one(q.phrases[0]) and m.bears(item, m.one(q.phrases[0]))
        ),
        '',
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
    QueryKind.FITS_ON: lambda m, q: _yes_no(_fits(m, q)),
    QueryKind.PASSABLE: lambda m, q: _yes_no(
        float(np.linalg.norm(m.gap_m(*map(m.one, q.phrases))[:2])) >= (q.number or 0)
    ),
    QueryKind.REACHABLE: lambda m, q: _yes_no(
        m.above_floor_m(m.one(q.phrases[0])) <= (q.number or 0)
    ),
}  # fmt: skip


def agrees(question: Question, found: AnswerValue) -> bool:
    """Return whether an answer is that of a question, within its tolerance."""
    right = question.answer
    if isinstance(right, tuple) and isinstance(found, tuple):
        off = np.subtract(np.array(right, float), np.array(found, float))
        return float(np.linalg.norm(off)) <= question.tolerance
    if isinstance(right, str) or isinstance(found, (str, tuple)):
        return right == found
    assert not isinstance(right, tuple)
    return abs(right - found) <= question.tolerance


def main() -> int:
    """Print how many questions are proved, by kind; return 1 if any is not as it was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seeds', type=int, default=10)
    parser.add_argument('--first-seed', type=int, default=0)
    parser.add_argument('--count', type=int, default=60)
    arguments = parser.parse_args()
    proved: Counter[str] = Counter()
    unproved: Counter[str] = Counter()
    wrong = 0
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        scene = load_scene('apartment', seed=seed)
        truth = seen_truth(scene, seed)
        asked = questions_about(
            truth, scene=scene.name, seed=seed, count=arguments.count, asked=SPACE3D
        )
        meshes = Meshes(scene, frozenset(truth.seen_instances))
        for question in asked:
            query = parsed(question.text)
            assert query is not None
            kind = query.kind.value
            proof = PROOFS.get(query.kind)
            found = None if proof is None else proof(meshes, query)
            if found is None:
                unproved[f'{kind} {query.word}'.strip()] += 1
                continue
            proved[kind] += 1
            if not agrees(question, found):
                wrong += 1
                print(f'seed {seed}: {question.text} {question.answer}, by meshes {found}')
        total = sum(proved.values())
        print(f'seed {seed}: {len(asked)} questions; {total} proved, {wrong} disagree', flush=True)
    for kind, count in sorted(proved.items()):
        print(f'{count:5} proved: {kind}')
    for kind, count in sorted(unproved.items()):
        print(f'{count:5} without a second computation: {kind}')
    print(f'{sum(proved.values())} proved, {wrong} disagree')
    return int(wrong > 0 or sum(proved.values()) < 50 * arguments.seeds)


if __name__ == '__main__':
    sys.exit(main())
