"""Puts pieces into a room and records which object is on or in which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment.body import Piece, Support
from osmabench_ros.scenes.apartment.finishes import Finish, Style
from osmabench_ros.scenes.apartment.pieces import build
from osmabench_ros.scenes.apartment.placement import RoomSpace, footprint_box, wall_pose
from osmabench_ros.semantics.scene_graph import RelationType

SPACING_M = 0.015
"""Least distance between two objects on one support."""

BESIDE_M = 0.05
"""Distance between neighbouring pieces."""

TRIES = 25


class NoSpaceError(Exception):
    """A room has no place for a piece that it cannot do without; draw the room again."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A piece at its pose in the world; a carrier of None means floor, wall or ceiling."""

    piece: Piece
    pose: Pose
    room_id: int
    relation: RelationType | None = None
    carrier: Placed | None = None


@dataclass(frozen=True)
class _Spot:
    """A place on a support and the half extents of the object there."""

    x: float
    y: float
    z: float
    yaw_rad: float
    half_x: float
    half_y: float

    def is_close(self, other: _Spot) -> bool:
        """Return whether the footprints are nearer than `SPACING_M`."""
        gap_x = abs(self.x - other.x) - self.half_x - other.half_x
        gap_y = abs(self.y - other.y) - self.half_y - other.half_y
        return max(gap_x, gap_y) < SPACING_M


