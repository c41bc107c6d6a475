"""A place where a camera turns: bearings, sectors, what is seen, and ways from there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.suites.hypo3d.frame import DEAD_BAND_RAD, NEAREST_M

HFOV_RAD = math.radians(100.0)
"""Width of an image: more than a quarter turn, so that four of them overlap all around."""

SECTORS = 8
_SECTOR_RAD = math.tau / SECTORS

_LEG_M = 0.8
"""Of this much of a way at its start and at its end the direction is taken."""

_SHORTEST_M = 1.2
_STRAIGHT_RAD = math.radians(30.0)
_TURN_RAD = math.radians(60.0), math.radians(120.0)
_QUADRANT_BAND_RAD = math.radians(12.0)

_CELL_RAD = math.radians(3.0)
_HALF = 60
_LEAST_CELLS = 2
_GROWN_M = 0.03


def wrapped(angle_rad: float) -> float:
    """Return an angle in [-pi, pi)."""
    return (angle_rad + math.pi) % math.tau - math.pi


@dataclass(frozen=True)
class Place:
    """Where a camera turns in place: its centre in world metres, z up, and where it begins.

    `ahead_deg` is counter-clockwise from +x; it is north, or the front of who stands there.
    """

    eye_m: tuple[float, float, float]
    ahead_deg: float

    def camera(self, clockwise_rad: float = 0.0) -> Pose:
        """Return the optical pose of a level camera, turned clockwise from ahead."""
        yaw = math.radians(self.ahead_deg) - clockwise_rad
        return Pose.from_yaw(yaw, self.eye_m) @ optical_pose_in_link()

    def bearing(self, point_m: ArrayLike) -> float:
        """Return how far clockwise from ahead a point (>= 2,) lies, in [-pi, pi)."""
        x, y = (np.asarray(point_m, np.float64)[:2] - self.eye_m[:2]).tolist()
        return wrapped(math.radians(self.ahead_deg) - math.atan2(y, x))

    def sector(self, box: AxisAlignedBox) -> int | None:
        """Return the sector, clockwise from ahead, of the centre of a box.

        None within DEAD_BAND_RAD of a border between sectors, or closer than NEAREST_M.
        """
        if math.dist(box.center[:2], self.eye_m[:2]) < NEAREST_M:
            return None
        turns = self.bearing(box.center) / _SECTOR_RAD
        off = abs(turns - round(turns)) * _SECTOR_RAD
        return None if off > _SECTOR_RAD / 2 - DEAD_BAND_RAD else round(turns) % SECTORS

    def off_sector_rad(self, box: AxisAlignedBox, sector: int) -> float:
        """Return the angle between the centre of a box and the middle of a sector."""
        return abs(wrapped(self.bearing(box.center) - sector * _SECTOR_RAD))

    def is_outside(self, box: AxisAlignedBox, sector: int) -> bool:
        """Return whether all of a box lies outside of a sector and of the dead band around it."""
        low, high = box.minimum, box.maximum
        if (low[:2] <= self.eye_m[:2]).all() and (self.eye_m[:2] <= high[:2]).all():
            return False
        edge = [
            (x, y)
            for t in np.linspace(0.0, 1.0, 9).tolist()
            for x, y in (
                (low[0] + t * (high[0] - low[0]), low[1]),
                (low[0] + t * (high[0] - low[0]), high[1]),
                (low[0], low[1] + t * (high[1] - low[1])),
                (high[0], low[1] + t * (high[1] - low[1])),
            )
        ]
        middle, reach = sector * _SECTOR_RAD, _SECTOR_RAD / 2 + DEAD_BAND_RAD
        return all(abs(wrapped(self.bearing(point) - middle)) > reach for point in edge)

    def outside_view_rad(self, box: AxisAlignedBox, clockwise_rad: float) -> float:
        """Return by how much the centre of a box lies beside an image, 0 within it."""
        off = abs(wrapped(self.bearing(box.center) - clockwise_rad))
        return max(0.0, off - HFOV_RAD / 2)

    def nearest(self, points_m: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the nearest of points (M, 3) in each direction, a cell of 3 degrees, (N, 3)."""
        offset = np.asarray(points_m, np.float64) - self.eye_m
        distance = np.maximum(np.linalg.norm(offset, axis=1), 1e-9)
        columns = np.floor(np.arctan2(offset[:, 1], offset[:, 0]) / _CELL_RAD + _HALF)
        rows = np.floor(np.arcsin(offset[:, 2] / distance) / _CELL_RAD + _HALF)
        # The nearest comes last, and stays.
        order = np.argsort(-distance)
        cells = np.full((2 * _HALF + 1, 2 * _HALF + 1), -1)
        cells[rows.astype(np.int64)[order], columns.astype(np.int64)[order]] = order
        return np.asarray(np.asarray(points_m, np.float64)[cells[cells >= 0]])


