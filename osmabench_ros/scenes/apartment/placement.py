"""Places pieces in a room, clear of doors, other pieces and ways to walk, and on each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment.finishes import Finish, Style
from osmabench_ros.scenes.apartment.layout import RoomPlan, RoomSide
from osmabench_ros.scenes.apartment.pieces import Piece, Support, build
from osmabench_ros.semantics.scene_graph import RelationType

# Least distance between two pieces, and between a piece and a wall.
GAP_M = 0.012

# Least distance of an object on a wall from all others, so that none seems to carry it.
HANGING_GAP_M = 0.06

# Half the width of the way that always stays open; a robot of radius 0.2 m needs less.
WALK_RADIUS_M = 0.32

WALK_HEIGHT_M = 1.9
CELL_M = 0.05
# Least fraction of the free floor that can be reached from the doors.
CONNECTED_SHARE = 0.9

DOOR_CLEARANCE_M = 0.75
TRIES = 60


def compute_footprint_box(piece: Piece, pose: Pose) -> AxisAlignedBox:
    """Return the box around an upright piece at a pose."""
    cos = abs(np.cos(pose.yaw_rad))
    sin = abs(np.sin(pose.yaw_rad))
    width, depth, height = piece.size
    half = np.array([cos * width + sin * depth, sin * width + cos * depth, 0.0]) / 2
    low = pose.translation - half
    return AxisAlignedBox(low, pose.translation + half + [0, 0, height])


class RoomSpace:
    """The free space of one room."""

    def __init__(self, plan: RoomPlan, height_m: float) -> None:
        self.plan = plan
        self.height_m = height_m
        self._taken: list[AxisAlignedBox] = []
        self._clear: list[AxisAlignedBox] = []
        self._doors: list[NDArray[np.float64]] = []
        for side in plan.sides:
            for opening in side.openings:
                if opening.kind == 'window':
                    continue
                low, high = opening.low_m - 0.05, opening.high_m + 0.05
                corners = [side.point(low), side.point(high, DOOR_CLEARANCE_M)]
                self._clear.append(_make_zone(corners, 0.0))
                self._doors.append(side.point(opening.middle_m, WALK_RADIUS_M + CELL_M))

    def copy(self) -> RoomSpace:
        """Return a space with the same boxes taken, to try out a way of furnishing."""
        twin = RoomSpace(self.plan, self.height_m)
        twin._taken = list(self._taken)
        twin._clear = list(self._clear)
        return twin

    def take(self, box: AxisAlignedBox, clear: AxisAlignedBox | None = None) -> None:
        """Mark a box as occupied and, if given, another that must stay free."""
        self._taken.append(box)
        if clear is not None:
            self._clear.append(clear)

    def is_free(
        self, box: AxisAlignedBox, clear: AxisAlignedBox | None = None, gap_m: float = GAP_M
    ) -> bool:
        """Return whether a box fits in, and the zone before it is not built over."""
        low = np.array([*self.plan.inner_low, -np.inf])
        room = AxisAlignedBox(low, np.array([*self.plan.inner_high, self.height_m]))
        if not room.contains(np.array([box.minimum, box.maximum]), 1e-9).all():
            return False
        if _meets_any(box, self._taken, gap_m) or _meets_any(box, self._clear, 0.0):
            return False
        return clear is None or not _meets_any(clear, self._taken, 0.0)

    def is_clear_above(self, box: AxisAlignedBox) -> bool:
        """Return whether a box is empty, apart from objects that reach below it."""
        above = [item for item in self._taken if item.minimum[2] > box.minimum[2] - 0.005]
        return not _meets_any(box, above, HANGING_GAP_M)

    def stays_walkable(self, box: AxisAlignedBox) -> bool:
        """Return whether all doors and nearly all free floor stay connected with one box more."""
        low, high = self.plan.inner_low, self.plan.inner_high
        shape = np.maximum(np.ceil((high - low) / CELL_M).astype(int), 1)
        x, y = (low[i] + (np.arange(shape[i]) + 0.5) * CELL_M for i in (0, 1))
        free = np.ones(shape, bool)
        for item in [*self._taken, box]:
            if item.minimum[2] < WALK_HEIGHT_M and item.maximum[2] > 0.03:
                inside_x = _find_near(x, item.minimum[0], item.maximum[0])
                free[np.ix_(inside_x, _find_near(y, item.minimum[1], item.maximum[1]))] = False
        radius = WALK_RADIUS_M
        free[(x < low[0] + radius) | (x > high[0] - radius)] = False
        free[:, (y < low[1] + radius) | (y > high[1] - radius)] = False
        regions, _ = ndimage.label(free)
        at_doors = {int(regions[tuple(((p - low) / CELL_M).astype(int))]) for p in self._doors}
        if len(at_doors) != 1 or at_doors == {0}:
            return False
        return bool((regions == at_doors.pop()).sum() >= CONNECTED_SHARE * free.sum())


def compute_wall_pose(
    side: RoomSide, u_m: float, piece: Piece, gap_m: float, z_m: float = 0.0
) -> Pose:
    """Return the pose of a piece with its back `gap_m` from a wall, centred at u."""
    x, y = side.point(u_m, piece.size[1] / 2 + gap_m)
    return Pose.from_yaw(side.yaw_rad, (x, y, z_m))


def compute_front_zone(piece: Piece, pose: Pose, depth_m: float) -> AxisAlignedBox | None:
    """Return the box of floor before a piece, None without depth."""
    if depth_m <= 0:
        return None
    half = piece.size[0] / 2
    front = -piece.size[1] / 2
    corners = pose.transform(np.array([[-half, front, 0.0], [half, front - depth_m, 0.0]]))
    return _make_zone(corners[:, :2], 0.02)


def _is_wall_free(side: RoomSide, u: float, piece: Piece, bottom_m: float) -> bool:
    low = u - piece.size[0] / 2 - 0.04
    high = u + piece.size[0] / 2 + 0.04
    top = bottom_m + piece.size[2]
    return not any(item.meets(low, high, bottom_m, top) for item in side.openings)


def _make_zone(corners: ArrayLike, bottom_m: float) -> AxisAlignedBox:
    """Return the box over the rectangle between two corners, up to where people walk."""
    return AxisAlignedBox.around(np.column_stack([corners, [bottom_m, WALK_HEIGHT_M]]))


def _meets_any(box: AxisAlignedBox, others: Sequence[AxisAlignedBox], gap_m: float) -> bool:
    return any(
        ((box.minimum < other.maximum + gap_m) & (box.maximum > other.minimum - gap_m)).all()
        for other in others
    )


def _find_near(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.bool_]:
    return (values > low - WALK_RADIUS_M) & (values < high + WALK_RADIUS_M)


# Least distance between two objects on one support.
SPACING_M = 0.015

# Distance between neighbouring pieces.
BESIDE_M = 0.05

SPOT_TRIES = 25
# Free floor in front of pieces in a row.
ROW_FRONT_M = 0.8


class NoSpaceError(Exception):
    """A room has no place for a piece that it cannot do without; draw the room again."""


@dataclass(frozen=True, eq=False)
class PlacedPiece:
    """A piece at its pose in the world; a carrier of None means floor, wall or ceiling."""

    piece: Piece
    pose: Pose
    room_id: int
    relation: RelationType | None = None
    carrier: PlacedPiece | None = None


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
        self.placed: list[PlacedPiece] = []
        self._used: dict[tuple[int, int], list[_Spot]] = {}

    def _keep(
        self,
        piece: Piece,
        pose: Pose,
        relation: RelationType = RelationType.ON,
        carrier: PlacedPiece | None = None,
    ) -> PlacedPiece:
        item = PlacedPiece(piece, pose, self.space.plan.id, relation, carrier)
        self.placed.append(item)
        return item

    def wall(
        self, piece: Piece, front_m: float = 0.55, corner: bool = False, reserve: bool = True
    ) -> PlacedPiece | None:
        """Stand a piece with its back at a wall, `front_m` of free floor before it, if it fits."""
        for side, u in self._draw_wall_positions(piece.size[0], corner):
            if not _is_wall_free(side, u, piece, 0.0):
                continue
            pose = compute_wall_pose(side, u, piece, GAP_M)
            clear = compute_front_zone(piece, pose, front_m)
            if found := self.at(piece, pose, clear, reserve=reserve):
                return found
        return None

    def must(self, placed: PlacedPiece | None) -> PlacedPiece:
        """Return the placed piece; NoSpaceError if it found no place."""
        if placed is None:
            raise NoSpaceError
        return placed

    def free(self, piece: Piece, margin_m: tuple[float, float]) -> PlacedPiece | None:
        """Stand a piece away from the walls with free floor of `margin_m` along its x and y."""
        rng, plan = self.style.rng, self.space.plan
        for _ in range(TRIES):
            yaw = float(rng.integers(4)) * np.pi / 2
            box = compute_footprint_box(piece, Pose.from_yaw(yaw))
            margin = np.array(margin_m if yaw % np.pi < 0.1 else margin_m[::-1])
            half = box.size[:2] / 2 + margin
            low = plan.inner_low + half
            high = plan.inner_high - half
            if (low > high).any():
                continue
            pose = Pose.from_yaw(yaw, (*rng.uniform(low, high), 0.0))
            box = compute_footprint_box(piece, pose)
            spread = np.array([*margin, 0.0])
            around = AxisAlignedBox(box.minimum - spread, box.maximum + spread)
            if found := self.at(piece, pose, around, reserve=False):
                return found
        return None

    def at(
        self,
        piece: Piece,
        pose: Pose,
        zone: AxisAlignedBox | None = None,
        *,
        reserve: bool = True,
    ) -> PlacedPiece | None:
        """Stand a piece at a pose if that is free, and a zone, which stays so with `reserve`."""
        box = compute_footprint_box(piece, pose)
        if not (self.space.is_free(box, zone) and self.space.stays_walkable(box)):
            return None
        self.space.take(box, zone if reserve else None)
        return self._keep(piece, pose)

    def before(
        self, other: PlacedPiece, piece: Piece, gap_m: float, turn_rad: float
    ) -> PlacedPiece | None:
        """Stand a piece before the front of another, turned relative to it."""
        y = -other.piece.size[1] / 2 - gap_m - piece.size[1] / 2
        pose = other.pose @ Pose.from_yaw(turn_rad, (0.0, y, -other.pose.translation[2]))
        return self.at(piece, pose)

    def beside(self, other: PlacedPiece, piece: Piece, side: int) -> PlacedPiece | None:
        """Stand a piece next to another, backs in line; side is -1 (left) or 1 (right)."""
        x = side * (other.piece.size[0] + piece.size[0] + 2 * BESIDE_M) / 2
        y = (other.piece.size[1] - piece.size[1]) / 2
        return self.at(piece, other.pose @ Pose.from_yaw(0.0, (x, y, 0.0)))

    def row(self, pieces: Sequence[Piece]) -> list[PlacedPiece] | None:
        """Stand pieces side by side at one wall, left to right as listed."""
        widths = [piece.size[0] + GAP_M + 0.002 for piece in pieces]
        total = sum(widths)
        for side, middle in self._draw_wall_positions(total, corner=True):
            # A piece at a wall looks into the room, so its left is towards larger u.
            starts = middle + total / 2 - np.cumsum([0.0, *widths[:-1]])
            found = []
            for start, width, piece in zip(starts, widths, pieces, strict=True):
                u = float(start) - width / 2
                pose = compute_wall_pose(side, u, piece, GAP_M)
                box = compute_footprint_box(piece, pose)
                zone = compute_front_zone(piece, pose, ROW_FRONT_M)
                if not (_is_wall_free(side, u, piece, 0.0) and self.space.is_free(box, zone)):
                    break
                found.append((piece, pose, box, zone))
            whole = len(found) == len(pieces)
            boxes = [box for _, _, box, _ in found]
            if whole and self.space.stays_walkable(AxisAlignedBox.holding(boxes)):
                for _, _, box, zone in found:
                    self.space.take(box, zone)
                return [self._keep(piece, pose) for piece, pose, _, _ in found]
        return None

    def hang(
        self, piece: Piece, bottom_m: float, above: PlacedPiece | None = None
    ) -> PlacedPiece | None:
        """Hang a piece on a wall, over another one on the floor if named."""
        if above is None:
            spots = self._draw_wall_positions(piece.size[0] + 0.1, corner=False)
        else:
            yaw = above.pose.yaw_rad
            side = max(self.space.plan.sides, key=lambda item: np.cos(item.yaw_rad - yaw))
            spots = [(side, side.find_position(above.pose.translation[:2]))]
        for side, u in spots:
            pose = compute_wall_pose(side, u, piece, 0.002, bottom_m)
            if _is_wall_free(side, u, piece, bottom_m) and (
                found := self._attach(piece, pose, HANGING_GAP_M)
            ):
                return found
        return None

    def _attach(self, piece: Piece, pose: Pose, gap_m: float) -> PlacedPiece | None:
        box = compute_footprint_box(piece, pose)
        if not self.space.is_free(box, gap_m=gap_m):
            return None
        self.space.take(box)
        return self._keep(piece, pose, RelationType.ATTACHED_TO)

    def _draw_wall_positions(self, width_m: float, corner: bool) -> list[tuple[RoomSide, float]]:
        rng, sides = self.style.rng, self.space.plan.sides
        fitting = [side for side in sides if side.length_m >= width_m + 2 * GAP_M]
        spots: list[tuple[RoomSide, float]] = []
        if not fitting:
            return spots
        half = width_m / 2 + GAP_M
        if corner:
            ends = [(side, u) for side in fitting for u in (half, side.length_m - half)]
            spots += [ends[i] for i in rng.permutation(len(ends))]
        for _ in range(TRIES):
            side = fitting[int(rng.integers(len(fitting)))]
            spots.append((side, float(rng.uniform(half, side.length_m - half))))
        return spots

    def ceiling(self, piece: Piece, x: float, y: float) -> PlacedPiece:
        """Hang a piece from the ceiling."""
        pose = Pose.from_yaw(0.0, (x, y, self.space.height_m - piece.size[2]))
        self.space.take(compute_footprint_box(piece, pose))
        return self._keep(piece, pose, RelationType.ATTACHED_TO)

    def put(
        self, carrier: PlacedPiece | None, piece: Piece, place: int = 0, facing: bool = True
    ) -> PlacedPiece | None:
        """Put an object on support `place` of a carrier; None without a carrier or room."""
        if carrier is None or place >= len(carrier.piece.supports):
            return None
        support = carrier.piece.supports[place]
        if piece.size[2] > support.clearance_m:
            return None
        used = self._used.setdefault((id(carrier), place), [])
        for _ in range(SPOT_TRIES):
            spot = self._draw_spot(piece, support, facing)
            if spot is None or any(spot.is_close(other) for other in used):
                continue
            pose = carrier.pose @ Pose.from_yaw(spot.yaw_rad, (spot.x, spot.y, spot.z))
            below = support.relation is RelationType.UNDER
            if below or self.space.is_clear_above(compute_footprint_box(piece, pose)):
                used.append(spot)
                return self._keep(piece, pose, support.relation, carrier)
        return None

    def place_centrally(self, carrier: PlacedPiece, piece: Piece) -> PlacedPiece:
        """Put an object exactly in the middle of the first support."""
        support = carrier.piece.supports[0]
        spot = _Spot(*support.center, 0.0, piece.size[0] / 2, piece.size[1] / 2)
        self._used.setdefault((id(carrier), 0), []).append(spot)
        pose = carrier.pose @ Pose.from_yaw(0.0, support.center)
        return self._keep(piece, pose, support.relation, carrier)

    def _draw_spot(self, piece: Piece, support: Support, facing: bool) -> _Spot | None:
        """Draw a place on a support, None if the piece is too large for it that way round."""
        rng, (width, depth, _) = self.style.rng, piece.size
        yaw = float(rng.normal(0.0, 0.12) if facing else rng.uniform(-np.pi, np.pi))
        if not facing and max(width, depth) > 0.6 * min(support.size):
            yaw = 0.0
        cos = abs(math.cos(yaw))
        sin = abs(math.sin(yaw))
        half_x = (cos * width + sin * depth) / 2
        half_y = (sin * width + cos * depth) / 2
        room_x = support.size[0] / 2 - half_x
        room_y = support.size[1] / 2 - half_y
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
                    pose = compute_wall_pose(side, edge + sign * 0.13, panel, 0.002, bottom)
                    self._attach(panel, pose, GAP_M)
