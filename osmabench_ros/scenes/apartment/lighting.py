"""Lights of the apartment: one a lamp, and a weak fill in every room."""

from __future__ import annotations

import numpy as np

from osmabench_ros.scenes.apartment.furnisher import Placed
from osmabench_ros.scenes.lights import Light
from osmabench_ros.scenes.scene import Room

WARM = (1.0, 0.93, 0.82)
NEUTRAL = (1.0, 0.98, 0.95)
BELOW_CEILING_LAMP_M = 0.06
ABOVE_SHADE_M = 0.04
FILL_HEIGHT_M = 1.5
FILL_INTENSITY = 0.18

_INTENSITY = {'ceiling lamp': 3.2, 'floor lamp': 1.4}


def room_lights(placed: list[Placed], rooms: tuple[Room, ...]) -> tuple[Light, ...]:
    """Return the lamps' lights, then one fill light a room.

    A lamp's light is just outside its shade, which would otherwise shadow the whole room.
    """
    lights = []
    for item in placed:
        kind = item.piece.class_name
        if kind not in _INTENSITY:
            continue
        room = next(room for room in rooms if room.id == item.room_id)
        x, y, z = (float(value) for value in item.pose.translation)
        hangs = kind == 'ceiling lamp'
        z += -BELOW_CEILING_LAMP_M if hangs else item.piece.size[2] + ABOVE_SHADE_M
        lights.append(
            Light(
                f'{kind} {room.name}',
                position=(x, y, z),
                color=NEUTRAL if hangs else WARM,
                intensity=_INTENSITY[kind] * (_size_factor(room) if hangs else 1.0),
                room_id=room.id,
            )
        )
    return (*lights, *(_fill(room) for room in rooms))


def _size_factor(room: Room) -> float:
    """Return more than 1 for rooms above 12 square metres, so that their corners are lit."""
    area = float(np.prod(room.box.size[:2]))
    return float(np.clip(np.sqrt(area / 12.0), 0.7, 1.5))


def _fill(room: Room) -> Light:
    x, y, _ = (float(value) for value in room.box.center)
    return Light(
        f'fill {room.name}',
        position=(x, y, FILL_HEIGHT_M),
        intensity=FILL_INTENSITY,
        lamp=False,
        room_id=room.id,
    )