def is_seen(box: AxisAlignedBox, nearest_m: NDArray[np.float64]) -> bool:
    """Return whether a box holds the nearest points of at least two directions."""
    return int(box.contains(nearest_m, _GROWN_M).sum()) >= _LEAST_CELLS


AHEAD, AHEAD_LEFT, AHEAD_RIGHT = 'go ahead', 'go ahead and turn left', 'go ahead and turn right'
_TURNED = {1: 'turn right and go ahead', 2: 'turn back and go ahead', 3: 'turn left and go ahead'}
DECISIONS = (AHEAD, *_TURNED.values(), AHEAD_LEFT, AHEAD_RIGHT)
"""What one can do to reach a thing; of each way at most one is right."""


def decision(place: Place, line_m: NDArray[np.float64]) -> str:
    """Return which of DECISIONS clearly leads along a way (N, 2 or 3) from a place, '' for none.

    The directions of the first and the last 0.8 m count. Ways shorter than 1.2 m are not clear,
    nor those that begin within 12 degrees of the border between two quarters.
    """
    found = _first_and_turn(place, line_m)
    if found is None or found[2] < _SHORTEST_M:
        return ''
    first, turn, _ = found
    quarter = round(first / (math.pi / 2)) % 4
    off = abs(wrapped(first - quarter * math.pi / 2))
    if off > math.pi / 4 - _QUADRANT_BAND_RAD:
        return ''
    if abs(turn) <= _STRAIGHT_RAD:
        return _TURNED.get(quarter, AHEAD)
    if quarter == 0 and _TURN_RAD[0] <= abs(turn) <= _TURN_RAD[1]:
        return AHEAD_RIGHT if turn > 0 else AHEAD_LEFT
    return ''


def likeliest_decision(
    place: Place, line_m: NDArray[np.float64], options: Sequence[str]
) -> str | None:
    """Return the option whose directions a way begins and ends in with the least turning."""
    found = _first_and_turn(place, line_m)
    if found is None:
        return None
    first, turn, _ = found

    def off_rad(option: str) -> float:
        if option in (AHEAD_LEFT, AHEAD_RIGHT):
            side = 1 if option == AHEAD_RIGHT else -1
            return abs(first) + abs(wrapped(turn - side * math.pi / 2))
        quarter = next((key for key, name in _TURNED.items() if name == option), 0)
        return abs(wrapped(first - quarter * math.pi / 2)) + abs(turn)

    return min((item for item in options if item in DECISIONS), key=off_rad, default=None)


def _first_and_turn(
    place: Place, line_m: NDArray[np.float64]
) -> tuple[float, float, float] | None:
    """Return the bearing at which a way begins, by how much it turns, and its length in metres."""
    legs = np.linalg.norm(np.diff(line_m[:, :2], axis=0), axis=1)
    length = float(legs.sum())
    if length < 1e-6:
        return None
    start = _along(line_m, legs, min(_LEG_M, length)) - line_m[0, :2]
    end = line_m[-1, :2] - _along(line_m, legs, max(0.0, length - _LEG_M))
    here = np.asarray(place.eye_m[:2])
    first, last = place.bearing(here + start), place.bearing(here + end)
    return wrapped(first), wrapped(last - first), length


def _along(
    line_m: NDArray[np.float64], legs: NDArray[np.float64], way_m: float
) -> NDArray[np.float64]:
    """Return the point (2,) after a length of a way."""
    at = np.concatenate([[0.0], np.cumsum(legs)])
    return np.array([np.interp(way_m, at, line_m[:, axis]) for axis in range(2)])
