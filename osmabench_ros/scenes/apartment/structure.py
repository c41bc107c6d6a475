"""Builds the rooms of a floor plan: floors, ceilings, walls, door frames, doors, windows."""

import numpy as np

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment.finishes import Finish, Style
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
from osmabench_ros.scenes.apartment.pieces import Body, Piece, build
from osmabench_ros.scenes.apartment.placement import (
    PlacedPiece,
    RoomSpace,
    compute_footprint_box,
    compute_wall_pose,
)
from osmabench_ros.scenes.apartment.tables import naming_keys, read_room

# Thickness of floors and ceilings.
SLAB_M = 0.1

DOORWAY = {'height': DOOR_HEIGHT_M, 'wall': WALL_M, 'frame': FRAME_M}
PASSAGE_WOOD = {'wood': ['white', 'light brown', 'brown']}


def build_room_shell(plan: RoomPlan, height_m: float, style: Style) -> list[PlacedPiece]:
    """Return floor, ceiling, walls and windows of one room."""
    with naming_keys('rooms', f'room "{plan.label}"'):
        row = read_room(plan.label)
        tiles = style.draw(row['floor'], {})
        white = style.draw({'plaster': ['white']}, {})
        finish = style.draw(row['walls'], {})
    placed = [
        _build_slab(plan, 'floor', -SLAB_M, tiles),
        _build_slab(plan, 'ceiling', height_m, white),
    ]
    for side in plan.sides:
        placed.append(_build_wall(plan, side, height_m, finish))
        for opening in side.openings:
            if opening.kind == 'window':
                placed.append(_build_window(plan, side, opening, style))
            elif opening.kind == 'entrance':
                placed += _build_entrance(plan, side, opening, style)
    return placed


def _build_slab(plan: RoomPlan, class_name: str, bottom_m: float, finish: Finish) -> PlacedPiece:
    width, depth = plan.high - plan.low
    x, y = (plan.high + plan.low) / 2
    body = Body()
    body.box((0, 0, 0), (width, depth, SLAB_M), finish)
    pose = Pose.from_yaw(0, (x, y, bottom_m))
    return PlacedPiece(body.piece(class_name, finish), pose, plan.id)


def _build_wall(plan: RoomPlan, side: RoomSide, height_m: float, finish: Finish) -> PlacedPiece:
    """Return the half of a wall that faces its room, around its openings."""
    # A wall across others fills the corners at either end.
    overhang = WALL_M / 2 if side.along[0] else 0.0
    half = side.length_m / 2
    start = -overhang
    body = Body()

    def block(u_low: float, u_high: float, z_low: float, z_high: float) -> None:
        if u_high - u_low > 1e-6 and z_high - z_low > 1e-6:
            body.box((half - u_high, 0, z_low), (half - u_low, WALL_M / 2, z_high), finish)

    for opening in sorted(side.openings, key=lambda item: item.low_m):
        block(start, opening.low_m, 0.0, height_m)
        block(opening.low_m, opening.high_m, 0.0, opening.sill_m)
        block(opening.low_m, opening.high_m, opening.head_m, height_m)
        start = opening.high_m
    block(start, side.length_m + overhang, 0.0, height_m)
    middle = side.point(half, -WALL_M / 4)
    pose = Pose.from_yaw(side.yaw_rad, (*middle, 0.0))
    return PlacedPiece(body.piece('wall', finish), pose, plan.id)


def _build_window(plan: RoomPlan, side: RoomSide, opening: Opening, style: Style) -> PlacedPiece:
    width = opening.high_m - opening.low_m
    height = opening.head_m - opening.sill_m
    piece = build('window', style, width=width, height=height)
    # The frame is flush with the facade; the handle points inwards.
    pose = compute_wall_pose(side, opening.middle_m, piece, -WALL_M / 2, opening.sill_m)
    return PlacedPiece(piece, pose, plan.id)


def _build_entrance(
    plan: RoomPlan, side: RoomSide, opening: Opening, style: Style
) -> list[PlacedPiece]:
    width = opening.high_m - opening.low_m
    wood = style.draw({'wood': ['white', 'brown', 'dark brown']}, {})
    frame = build('entrance frame', style, wood=wood, width=width, **DOORWAY)
    leaf_finish = style.draw({'wood': []}, {})
    leaf_width = width - 2 * FRAME_M - 0.006
    leaf_height = DOOR_HEIGHT_M - FRAME_M - 0.004
    leaf = build('door', style, wood=leaf_finish, width=leaf_width, height=leaf_height)
    middle_m = opening.middle_m
    frame_pose = compute_wall_pose(side, middle_m, frame, -WALL_M / 2)
    leaf_pose = compute_wall_pose(side, middle_m, leaf, 0.002 - WALL_M / 2, 0.01)
    return [PlacedPiece(frame, frame_pose, plan.id), PlacedPiece(leaf, leaf_pose, plan.id)]


def build_passages(plan: FloorPlan, spaces: list[RoomSpace], style: Style) -> list[PlacedPiece]:
    """Return frames for all doorways and open leaves where a wall has room for one."""
    frame_finish = style.draw(PASSAGE_WOOD, {})
    leaf_finish = style.draw(PASSAGE_WOOD, {})
    placed = []
    for doorway in plan.doorways:
        frame = build('door frame', style, wood=frame_finish, width=doorway.width_m, **DOORWAY)
        yaw = 0.0 if doorway.along[0] else np.pi / 2
        room_id = plan.rooms[doorway.rooms[1]].id
        pose = Pose.from_yaw(yaw, (*doorway.center, 0.0))
        placed.append(PlacedPiece(frame, pose, room_id))
        width = doorway.passage_m - 0.006
        height = DOOR_HEIGHT_M - FRAME_M - 0.014
        door = build('door', style, wood=leaf_finish, width=width, height=height)
        leaf = _open_leaf(doorway, spaces[doorway.rooms[1]], door)
        if leaf is not None and doorway.width_m < 1.2:
            placed.append(leaf)
    return placed


def _open_leaf(doorway: Doorway, space: RoomSpace, piece: Piece) -> PlacedPiece | None:
    """Open a leaf against the wall next to its doorway."""
    for side in space.plan.sides:
        for opening in side.openings:
            middle = side.point(opening.middle_m, -WALL_M / 2)
            if opening.kind != 'door' or np.abs(middle - doorway.center).max() > 1e-6:
                continue
            offset = piece.size[0] / 2 + 0.06
            for u in (opening.low_m - offset, opening.high_m + offset):
                pose = compute_wall_pose(side, u, piece, 0.02, 0.01)
                box = compute_footprint_box(piece, pose)
                low = u - piece.size[0] / 2
                high = u + piece.size[0] / 2
                covered = any(item.meets(low, high, 0, 2) for item in side.openings)
                if not covered and space.is_free(box) and space.stays_walkable(box):
                    space.take(box)
                    return PlacedPiece(piece, pose, space.plan.id)
    return None