class Furnisher:
    """Furnishes the free space of one room; `style` draws colours, proportions and positions."""

    def __init__(self, space: RoomSpace, style: Style) -> None:
        self.space = space
        self.style = style
        self.placed: list[Placed] = []
        self._used: dict[tuple[int, int], list[_Spot]] = {}

    def _keep(
        self,
        piece: Piece,
        pose: Pose | None,
        relation: RelationType = RelationType.ON,
        carrier: Placed | None = None,
    ) -> Placed | None:
        if pose is None:
            return None
        item = Placed(piece, pose, self.space.plan.id, relation, carrier)
        self.placed.append(item)
        return item

    def wall(
        self, piece: Piece, front_m: float = 0.55, corner: bool = False, reserve: bool = True
    ) -> Placed | None:
        """Stand a piece with its back at a wall, if there is room."""
        pose = self.space.against_wall(piece, front_m, corner, reserve)
        return self._keep(piece, pose)

    def must(self, placed: Placed | None) -> Placed:
        """Return the placed piece; NoSpaceError if it found no place."""
        if placed is None:
            raise NoSpaceError
        return placed

    def free(self, piece: Piece, margin_m: tuple[float, float]) -> Placed | None:
        """Stand a piece in the room, away from the walls."""
        return self._keep(piece, self.space.free_standing(piece, margin_m))

    def at(self, piece: Piece, pose: Pose) -> Placed | None:
        """Stand a piece at a pose if that is free."""
        return self._keep(piece, pose) if self.space.at(piece, pose) else None

    def before(self, other: Placed, piece: Piece, gap_m: float, turn_rad: float) -> Placed | None:
        """Stand a piece before the front of another, turned relative to it."""
        y = -other.piece.size[1] / 2 - gap_m - piece.size[1] / 2
        pose = other.pose @ Pose.from_yaw(turn_rad, (0.0, y, -other.pose.translation[2]))
        return self.at(piece, pose)

    def beside(self, other: Placed, piece: Piece, side: int) -> Placed | None:
        """Stand a piece next to another, backs in line; side is -1 (left) or 1 (right)."""
        x = side * (other.piece.size[0] + piece.size[0] + 2 * BESIDE_M) / 2
        y = (other.piece.size[1] - piece.size[1]) / 2
        return self.at(piece, other.pose @ Pose.from_yaw(0.0, (x, y, 0.0)))

    def row(self, pieces: Sequence[Piece], front_m: float = 0.8) -> list[Placed] | None:
        """Stand pieces side by side at one wall."""
        poses = self.space.row(pieces, front_m)
        if poses is None:
            return None
        kept = [self._keep(piece, pose) for piece, pose in zip(pieces, poses, strict=True)]
        return [item for item in kept if item is not None]

    def hang(self, piece: Piece, bottom_m: float, above: Placed | None = None) -> Placed | None:
        """Hang a piece on a wall, over another one if named."""
        pose = self.space.on_wall(piece, bottom_m, None if above is None else above.pose)
        return self._keep(piece, pose, RelationType.ATTACHED_TO)

    def hang_at(self, piece: Piece, pose: Pose) -> Placed | None:
        """Hang a piece at a pose on a wall if that is free."""
        box = footprint_box(piece, pose)
        if not self.space.is_free(box):
            return None
        self.space.take(box)
        return self._keep(piece, pose, RelationType.ATTACHED_TO)

    def ceiling(self, piece: Piece, x: float, y: float) -> Placed:
        """Hang a piece from the ceiling."""
        pose = Pose.from_yaw(0.0, (x, y, self.space.height_m - piece.size[2]))
        self.space.take(footprint_box(piece, pose))
        return self.must(self._keep(piece, pose, RelationType.ATTACHED_TO))

    def put(
        self, carrier: Placed | None, piece: Piece, place: int = 0, facing: bool = True
    ) -> Placed | None:
        """Put an object on support `place` of a carrier; None without a carrier or room."""
        if carrier is None or place >= len(carrier.piece.supports):
            return None
        support = carrier.piece.supports[place]
        if piece.size[2] > support.clearance_m:
            return None
        used = self._used.setdefault((id(carrier), place), [])
        for _ in range(TRIES):
            spot = self._spot(piece, support, facing)
            if spot is None or any(spot.is_close(other) for other in used):
                continue
            pose = carrier.pose @ Pose.from_yaw(spot.yaw_rad, (spot.x, spot.y, spot.z))
            below = support.relation is RelationType.UNDER
            if below or self.space.is_clear_above(footprint_box(piece, pose)):
                used.append(spot)
                return self._keep(piece, pose, support.relation, carrier)
        return None

    def centered(self, carrier: Placed, piece: Piece) -> Placed:
        """Put an object exactly in the middle of the first support."""
        support = carrier.piece.supports[0]
        spot = _Spot(*support.center, 0.0, piece.size[0] / 2, piece.size[1] / 2)
        self._used.setdefault((id(carrier), 0), []).append(spot)
        pose = carrier.pose @ Pose.from_yaw(0.0, support.center)
        return self.must(self._keep(piece, pose, support.relation, carrier))

    def _spot(self, piece: Piece, support: Support, facing: bool) -> _Spot | None:
        """Draw a place on a support, None if the piece is too large for it that way round."""
        rng, (width, depth, _) = self.style.rng, piece.size
        yaw = float(rng.normal(0.0, 0.12) if facing else rng.uniform(-np.pi, np.pi))
        if not facing and max(width, depth) > 0.6 * min(support.size):
            yaw = 0.0
        cos, sin = abs(math.cos(yaw)), abs(math.sin(yaw))
        half_x, half_y = (cos * width + sin * depth) / 2, (sin * width + cos * depth) / 2
        room_x, room_y = support.size[0] / 2 - half_x, support.size[1] / 2 - half_y
        if room_x < 0 or room_y < 0:
            return None
        x, y, z = support.center
        x += float(rng.uniform(-room_x, room_x))
        y += float(rng.uniform(-room_y, room_y))
        return _Spot(x, y, z, yaw, half_x, half_y)

    def hang_curtains(self, cloth: Finish) -> None:
        """Hang a panel on either side of every window."""
        for side in self.space.plan.sides:
            for opening in side.openings:
                if opening.kind != 'window':
                    continue
                for edge, sign in ((opening.low_m, -1), (opening.high_m, 1)):
                    bottom = opening.sill_m - 0.25
                    height = opening.head_m + 0.14 - bottom
                    panel = build('curtain', self.style, width=0.3, height=height, cloth=cloth)
                    pose = wall_pose(side, edge + sign * 0.13, panel, 0.002, bottom)
                    self.hang_at(panel, pose)
