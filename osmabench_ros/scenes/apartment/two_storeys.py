"""From a seed to a furnished apartment on two floors, with stairs between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment.body import Piece
from osmabench_ros.scenes.apartment.finishes import Finish, Style
from osmabench_ros.scenes.apartment.furnisher import Furnisher, Placed
from osmabench_ros.scenes.apartment.generate import (
    STRUCTURE,
    THINGS,
    Apartment,
    Storey,
    assembled,
    drawn_until_it_fits,
    room_furniture,
)
from osmabench_ros.scenes.apartment.layout import (
    FIRST_ROOM_ID,
    HEIGHT_M,
    FloorPlan,
    RoomPlan,
    opened_plan,
    strip_edges,
)
from osmabench_ros.scenes.apartment.pieces import building, stairs
from osmabench_ros.scenes.apartment.pieces import decoration as deco
from osmabench_ros.scenes.apartment.placement import RoomSpace
from osmabench_ros.scenes.apartment.structure import Rectangle, passages, room_shell
from osmabench_ros.semantics.labels import LabelSet

NAME = 'two_storey_apartment'
LABELS = LabelSet.from_names(NAME, THINGS, (*STRUCTURE, 'railing', 'stairs'))

VERSION = 1
"""Part of the scene's digest; raised whenever the same seed gives another one."""

BETWEEN_M = 2 * building.SLAB_M
"""Thickness of ceiling and floor together."""

STAIRWELL = 'stairwell'
_ROOMS = (
    (
        (('living room', 4.9), ('kitchen', 3.9)),
        (('bathroom', 2.6), ('study', 2.9), ('bedroom', 3.9)),
    ),
    (
        (('living room', 4.9), ('study', 3.4)),
        (('bedroom', 3.9), ('bathroom', 2.6), ('bedroom', 3.9)),
    ),
)
"""Room kinds with their least width, storey by storey: beside the stairwell, and opposite."""

_DEPTHS_M = ((4.4, 5.0), (1.6, 1.9), (3.7, 4.2))
_STAIRWELL_M, _SLACK_M = (2.4, 2.6), (0.3, 1.3)


@dataclass(frozen=True)
class _Outline:
    """What both storeys have in common: the strips and where in them the stairwell is."""

    total_m: float
    depths_m: tuple[float, ...]
    stairwell_m: float
    mirrored: bool
    """Whether the strip with the stairwell is the northern one."""

    east: bool
    """Whether the stairwell is at the eastern end of its strip."""

    right: bool
    """Whether the stairs begin on the right."""

    def rooms(self, storey: int, first_id: int, rng: np.random.Generator) -> list[RoomPlan]:
        """Draw the rooms of a storey, the stairwell always at one place."""
        beside, opposite = (list(row) for row in _ROOMS[storey])
        rng.shuffle(beside)
        rng.shuffle(opposite)
        edges = strip_edges([w for _, w in beside], self.total_m - self.stairwell_m, rng)
        labels = [label for label, _ in beside]
        if self.east:
            labels, edges = [*labels, STAIRWELL], np.append(edges, self.total_m)
        else:
            labels = [STAIRWELL, *labels]
            edges = np.insert(np.round(edges + self.stairwell_m, 3), 0, 0.0)
        other = strip_edges([w for _, w in opposite], self.total_m, rng)
        rows = [
            (labels, edges),
            (['hallway'], np.array([0.0, self.total_m])),
            ([label for label, _ in opposite], other),
        ]
        y = np.round(np.concatenate([[0.0], np.cumsum(self.depths_m)]), 3)
        if self.mirrored:
            y = y[-1] - y
        found: list[RoomPlan] = []
        for (names, x), y_a, y_b in zip(rows, y[:-1], y[1:], strict=True):
            for name, low, high in zip(names, x[:-1], x[1:], strict=True):
                corners = np.array([low, min(y_a, y_b)]), np.array([high, max(y_a, y_b)])
                found.append(RoomPlan(first_id + len(found), name, *corners))
        return found


def generate_two_storeys(seed: int) -> Apartment:
    """Generate the apartment on two floors of a seed; SceneError if it is negative."""
    return drawn_until_it_fits(seed, _drawn)


def _drawn(seed: int, rng: np.random.Generator) -> Apartment:
    widest = max(sum(width for _, width in row) for row in (_ROOMS[0][0], _ROOMS[1][0]))
    stairwell_m = round(float(rng.uniform(*_STAIRWELL_M)), 2)
    outline = _Outline(
        round(widest + stairwell_m + float(rng.uniform(*_SLACK_M)), 2),
        tuple(round(float(rng.uniform(*bounds)), 2) for bounds in _DEPTHS_M),
        stairwell_m,
        *(bool(rng.random() < 0.5) for _ in range(3)),
    )
    height_m = round(float(rng.uniform(*HEIGHT_M)), 2)
    style, first_id, storeys = Style(rng), FIRST_ROOM_ID, []
    wood, rise_m = style.wood(), height_m + BETWEEN_M
    for number in range(2):
        rooms = outline.rooms(number, first_id, rng)
        first_id += len(rooms)
        plan = opened_plan(rooms, height_m, rng, entrance=number == 0)
        room = next(room for room in plan.rooms if room.label == STAIRWELL)
        well = _Stairwell(room, rise_m, outline.mirrored, outline.right, is_upper=number == 1)
        storeys.append(Storey(plan, _furnished(plan, well, style, wood, rng), number * rise_m))
    made = assembled(NAME, seed, VERSION, tuple(storeys), LABELS)
    # The middle of the lower part of the stairwell is inside the stairs.
    lights = tuple(light for light in made.scene.lights if light.name != f'fill {STAIRWELL}')
    return replace(made, scene=replace(made.scene, lights=lights))


