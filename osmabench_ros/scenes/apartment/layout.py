"""Floor plans: rooms in three strips, doorways between them, windows to the outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.scenes.apartment.tables import naming_keys, read_room, read_table

# Thickness of a wall; each of two neighbouring rooms owns half.
WALL_M = 0.12

DOOR_HEIGHT_M = 2.05
# Thickness of the frame that lines a doorway; it narrows the passage on either side.
FRAME_M = 0.04

# Least and greatest height of a ceiling.
HEIGHT_M = (2.5, 2.75)

WINDOW_SILL_M = 0.95
WINDOW_HEAD_M = 2.1


@dataclass(frozen=True)
class Opening:
    """A 'door' (passage), 'entrance' (with a leaf) or 'window'; metres along and up a side."""

    kind: str
    low_m: float
    high_m: float
    sill_m: float
    head_m: float

    @property
    def middle_m(self) -> float:
        """Where its middle is along the side."""
        return (self.low_m + self.high_m) / 2

    def meets(self, low_m: float, high_m: float, z_low_m: float, z_high_m: float) -> bool:
        """Return whether a rectangle on the side overlaps the hole."""
        along = low_m < self.high_m and high_m > self.low_m
        return along and z_low_m < self.head_m and z_high_m > self.sill_m


@dataclass(eq=False)
class RoomSide:
    """One wall of a room seen from inside; u runs along it, with the room on its left.

    `origin` is the corner where u = 0; it and the unit vectors `along` and `inward` have shape
    (2,). A piece with its back at the wall has the heading `yaw_rad`.
    """

    origin: NDArray[np.float64]
    along: NDArray[np.float64]
    inward: NDArray[np.float64]
    length_m: float
    yaw_rad: float
    outside: bool = False
    openings: list[Opening] = field(default_factory=list)

    def point(self, u_m: float, v_m: float = 0.0) -> NDArray[np.float64]:
        """Return (x, y) at a distance along the wall and a distance from it."""
        return np.asarray(self.origin + u_m * self.along + v_m * self.inward)

    def find_position(self, point: NDArray[np.float64]) -> float:
        """Return u of the foot of a point (2,)."""
        return float((point - self.origin) @ self.along)


@dataclass(eq=False)
class RoomPlan:
    """A rectangular room, from `low` to `high` (2,) in the middle of walls; sides S, E, N, W."""

    id: int
    label: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    sides: list[RoomSide] = field(default_factory=list)

    @property
    def inner_low(self) -> NDArray[np.float64]:
        """South-west corner between the walls."""
        return self.low + WALL_M / 2

    @property
    def inner_high(self) -> NDArray[np.float64]:
        """North-east corner between the walls."""
        return self.high - WALL_M / 2


@dataclass(frozen=True, eq=False)
class Doorway:
    """A passage between two rooms in the middle of a wall; `center` and `along` are (2,)."""

    center: NDArray[np.float64]
    along: NDArray[np.float64]
    width_m: float
    rooms: tuple[int, int]

    @property
    def passage_m(self) -> float:
        """Free width between the frame's posts."""
        return self.width_m - 2 * FRAME_M


@dataclass(frozen=True, eq=False)
class FloorPlan:
    """Rooms, passages and the height of the ceiling."""

    rooms: tuple[RoomPlan, ...]
    doorways: tuple[Doorway, ...]
    height_m: float


FIRST_ROOM_ID = 1001
_SIDES = {
    'south': ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), np.pi),
    'east': ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), -np.pi / 2),
    'north': ((1.0, 1.0), (-1.0, 0.0), (0.0, -1.0), 0.0),
    'west': ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), np.pi / 2),
}


def draw_plan(rng: np.random.Generator) -> FloorPlan:
    """Draw a floor plan with doorways to every room."""
    variants = read_table('plans')
    variant = variants[int(rng.integers(len(variants)))]
    height = round(float(rng.uniform(*HEIGHT_M)), 2)
    with naming_keys('plans', 'a plan'):
        rooms = _make_rooms(variant, rng)
    end = max(room.high[0] for room in rooms)
    middle = next(i for i, room in enumerate(rooms) if room.low[0] == 0 and room.high[0] == end)
    return _cut_openings(rooms, _make_doorways(rooms, middle, rng), height, rooms[middle], rng)


def _cut_openings(
    rooms: list[RoomPlan],
    doorways: list[Doorway],
    height_m: float,
    entrance: RoomPlan,
    rng: np.random.Generator,
) -> FloorPlan:
    """Cut doorways into the walls of rooms, then draw an entrance to one, and windows."""
    for room in rooms:
        room.sides = _make_sides(room, rooms)
    for doorway in doorways:
        for index in doorway.rooms:
            _cut_passage(rooms[index], doorway)
    side = [item for item in entrance.sides if item.outside][int(rng.integers(2))]
    half, slack = 0.5, 0.2
    if side.length_m < 2 * (half + slack):
        slack = side.length_m / 2 - half
    u = float(rng.uniform(half + slack, side.length_m - half - slack))
    side.openings.append(Opening('entrance', u - half, u + half, 0.0, DOOR_HEIGHT_M))
    for room in rooms:
        free = [side for side in room.sides if side.outside and not side.openings]
        free.sort(key=lambda side: -side.length_m)
        for side in free[: read_room(room.label)['windows']]:
            longest = 0.9 if room.label == 'bathroom' else min(1.8, side.length_m - 1.2)
            width = round(float(rng.uniform(0.75, 1.0)) * longest, 2)
            u = side.length_m / 2 + float(rng.uniform(-0.15, 0.15)) * (side.length_m - width)
            low = u - width / 2
            high = u + width / 2
            side.openings.append(Opening('window', low, high, WINDOW_SILL_M, WINDOW_HEAD_M))
    return FloorPlan(tuple(rooms), tuple(doorways), height_m)


