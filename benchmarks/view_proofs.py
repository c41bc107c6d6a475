"""Second computations for `proved_questions.py`: views around a place, and referring expressions.

Directions, counts and ways come from the triangles of the scene and from rays (Open3D), turning
angles from the colours of the images alone. Each returns the answer, or None where it has none.
"""

import cmath
import itertools
import math
import re
from collections.abc import Mapping

import numpy as np
from mesh_answers import HEIGHT_M, RADIUS_M, Meshes
from numpy.typing import NDArray

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.scenes.scene import SceneObject
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.simulation.walkable_grid import WalkableGrid
from osmabench_ros.suites.cospace.answering import HFOV_RAD, Asked, Task, read
from osmabench_ros.suites.grounding.expressions import Clause, read_expression
from osmabench_ros.vqa.questions import AnswerValue, Question

CAMERA = Intrinsics.from_hfov(320, 240, HFOV_RAD)
DEGREES = {
    'north': 0, 'northeast': 45, 'east': 90, 'southeast': 135, 'south': 180, 'southwest': 225,
    'west': 270, 'northwest': 315, 'front': 0, 'front right': 45, 'right': 90, 'back right': 135,
    'back': 180, 'back left': 225, 'left': 270, 'front left': 315,
}  # fmt: skip
WORDS = {0: 'go ahead', 90: 'turn right and go ahead', 180: 'turn back and go ahead',
         270: 'turn left and go ahead'}  # fmt: skip
Images = Mapping[str, NDArray[np.uint8]]


