"""From a seed to a furnished apartment."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.apartment.classes import APARTMENT_LABELS
from osmabench_ros.scenes.apartment.finishes import Style
from osmabench_ros.scenes.apartment.furnisher import Furnisher, NoSpaceError, Placed
from osmabench_ros.scenes.apartment.layout import FloorPlan, RoomPlan, draw_plan
from osmabench_ros.scenes.apartment.lighting import room_lights
from osmabench_ros.scenes.apartment.placement import RoomSpace
from osmabench_ros.scenes.apartment.rooms import FURNISH
from osmabench_ros.scenes.apartment.structure import passages, room_shell
from osmabench_ros.scenes.scene import Room, Scene, SceneObject
from osmabench_ros.semantics.scene_graph import RelationType

VERSION = 1
"""Part of the scene's digest; raised whenever the same seed gives another apartment."""

ATTEMPTS = 20


@dataclass(frozen=True, eq=False)
class Apartment:
    """A generated scene, its plan, and by instance id how and by what a thing is carried."""

    scene: Scene
    plan: FloorPlan
    carriers: Mapping[int, tuple[RelationType, int]]


def generate_apartment(seed: int) -> Apartment:
    """Generate the apartment of a seed, always the same one; SceneError if it is negative."""
    if seed < 0:
        raise SceneError(f'the seed of an apartment must be 0 or more, not {seed}')
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([seed, attempt])
        plan = draw_plan(rng)
        try:
            return _assembled(seed, plan, _furnished(plan, rng))
        except NoSpaceError:
            continue
    raise SceneError(f'no apartment fits its furniture for seed {seed}; choose another seed')


def _furnished(plan: FloorPlan, rng: np.random.Generator) -> list[Placed]:
    style = Style(rng)
    spaces = [RoomSpace(room, plan.height_m, rng) for room in plan.rooms]
    placed = passages(plan, spaces, style)
    for room, space in zip(plan.rooms, spaces, strict=True):
        placed += room_shell(room, plan.height_m, style)
        placed += _room_furniture(room, space, style)
    return placed


def _room_furniture(room: RoomPlan, space: RoomSpace, style: Style) -> list[Placed]:
    for _ in range(ATTEMPTS):
        furnisher = Furnisher(space.copy(), style)
        try:
            FURNISH[room.label](furnisher)
        except NoSpaceError:
            continue
        return furnisher.placed
    raise NoSpaceError


def _assembled(seed: int, plan: FloorPlan, placed: list[Placed]) -> Apartment:
    order = {id(item): i + 1 for i, item in enumerate(placed)}
    count: Counter[str] = Counter()
    objects = []
    for item in placed:
        count[item.piece.class_name] += 1
        objects.append(_scene_object(item, order[id(item)], count[item.piece.class_name]))
    carriers = {
        order[id(item)]: (item.relation, order[id(item.carrier)])
        for item in placed
        if item.carrier is not None and item.relation is not None
    }
    rooms = tuple(_room(room, plan.height_m) for room in plan.rooms)
    digest = hashlib.sha256(f'osmabench apartment {VERSION} seed {seed}'.encode()).hexdigest()
    scene = Scene(
        'apartment',
        f'seed_{seed}',
        APARTMENT_LABELS,
        tuple(objects),
        rooms,
        room_lights(placed, rooms),
        ambient=0.12,
        source_sha256=digest,
    )
    return Apartment(scene, plan, carriers)


def _scene_object(item: Placed, instance_id: int, number: int) -> SceneObject:
    width, depth, height = (round(value, 3) for value in item.piece.size)
    return SceneObject(
        instance_id,
        f'{item.piece.class_name.replace(" ", "_")}_{number:02d}',
        APARTMENT_LABELS.id_of(item.piece.class_name),
        item.piece.meshes,
        item.pose,
        {
            'color': item.piece.color,
            'material': item.piece.material,
            'width_m': width,
            'depth_m': depth,
            'height_m': height,
        },
        item.room_id,
    )


def _room(plan: RoomPlan, height_m: float) -> Room:
    box = AxisAlignedBox(np.array([*plan.inner_low, 0.0]), np.array([*plan.inner_high, height_m]))
    return Room(plan.id, plan.label, plan.label, box)