def draw_row(
    labels: Sequence[str], widths_m: Sequence[float], depth_m: float, rng: np.random.Generator
) -> FloorPlan:
    """Draw a floor plan of rooms in a row, with a doorway from each to the next."""
    edges = zip(labels, pairwise(np.cumsum([0.0, *widths_m]).round(3)), strict=True)
    rooms = [
        RoomPlan(FIRST_ROOM_ID + i, label, np.array([low, 0.0]), np.array([high, depth_m]))
        for i, (label, (low, high)) in enumerate(edges)
    ]
    doorways = []
    for number in range(len(rooms) - 1):
        shared = _find_common_wall(rooms[number], rooms[number + 1])
        assert shared is not None
        doorways.append(_make_doorway(shared, (number, number + 1), False, rng))
    return _cut_openings(rooms, doorways, 2.6, rooms[0], rng)


def _make_rooms(variant: Mapping[str, Any], rng: np.random.Generator) -> list[RoomPlan]:
    rows = [list(strip['rooms'].items()) for strip in variant['strips']]
    depths = [round(float(rng.uniform(*strip['depth_m'])), 2) for strip in variant['strips']]
    for row in rows:
        rng.shuffle(row)
    if rng.random() < 0.5:
        rows = rows[::-1]
        depths = depths[::-1]
    least = max(sum(width for _, width in row) for row in rows)
    total = round(least + float(rng.uniform(*variant['slack_m'])), 2)
    rooms: list[RoomPlan] = []
    for row, (y_low, y_high) in zip(rows, pairwise(np.cumsum([0.0, *depths])), strict=True):
        # The rooms of a strip have their least widths and share the rest.
        least_m = [width for _, width in row]
        share = rng.dirichlet(np.full(len(row), 3.0))
        spare = total - sum(least_m)
        widths = [width + spare * part for width, part in zip(least_m, share, strict=True)]
        edges = pairwise(np.cumsum([0.0, *widths]).round(3))
        for (label, _), (x_low, x_high) in zip(row, edges, strict=True):
            low, high = np.array([x_low, y_low]), np.array([x_high, y_high])
            rooms.append(RoomPlan(FIRST_ROOM_ID + len(rooms), label, low, high))
    return rooms


def _make_sides(room: RoomPlan, rooms: list[RoomPlan]) -> list[RoomSide]:
    low, high = room.inner_low, room.inner_high
    extent = high - low
    bounds_low = np.min([item.low for item in rooms], axis=0)
    bounds_high = np.max([item.high for item in rooms], axis=0)
    sides = []
    for corner, along, inward, yaw in _SIDES.values():
        axis = 0 if inward[0] else 1
        edge, bound = (room.low, bounds_low) if inward[axis] > 0 else (room.high, bounds_high)
        sides.append(
            RoomSide(
                low + extent * np.array(corner),
                np.array(along),
                np.array(inward),
                float(extent[0] if along[0] else extent[1]),
                yaw,
                outside=bool(abs(edge[axis] - bound[axis]) < 1e-6),
            )
        )
    return sides


def _find_common_wall(a: RoomPlan, b: RoomPlan) -> tuple[int, float, float, float] | None:
    """Return (axis across the wall, its coordinate, low, high along it) or None."""
    for axis in (0, 1):
        for first, second in ((a, b), (b, a)):
            if abs(first.high[axis] - second.low[axis]) < 1e-6:
                other = 1 - axis
                low = max(a.inner_low[other], b.inner_low[other])
                high = min(a.inner_high[other], b.inner_high[other])
                if high > low:
                    return axis, float(first.high[axis]), float(low), float(high)
    return None


def _make_doorways(rooms: list[RoomPlan], middle: int, rng: np.random.Generator) -> list[Doorway]:
    pairs = [(middle, i) for i in range(len(rooms)) if i != middle]
    labels = {room.label: i for i, room in enumerate(rooms)}
    if rooms[middle].label == 'hallway' and {'living room', 'kitchen'} <= labels.keys():
        pairs.append((labels['living room'], labels['kitchen']))
    doorways = []
    for a, b in pairs:
        if shared := _find_common_wall(rooms[a], rooms[b]):
            doorways.append(_make_doorway(shared, (a, b), middle not in (a, b), rng))
    return doorways


def _make_doorway(
    shared: tuple[int, float, float, float],
    rooms: tuple[int, int],
    wide: bool,
    rng: np.random.Generator,
) -> Doorway:
    axis, line, low, high = shared
    width = round(float(rng.uniform(1.25, 1.5) if wide else rng.uniform(1.04, 1.12)), 3)
    margin = width / 2 + 0.12
    spread = float(rng.uniform(0.0, 0.35)) * (high - low - 2 * margin)
    at = low + margin + spread if rng.random() < 0.5 else high - margin - spread
    center = np.zeros(2)
    along = np.zeros(2)
    center[axis], center[1 - axis], along[1 - axis] = line, round(float(at), 3), 1.0
    return Doorway(center, along, width, rooms)


def _cut_passage(room: RoomPlan, doorway: Doorway) -> None:
    for side in room.sides:
        offset = doorway.center - side.origin
        if abs(side.along @ doorway.along) > 0.5 and abs(offset @ side.inward) < WALL_M:
            u = side.find_position(doorway.center)
            half = doorway.width_m / 2
            side.openings.append(Opening('door', u - half, u + half, 0.0, DOOR_HEIGHT_M))
