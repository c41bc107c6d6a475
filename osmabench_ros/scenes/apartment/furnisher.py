"""Puts pieces into a room and remembers what stands on, or in, what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment.body import Piece, Support
from osmabench_ros.scenes.apartment.finishes import Style
from osmabench_ros.scenes.apartment.placement import RoomSpace, footprint_box, wall_pose
from osmabench_ros.semantics.scene_graph import RelationType

SPACING_M = 0.015
"""Least distance between two things on one support."""

TRIES = 25


class NoSpaceError(Exception):
    """A room has no place for a piece that it cannot do without; draw the room again."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A piece where it stands.

    Parameters
    ----------
    piece : Piece
        What.
    pose : Pose
        Where, in the world.
    room_id : int
        Room it stands in.
    relation : RelationType, optional
        ON, IN or ATTACHED_TO, as it was built.
    carrier : Placed, optional
        The piece it stands on, in or hangs from; None means floor, wall or ceiling.
    """

    piece: Piece
    pose: Pose
    room_id: int
    relation: RelationType | None = None
    carrier: Placed | None = None


class Furnisher:
    """Furnishes one room.

    Parameters
    ----------
    space : RoomSpace
        Free space of the room.
    style : Style
        Source of colours, proportions and positions.
    """

    def __init__(self, space: RoomSpace, style: Style) -> None:
        self.space = space
        self.style = style
        self.placed: list[Placed] = []
        self._used: dict[tuple[int, int], list[AxisAlignedBox]] = {}

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
        self, piece: Piece, front_m: float = 0.55, corner: bool = False, gap_m: float = 0.012
    ) -> Placed | None:
        """Stand a piece with its back at a wall, if there is room."""
        pose = self.space.against_wall(piece, front_m, gap_m, corner)
        return self._keep(piece, pose)

    def must(self, placed: Placed | None) -> Placed:
        """Return the placed piece.

        Raises
        ------
        NoSpaceError
            If it found no place.
        """
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

    def beside(self, other: Placed, piece: Piece, side: int, gap_m: float = 0.05) -> Placed | None:
        """Stand a piece beside another, backs in line; side is -1 (left) or 1 (right)."""
        x = side * (other.piece.size[0] + piece.size[0] + 2 * gap_m) / 2
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
        """Put a thing on or in one of the supports of another.

        Parameters
        ----------
        carrier : Placed, optional
            Nothing happens without one.
        piece : Piece
            What to put there.
        place : int
            Position in the carrier's list of supports.
        facing : bool
            Whether it looks to the carrier's front, nearly; otherwise it is turned at random.
        """
        if carrier is None or place >= len(carrier.piece.supports):
            return None
        support = carrier.piece.supports[place]
        if piece.size[2] > support.clearance_m:
            return None
        used = self._used.setdefault((id(carrier), place), [])
        for _ in range(TRIES):
            pose = self._spot(piece, support, facing)
            if pose is None:
                continue
            box = footprint_box(piece, pose)
            if not any(_close(box, other) for other in used):
                used.append(box)
                return self._keep(piece, carrier.pose @ pose, support.relation, carrier)
        return None

    def centered(self, carrier: Placed | None, piece: Piece, place: int = 0) -> Placed | None:
        """Put a thing exactly in the middle of a support."""
        if carrier is None:
            return None
        support = carrier.piece.supports[place]
        pose = Pose.from_yaw(0.0, support.center)
        self._used.setdefault((id(carrier), place), []).append(footprint_box(piece, pose))
        return self._keep(piece, carrier.pose @ pose, support.relation, carrier)

    def put_each(
        self,
        carrier: Placed | None,
        builders: Iterable[Callable[[Style], Piece]],
        places: Sequence[int] = (0,),
        facing: bool = True,
    ) -> list[Placed]:
        """Put several things, going round the supports; what does not fit is left out."""
        kept = []
        for i, build in enumerate(builders):
            item = self.put(carrier, build(self.style), places[i % len(places)], facing)
            if item is not None:
                kept.append(item)
        return kept

    def _spot(self, piece: Piece, support: Support, facing: bool) -> Pose | None:
        rng = self.style.rng
        yaw = float(rng.normal(0.0, 0.12) if facing else rng.uniform(-np.pi, np.pi))
        if not facing and max(piece.size[:2]) > 0.6 * min(support.size):
            yaw = 0.0
        half = footprint_box(piece, Pose.from_yaw(yaw)).size[:2] / 2
        room = np.array(support.size) / 2 - half
        if (room < -1e-9).any():
            return None
        x, y = rng.uniform(-room, np.maximum(room, -room + 1e-9))
        cx, cy, cz = support.center
        return Pose.from_yaw(yaw, (cx + float(x), cy + float(y), cz))

    def hang_curtains(self, build: Callable[[float, float], Piece]) -> None:
        """Hang a panel on either side of every window; `build` takes width and height."""
        for side in self.space.plan.sides:
            for opening in side.openings:
                if opening.kind != 'window':
                    continue
                for edge, sign in ((opening.low_m, -1), (opening.high_m, 1)):
                    bottom = opening.sill_m - 0.25
                    panel = build(0.3, opening.head_m + 0.14 - bottom)
                    pose = wall_pose(side, edge + sign * 0.13, panel, 0.002, bottom)
                    self.hang_at(panel, pose)


def _close(a: AxisAlignedBox, b: AxisAlignedBox) -> bool:
    gap = np.maximum(a.minimum - b.maximum, b.minimum - a.maximum)[:2]
    return bool(gap.max() < SPACING_M)