def _furnished(
    plan: FloorPlan, well: _Stairwell, style: Style, wood: Finish, rng: np.random.Generator
) -> list[Placed]:
    spaces = [RoomSpace(room, plan.height_m, rng) for room in plan.rooms]
    for space in spaces:
        if space.plan is well.room:
            space.take(well.stairs_box)
    placed = passages(plan, spaces, style)
    for room, space in zip(plan.rooms, spaces, strict=True):
        if room is well.room:
            placed += [*well.shell(plan.height_m, style), *well.built(wood)]
            placed += well.furniture(space, style)
        else:
            placed += room_shell(room, plan.height_m, style)
            placed += room_furniture(room, space, style)
    return placed


@dataclass(frozen=True, eq=False)
class _Stairwell:
    """The stairwell on one storey: stairs up below, a landing around their end above."""

    room: RoomPlan
    rise_m: float
    mirrored: bool
    right: bool
    is_upper: bool

    @property
    def edge_m(self) -> float:
        """World y where the stairs begin and the landing ends."""
        if self.mirrored:
            return float(self.room.inner_high[1]) - stairs.DEPTH_M
        return float(self.room.inner_low[1]) + stairs.DEPTH_M

    @property
    def frame(self) -> Pose:
        """Where the stairs begin, y towards the half landing."""
        x = float(self.room.inner_low[0] + self.room.inner_high[0]) / 2
        return Pose.from_yaw(0.0 if self.mirrored else np.pi, (x, self.edge_m, 0.0))

    @property
    def width_m(self) -> float:
        """Width of the stairs, from wall to wall."""
        return float(self.room.inner_high[0] - self.room.inner_low[0])

    @property
    def stairs_box(self) -> AxisAlignedBox:
        """The stairs with all above them, up to the ceiling of the upper floor."""
        low, high = np.array([*self.room.inner_low, 0.0]), np.array([*self.room.inner_high, 9.0])
        (low if self.mirrored else high)[1] = self.edge_m
        return AxisAlignedBox(low, high)

    @property
    def landing(self) -> Rectangle:
        """Floor of the upper storey, ceiling of the lower one."""
        low, high = self.room.low.copy(), self.room.high.copy()
        (high if self.mirrored else low)[1] = self.edge_m
        return low, high

    def shell(self, height_m: float, style: Style) -> list[Placed]:
        """Return floor, ceiling and walls; those below reach up to the upper ones at the hole."""
        if self.is_upper:
            return room_shell(self.room, height_m, style, floor=self.landing)
        tops = [self.rise_m] * 4
        tops[0 if self.mirrored else 2] = height_m
        return room_shell(self.room, height_m, style, ceiling=self.landing, wall_tops_m=tops)

    def built(self, wood: Finish) -> list[Placed]:
        """Return the stairs with their railing below, the railing of the landing above."""
        rail = stairs.RAIL_M / 2
        if self.is_upper:
            piece = stairs.landing_railing(self.width_m / 2, wood)
            x = self.width_m / 4 * (1 if self.right else -1)
            return [self._at(piece, (x, -rail, 0.0))]
        flights = stairs.stairs(self.width_m, self.rise_m, self.right, wood)
        railing = stairs.flight_railing(self.rise_m, wood)
        first_m = (stairs.RISERS - stairs.FLIGHT) * self.rise_m / stairs.RISERS
        return [
            self._at(flights, (0.0, stairs.DEPTH_M / 2, 0.0)),
            self._at(railing, (0.0, stairs.FLIGHT * stairs.TREAD_M / 2, first_m)),
        ]

    def _at(self, piece: Piece, place: tuple[float, float, float]) -> Placed:
        return Placed(piece, self.frame @ Pose.from_yaw(0.0, place), self.room.id)

    def furniture(self, space: RoomSpace, style: Style) -> list[Placed]:
        """Return a lamp, a painting and a plant beside the stairs."""
        furnisher = Furnisher(space, style)
        low, high = self.landing
        furnisher.ceiling(deco.ceiling_lamp(style), *((low + high) / 2).tolist())
        furnisher.hang(deco.painting(style), 1.4)
        furnisher.wall(deco.plant(style), 0.0, corner=True)
        return furnisher.placed
