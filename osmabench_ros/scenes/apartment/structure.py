"""Builds the rooms of a floor plan: floors, ceilings, walls, door frames, doors, windows."""

from __future__ import annotations

import numpy as np

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment.finishes import Finish, Style
from osmabench_ros.scenes.apartment.furnisher import Placed
from osmabench_ros.scenes.apartment.layout import (
    DOOR_HEIGHT_M,
    FRAME_M,
    WALL_M,
    Doorway,
    FloorPlan,
    Opening,
    RoomPlan,
    RoomSide,
)
from osmabench_ros.scenes.apartment.pieces import building
from osmabench_ros.scenes.apartment.placement import RoomSpace, footprint_box

WET_ROOMS = ('kitchen', 'bathroom')


def floor_finish(label: str, style: Style) -> Finish:
    """Return tiles or planks, by kind of room."""
    if label in WET_ROOMS:
        pattern = style.pick(('tiles', 'checker', 'marble'))
        colors = ('white', 'light gray', 'beige', 'light blue')
        return style.finish(colors, 'tile', pattern, 1.6 if pattern != 'marble' else 1.2)
    return style.finish(('light brown', 'brown', 'beige', 'dark brown'), 'wood', 'planks', 1.2)


def wall_finish(label: str, style: Style) -> Finish:
    """Return tiles, plaster or wallpaper, by kind of room."""
    if label == 'bathroom':
        return style.finish(('white', 'light blue', 'light gray', 'cream'), 'tile', 'tiles', 0.8)
    if style.rng.random() < 0.3:
        pattern = style.pick(('stripes', 'dots'))
        colors = ('cream', 'light blue', 'light gray', 'beige')
        return style.finish(colors, 'wallpaper', pattern, 1.2)
    return style.finish(('white', 'cream', 'light gray', 'light blue'), 'plaster', 'plaster', 1.5)


def room_shell(plan: RoomPlan, height_m: float, style: Style) -> list[Placed]:
    """Return floor, ceiling, walls and windows of one room."""
    tiles = floor_finish(plan.label, style)
    white = style.finish(('white',), 'plaster', 'plaster', 1.5)
    placed = [
        _slab(plan, 'floor', -building.SLAB_M, tiles),
        _slab(plan, 'ceiling', height_m, white),
    ]
    finish = wall_finish(plan.label, style)
    for side in plan.sides:
        overhang = WALL_M / 2 if side.along[0] else 0.0
        wall = building.wall(side.length_m, overhang, height_m, side.openings, finish)
        middle = side.point(side.length_m / 2, -WALL_M / 4)
        placed.append(Placed(wall, Pose.from_yaw(side.yaw_rad, (*middle, 0.0)), plan.id))
        for opening in side.openings:
            if opening.kind == 'window':
                placed.append(_window(plan, side, opening, style))
            elif opening.kind == 'entrance':
                placed += _entrance(plan, side, opening, style)
    return placed


def _slab(plan: RoomPlan, class_name: str, bottom_m: float, finish: Finish) -> Placed:
    width, depth = plan.high - plan.low
    x, y = (plan.high + plan.low) / 2
    piece = building.slab(class_name, width, depth, finish)
    return Placed(piece, Pose.from_yaw(0, (x, y, bottom_m)), plan.id)


def _window(plan: RoomPlan, side: RoomSide, opening: Opening, style: Style) -> Placed:
    size = (opening.high_m - opening.low_m, opening.head_m - opening.sill_m)
    piece = building.window(*size, style)
    # The frame is flush with the facade; the handle points inwards.
    x, y = side.point((opening.low_m + opening.high_m) / 2, piece.size[1] / 2 - WALL_M / 2)
    pose = Pose.from_yaw(side.yaw_rad, (x, y, opening.sill_m))
    return Placed(piece, pose, plan.id)


def _entrance(plan: RoomPlan, side: RoomSide, opening: Opening, style: Style) -> list[Placed]:
    width, middle = opening.high_m - opening.low_m, (opening.low_m + opening.high_m) / 2
    wood = style.wood('white', 'brown', 'dark brown')
    frame = building.entrance_frame(width, DOOR_HEIGHT_M, wood)
    leaf = building.door_leaf(
        width - 2 * FRAME_M - 0.006, DOOR_HEIGHT_M - FRAME_M - 0.004, style.wood()
    )
    placed = []
    for piece, outside in ((frame, 0.0), (leaf, 0.002)):
        x, y = side.point(middle, piece.size[1] / 2 - WALL_M / 2 + outside)
        z = 0.0 if piece is frame else 0.01
        placed.append(Placed(piece, Pose.from_yaw(side.yaw_rad, (x, y, z)), plan.id))
    return placed


def passages(plan: FloorPlan, spaces: list[RoomSpace], style: Style) -> list[Placed]:
    """Return frames for all doorways and open leaves where a wall has room for one."""
    frame_finish = style.wood('white', 'light brown', 'brown')
    leaf_finish = style.wood('white', 'light brown', 'brown')
    placed = []
    for doorway in plan.doorways:
        frame = building.door_frame(doorway.width_m, DOOR_HEIGHT_M, frame_finish)
        yaw = 0.0 if doorway.along[0] else np.pi / 2
        room_id = plan.rooms[doorway.rooms[1]].id
        pose = Pose.from_yaw(yaw, (*doorway.center, 0.0))
        placed.append(Placed(frame, pose, room_id))
        leaf = _open_leaf(doorway, spaces[doorway.rooms[1]], leaf_finish)
        if leaf is not None and doorway.width_m < 1.2:
            placed.append(leaf)
    return placed


def _open_leaf(doorway: Doorway, space: RoomSpace, finish: Finish) -> Placed | None:
    """Lay an open leaf against the wall beside its doorway."""
    piece = building.door_leaf(doorway.passage_m - 0.006, DOOR_HEIGHT_M - FRAME_M - 0.014, finish)
    for side in space.plan.sides:
        for opening in side.openings:
            middle = side.point((opening.low_m + opening.high_m) / 2, -WALL_M / 2)
            if opening.kind != 'door' or np.abs(middle - doorway.center).max() > 1e-6:
                continue
            offset = piece.size[0] / 2 + 0.06
            for u in (opening.low_m - offset, opening.high_m + offset):
                x, y = side.point(u, piece.size[1] / 2 + 0.02)
                pose = Pose.from_yaw(side.yaw_rad, (x, y, 0.01))
                box = footprint_box(piece, pose)
                low, high = u - piece.size[0] / 2, u + piece.size[0] / 2
                covered = any(item.meets(low, high, 0, 2) for item in side.openings)
                if not covered and space.is_free(box) and space.stays_walkable(box):
                    space.take(box)
                    return Placed(piece, pose, space.plan.id)
    return None