class Views:
    """Looks around in the meshes of a scene."""

    def __init__(self, meshes: Meshes, images: Images) -> None:
        self.meshes, self.images = meshes, images
        self.rays = RayCaster(meshes.scene)
        grid = WalkableGrid.of_scene(meshes.scene, radius_m=RADIUS_M, height_m=HEIGHT_M, seed=2)
        self.grid, self.free = grid, grid.positions(np.argwhere(grid.free))

    def clockwise(self, asked: Asked, point: NDArray[np.float64]) -> float:
        """Return the degrees of a point, clockwise from ahead, as complex numbers turn."""
        here = complex(*asked.place.eye_m[:2])
        ahead = cmath.exp(1j * math.radians(asked.place.ahead_deg))
        return -math.degrees(cmath.phase((complex(*point[:2]) - here) / ahead)) % 360

    def seen(self, asked: Asked) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the instance that each pixel of the four images meets, and its bearing."""
        found, bearings = [], []
        for turn in range(4):
            pose = asked.place.camera(turn * math.pi / 2)
            ways = CAMERA.rays().reshape(-1, 3) @ pose.rotation.T.astype(np.float32)
            origins = np.tile(pose.translation.astype(np.float32), (len(ways), 1))
            found.append(self.rays.find_first_hits(origins, ways)[1])
            counter = np.degrees(np.arctan2(ways[:, 1], ways[:, 0])) - asked.place.ahead_deg
            bearings.append(-counter % 360)
        return np.stack(found), np.stack(bearings)

    def answer(self, question: Question) -> AnswerValue | None:
        """Return the answer to a question about views."""
        asked = read(question.text)
        assert asked is not None
        if asked.task in (Task.ANGLE, Task.DIFFERENCE):
            return self.rotation(asked, [self.images[name] for name in question.images])
        if asked.task is Task.DECISION:
            return self.decision(asked, self.meshes.one(asked.about))
        instances, bearings = self.seen(asked)
        if asked.task is Task.COUNT:
            return sum(
                (instances == item.instance_id).any() for item in self.meshes.named(asked.about)
            )
        if asked.task is Task.OBJECT:
            off = abs((bearings - DEGREES[asked.about] + 180) % 360 - 180)
            inside = set(instances[off <= 22.5].tolist())
            there = [x for x in question.options if self.meshes.one(x).instance_id in inside]
            return there[0] if len(there) == 1 else None
        item = self.meshes.one(asked.about)
        if not (instances == item.instance_id).any():
            return None
        at = self.clockwise(asked, self.meshes.center(item))
        return min(question.options, key=lambda name: abs((at - DEGREES[name] + 180) % 360 - 180))

    def decision(self, asked: Asked, item: SceneObject) -> str | None:
        """Return what to do along the shortest way on the meshes."""
        ends = [
            self.free[np.argmin(np.linalg.norm(self.free - point, axis=1))]
            for point in (np.array(asked.place.eye_m), self.meshes.center(item))
        ]
        line = self.grid.find_shortest_path(*ends)[:, :2]
        steps = [np.linspace(a, b, 200)[:-1] for a, b in itertools.pairwise(line)]
        dense = np.concatenate([*steps, line[-1:]])
        way = np.append(0, np.linalg.norm(np.diff(dense, axis=0), axis=1).cumsum())
        early = dense[np.searchsorted(way, min(0.8, way[-1]))] - dense[0]
        late = dense[-1] - dense[np.searchsorted(way, max(0.0, way[-1] - 0.8))]
        here = np.array(asked.place.eye_m[:2])
        first, last = (self.clockwise(asked, here + leg) for leg in (early, late))
        turn = (last - first + 180) % 360 - 180
        quarter = round(first / 90) * 90 % 360
        if abs(turn) <= 35:
            return WORDS[quarter]
        if quarter == 0 and 50 <= abs(turn) <= 130:
            return f'go ahead and turn {"right" if turn > 0 else "left"}'
        return None

    def rotation(self, asked: Asked, images: list[NDArray[np.uint8]]) -> AnswerValue:
        """Return the step or the odd image by which colours in the same direction are the same."""
        if asked.task is Task.ANGLE:
            costs = {step: _unlike(images, step) for step in (30, 60)}
            return f'{min(costs, key=lambda step: costs[step])} degrees'
        odd = [_unlike(images[:i] + images[i + 1 :], 30) for i in range(5)]
        return int(np.argmin(odd)) + 1


def _unlike(images: list[NDArray[np.uint8]], step_deg: float) -> float:
    """Return how much the horizons of adjacent images differ where they overlap after a turn."""
    middle = slice(CAMERA.height // 2 - 4, CAMERA.height // 2 + 4)
    tops = [image[middle].mean(axis=0) for image in images]
    half = math.degrees(HFOV_RAD) / 2 - 1
    first = np.linspace(step_deg - half, half, 200)
    columns = [
        np.rint(CAMERA.fx * np.tan(np.radians(at)) + CAMERA.cx).astype(int)
        for at in (first, first - step_deg)
    ]
    pairs = itertools.pairwise(tops)
    return float(np.mean([np.abs(a[columns[0]] - b[columns[1]]).mean() for a, b in pairs]))


def meant(meshes: Meshes, text: str) -> int | None:
    """Return the instance that an expression means by the triangles, None if it is not one."""
    expression = read_expression(text)
    assert expression is not None
    found = meshes.named(expression.phrase)
    classes = {meshes.label(item) for item in found}
    kin = [item for item in meshes.seen if meshes.label(item) in classes]
    for clause in expression.clauses:
        found = [item for item in found if item in _fitting(meshes, clause, kin)]
    return found[0].instance_id if len(found) == 1 else None


def _fitting(meshes: Meshes, clause: Clause, kin: list[SceneObject]) -> list[SceneObject]:
    anchors = [meshes.one(phrase) for phrase in clause.phrases]
    if clause.word == 'on':
        return [item for item in kin if meshes.bears(anchors[0], item)]
    if clause.word == 'next to':
        return [item for item in kin if meshes.beside(item, anchors[0])]
    if clause.word == 'between':
        return [item for item in kin if _is_between(meshes, item, *anchors)]
    if match := re.fullmatch('(?:(second|third) )?closest to|farthest from', clause.word):
        away = sorted(kin, key=lambda x: math.dist(meshes.center(x), meshes.center(anchors[0])))
        place = {'second': 1, 'third': 2}.get(match[1], 0)
        return [away[-1 if clause.word == 'farthest from' else place]]
    sizes = [meshes.size(item) for item in kin]
    values = [x.prod() if clause.word in ('largest', 'smallest') else x[2] for x in sizes]
    best = max(values) if clause.word in ('largest', 'tallest') else min(values)
    return [item for item, value in zip(kin, values, strict=True) if value == best]


def _is_between(
    meshes: Meshes, item: SceneObject, first: SceneObject, second: SceneObject
) -> bool:
    """Return whether a thing is between others, by the line through them as the real axis."""
    here, start, end = (complex(*meshes.center(x)[:2]) for x in (item, first, second))
    turned = (here - start) / (end - start)
    return 0.2 <= turned.real <= 0.8 and abs(turned.imag) * abs(end - start) <= 0.5
