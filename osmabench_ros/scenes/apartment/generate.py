"""From a seed to a furnished apartment."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.apartment.finishes import Style
from osmabench_ros.scenes.apartment.layout import FloorPlan, RoomPlan, draw_plan
from osmabench_ros.scenes.apartment.pieces import piece_classes
from osmabench_ros.scenes.apartment.placement import Furnisher, NoSpaceError, Placed, RoomSpace
from osmabench_ros.scenes.apartment.rooms import furnish
from osmabench_ros.scenes.apartment.structure import build_passages, build_room_shell
from osmabench_ros.scenes.lights import Light
from osmabench_ros.scenes.scene import Room, Scene, SceneObject
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import AttributeValue, RelationType

STRUCTURE = ('wall', 'floor', 'ceiling', 'door', 'door frame', 'window')

APARTMENT_LABELS = LabelSet.from_names('apartment', piece_classes().values(), STRUCTURE)


WARM = (1.0, 0.93, 0.82)
NEUTRAL = (1.0, 0.98, 0.95)
BELOW_CEILING_LAMP_M = 0.06
ABOVE_SHADE_M = 0.04
FILL_HEIGHT_M = 1.5
FILL_INTENSITY = 0.18

_INTENSITY = {'ceiling lamp': 3.2, 'floor lamp': 1.4}


def make_room_lights(placed: Sequence[Placed], rooms: tuple[Room, ...]) -> tuple[Light, ...]:
    """Return the lamps' lights, just outside their shades, then one fill light a room."""
    lights = []
    for item in placed:
        kind = item.piece.class_name
        if kind not in _INTENSITY:
            continue
        room = next(room for room in rooms if room.id == item.room_id)
        x, y, z = (float(value) for value in item.pose.translation)
        hangs = kind == 'ceiling lamp'
        # Brighter in rooms above 12 square metres, so that their corners are lit.
        size = float(np.sqrt(np.prod(room.box.size[:2]) / 12.0).clip(0.7, 1.5)) if hangs else 1.0
        z += -BELOW_CEILING_LAMP_M if hangs else item.piece.size[2] + ABOVE_SHADE_M
        lights.append(
            Light(
                f'{kind} {room.name}',
                position=(x, y, z),
                color=NEUTRAL if hangs else WARM,
                intensity=_INTENSITY[kind] * size,
                room_id=room.id,
            )
        )
    for room in rooms:
        x, y, _ = (float(value) for value in room.box.center)
        z = float(room.box.minimum[2]) + FILL_HEIGHT_M
        fill = Light(
            f'fill {room.name}',
            position=(x, y, z),
            intensity=FILL_INTENSITY,
            lamp=False,
            room_id=room.id,
        )
        lights.append(fill)
    return tuple(lights)


VERSION = 1
"""Part of the scene's digest; raised whenever the same seed gives another apartment."""

ATTEMPTS = 20


@dataclass(frozen=True, eq=False)
class Apartment:
    """A generated scene, its floor plan, and by instance id the relation to a carrier."""

    scene: Scene
    plan: FloorPlan
    carriers: Mapping[int, tuple[RelationType, int]]


def generate_apartment(seed: int) -> Apartment:
    """Generate the apartment of a seed, always the same one; SceneError if it is negative."""
    if seed < 0:
        raise SceneError(f'the seed of an apartment must be 0 or more, not {seed}')
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([seed, attempt])
        plan, style = draw_plan(rng), Style(rng)
        spaces = [RoomSpace(room, plan.height_m, rng) for room in plan.rooms]
        placed = build_passages(plan, spaces, style)
        try:
            for room, space in zip(plan.rooms, spaces, strict=True):
                placed += build_room_shell(room, plan.height_m, style)
                placed += room_furniture(room, space, style)
        except NoSpaceError:
            continue
        return assemble(seed, plan, placed)
    raise SceneError(f'no apartment fits its furniture for seed {seed}; choose another seed')


def room_furniture(room: RoomPlan, space: RoomSpace, style: Style) -> list[Placed]:
    """Furnish a room by its kind, again until all it needs has room; or NoSpaceError."""
    for _ in range(ATTEMPTS):
        furnisher = Furnisher(space.copy(), style)
        try:
            furnish(room.label, furnisher)
        except NoSpaceError:
            continue
        return furnisher.placed
    raise NoSpaceError


def assemble(seed: int, plan: FloorPlan, placed: Sequence[Placed]) -> Apartment:
    """Return the apartment of a furnished floor plan."""
    order = {id(item): i + 1 for i, item in enumerate(placed)}
    count: Counter[str] = Counter()
    objects = []
    for item in placed:
        piece = item.piece
        count[piece.class_name] += 1
        lengths = zip(('width_m', 'depth_m', 'height_m'), piece.size, strict=True)
        attributes: dict[str, AttributeValue] = {
            'color': piece.color,
            'material': piece.material,
            **{name: round(value, 3) for name, value in lengths},
        }
        objects.append(
            SceneObject(
                order[id(item)],
                f'{piece.class_name.replace(" ", "_")}_{count[piece.class_name]:02d}',
                APARTMENT_LABELS.id_of(piece.class_name),
                piece.meshes,
                item.pose,
                attributes,
                item.room_id,
            )
        )
    carriers = {
        order[id(item)]: (item.relation, order[id(item.carrier)])
        for item in placed
        if item.carrier is not None and item.relation is not None
    }
    rooms = _rooms(plan)
    digest = hashlib.sha256(f'osmabench apartment {VERSION} seed {seed}'.encode()).hexdigest()
    scene = Scene(
        'apartment',
        f'seed_{seed}',
        APARTMENT_LABELS,
        tuple(objects),
        rooms,
        make_room_lights(placed, rooms),
        ambient=0.12,
        source_sha256=digest,
    )
    return Apartment(scene, plan, carriers)


def _rooms(plan: FloorPlan) -> tuple[Room, ...]:
    """Return all rooms; a second bedroom is called so."""
    count: Counter[str] = Counter()
    rooms = []
    for room in plan.rooms:
        count[room.label] += 1
        name = room.label if count[room.label] == 1 else f'{room.label} {count[room.label]}'
        low = np.array([*room.inner_low, 0.0])
        high = np.array([*room.inner_high, plan.height_m])
        rooms.append(Room(room.id, name, room.label, AxisAlignedBox(low, high)))
    return tuple(rooms)
