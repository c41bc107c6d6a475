"""The path of the robot, shared by all conditions: turns in place and straight drives.

Poses of its camera are sampled along the path at a frame rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.base.documents import read_json
from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.simulation.walkable_grid import Navigation


def duration_s(
    distances: ArrayLike, speed: float, acceleration: float = math.inf
) -> NDArray[np.float64]:
    """Return the time of each distance, metres or radians, from rest to rest."""
    distances = np.asarray(distances, np.float64)
    if math.isinf(acceleration):
        return np.asarray(distances / speed)
    reaches = distances >= speed**2 / acceleration
    trapezoid = distances / speed + speed / acceleration
    return np.where(reaches, trapezoid, 2 * np.sqrt(distances / acceleration))


def covered(
    times_s: ArrayLike, distances: ArrayLike, speed: float, acceleration: float = math.inf
) -> NDArray[np.float64]:
    """Return how much of each distance is behind at a time since its start."""
    times, distances = np.broadcast_arrays(
        np.asarray(times_s, np.float64), np.asarray(distances, np.float64)
    )
    if math.isinf(acceleration):
        return np.asarray(np.clip(times * speed, 0.0, distances))
    total = duration_s(distances, speed, acceleration)
    peak = np.minimum(speed, np.sqrt(distances * acceleration))
    ramp = peak / acceleration
    times = np.clip(times, 0.0, total)
    braking = total - times
    rising = 0.5 * acceleration * times**2
    falling = distances - 0.5 * acceleration * braking**2
    cruising = 0.5 * peak * ramp + peak * (times - ramp)
    late = np.where(braking < ramp, falling, cruising)
    return np.asarray(np.where(times < ramp, rising, late))


FORMAT = 'osmabench.path/1'
# Format 1 with 'heights_m', which a reader of format 1 must not overlook.
CLIMBING_FORMAT = 'osmabench.path/2'

SMALLEST_TURN_RAD = 1e-6
# Fraction of a frame that needs no separate frame; simulators give positions in 32 bits.
NO_FRAME = 1e-3


@dataclass(frozen=True)
class Motion:
    """Constant speeds of the robot; the paper's by default (arXiv 2503.10331, section IV).

    With a finite acceleration the robot starts and ends every leg at rest, which gives trapezoidal
    speed profiles. Every leg takes a multiple of `whole_s`, the rest of it standing; 0 for as long
    as it takes. With the time of a frame, every leg ends on a frame, as with discrete actions.
    """

    linear_m_s: float = 0.75
    angular_rad_s: float = 0.8
    linear_m_s2: float = math.inf
    angular_rad_s2: float = math.inf
    whole_s: float = 0.0


@dataclass(frozen=True, eq=False)
class RobotPath:
    """States between which the robot either drives straight or turns in place.

    Parameters
    ----------
    states : ndarray of float64, shape (K, 3)
        x and y in metres and heading in radians, unwrapped, of base_link in the world.
    segments : ndarray of int64, shape (K - 1,)
        0-based goal segment of the leg after each state.
    floor_height_m : float
        World z of base_link, of the first state if `heights_m` are given.
    heights_m : ndarray of float64, shape (K,), optional
        World z of base_link at each state, on a path that climbs. base_link stays level.

    Raises
    ------
    SimulationError
        If a number is not finite or the shapes do not fit.
    """

    states: NDArray[np.float64]
    segments: NDArray[np.int64]
    floor_height_m: float
    heights_m: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        count = max(len(self.states), 1)
        for name, shape in (
            ('states', (count, 3)), ('segments', (count - 1,)), ('heights_m', (count,))
        ):  # fmt: skip
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise SimulationError(f'a path needs {name} of shape {shape}, not {array.shape}')
        numbers = (self.states, self.floor_height_m, self.floors_m)
        if not all(np.isfinite(item).all() for item in numbers):
            raise SimulationError('a path must be finite; it holds NaN or infinity')

    @classmethod
    def of_rows(
        cls, rows: Sequence[tuple[float, float, float, float]], segments: Sequence[int]
    ) -> RobotPath:
        """Make a path of states (x, y, heading, z); one on one height has no `heights_m`."""
        table = np.array(rows, np.float64)
        heights = table[:, 3]
        climbs = bool((heights != heights[0]).any())
        return cls(
            table[:, :3],
            np.array(segments, np.int64),
            float(heights[0]),
            heights if climbs else None,
        )

    @property
    def floors_m(self) -> NDArray[np.float64]:
        """World z of base_link at each state, shape (K,)."""
        if self.heights_m is not None:
            return self.heights_m
        return np.full(len(self.states), self.floor_height_m)

    @property
    def length_m(self) -> float:
        """Distance driven, along slopes."""
        return float(self._legs[0].sum())

    def times_s(self, motion: Motion) -> NDArray[np.float64]:
        """Return when each state is reached, shape (K,), starting at 0."""
        distances, angles = self._legs
        driving = duration_s(distances, motion.linear_m_s, motion.linear_m_s2)
        turning = duration_s(angles, motion.angular_rad_s, motion.angular_rad_s2)
        legs = driving + turning
        if motion.whole_s > 0:
            legs = np.ceil(legs / motion.whole_s - NO_FRAME) * motion.whole_s
        return np.concatenate([[0.0], np.cumsum(legs)])

    def interpolate_states(
        self, times_s: NDArray[np.float64], motion: Motion
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return states (T, 3), heights (T,) and legs (T,) at times since the start."""
        if len(self.states) == 1:
            standing = RobotPath(self.states[[0, 0]], np.zeros(1, np.int64), self.floor_height_m)
            return standing.interpolate_states(times_s, motion)
        floors = self.floors_m
        reached = self.times_s(motion)
        legs = np.clip(np.searchsorted(reached, times_s, side='right') - 1, 0, len(reached) - 2)
        since = times_s - reached[legs]
        distances, angles = (item[legs] for item in self._legs)
        done = covered(since, distances, motion.linear_m_s, motion.linear_m_s2)
        done = done + covered(since, angles, motion.angular_rad_s, motion.angular_rad_s2)
        share = np.clip(done / np.maximum(distances + angles, 1e-12), 0.0, 1.0)
        states = self.states[legs] + share[:, None] * np.diff(self.states, axis=0)[legs]
        return states, floors[legs] + share * np.diff(floors)[legs], legs

    def interpolate_base_poses(
        self, times_s: NDArray[np.float64], motion: Motion
    ) -> tuple[list[Pose], NDArray[np.int64]]:
        """Return poses of base_link in the world, and legs (T,), at times since the start."""
        states, heights, legs = self.interpolate_states(times_s, motion)
        poses = [
            Pose.from_yaw(yaw, (x, y, z)) for (x, y, yaw), z in zip(states, heights, strict=True)
        ]
        return poses, legs

    @property
    def _legs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Metres driven and radians turned of each leg; one of them is 0."""
        steps = np.diff(self.states, axis=0)
        rises = np.diff(self.floors_m)
        moves = np.column_stack([steps[:, :2], rises])
        return np.linalg.norm(moves, axis=1), np.abs(steps[:, 2])

    def crop(self, duration_s: float, motion: Motion) -> RobotPath:
        """Return the part of the path that is done within a time."""
        reached = self.times_s(motion)
        if reached[-1] <= duration_s:
            return self
        kept = int(np.searchsorted(reached, duration_s, side='right'))
        end, height, _ = self.interpolate_states(np.array([duration_s]), motion)
        states = np.concatenate([self.states[:kept], end])
        segments = self.segments[: len(states) - 1]
        if self.heights_m is None:
            return RobotPath(states, segments, self.floor_height_m)
        heights = np.concatenate([self.heights_m[:kept], height])
        return RobotPath(states, segments, self.floor_height_m, heights)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        data = {
            'format': FORMAT,
            'states': self.states.tolist(),
            'segments': self.segments.tolist(),
            'floor_height_m': self.floor_height_m,
        }
        if self.heights_m is not None:
            data |= {'format': CLIMBING_FORMAT, 'heights_m': self.heights_m.tolist()}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: str = 'path') -> RobotPath:
        """Rebuild from `to_json`; `source` is named in errors."""
        try:
            if data['format'] not in (FORMAT, CLIMBING_FORMAT):
                raise SimulationError(
                    f'{source}: format is {data["format"]}, expected {FORMAT} or {CLIMBING_FORMAT}'
                )
            climbs = data['format'] == CLIMBING_FORMAT
            return cls(
                np.array(data['states'], np.float64).reshape(-1, 3),
                np.array(data['segments'], np.int64),
                float(data['floor_height_m']),
                np.array(data['heights_m'], np.float64) if climbs else None,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SimulationError(f'{source}: malformed path: {error!r}') from error

    @classmethod
    def read(cls, path: Path) -> RobotPath:
        """Read a JSON file."""
        return cls.from_json(read_json(path, SimulationError), str(path))


def plan_path(
    navigation: Navigation,
    *,
    goals: int,
    seed: int,
    goal_points: Sequence[ArrayLike] = (),
    look_around: bool = False,
) -> RobotPath:
    """Plan a path through a start and random reachable goals, or through given points.

    `goal_points` are start and goals: x and y in metres, and z where floors lie above each other;
    `look_around` turns the robot once at every goal. Raises SimulationError, which names it, if a
    given point cannot be reached.
    """
    rng = np.random.default_rng([seed, goals])
    points: Sequence[ArrayLike] = goal_points or list(navigation.draw_points(goals + 1, rng))
    if len(points) < 2:
        raise SimulationError('a path needs a start and a goal: two points or more')
    lines = [navigation.find_shortest_path(start, goal) for start, goal in pairwise(points)]
    return _with_turns(lines, look_around)


def _with_turns(lines: Sequence[NDArray[np.float64]], look_around: bool) -> RobotPath:
    rows: list[tuple[float, float, float, float]] = []
    segments: list[int] = []
    for number, line in enumerate(lines):
        for (x, y, z), (next_x, next_y, next_z) in pairwise(line):
            if np.hypot(next_x - x, next_y - y) < 1e-9:
                continue
            heading = float(np.arctan2(next_y - y, next_x - x))
            if rows:
                turn = (heading - rows[-1][2] + np.pi) % (2 * np.pi) - np.pi
                heading = rows[-1][2] + turn
                if abs(turn) > SMALLEST_TURN_RAD:
                    rows.append((x, y, heading, z))
                    segments.append(number)
            else:
                rows.append((x, y, heading, z))
            rows.append((next_x, next_y, rows[-1][2], next_z))
            segments.append(number)
        if look_around and rows:
            x, y, heading, z = rows[-1]
            rows.append((x, y, heading + 2 * np.pi, z))
            segments.append(number)
    if not rows:
        x, y, z = lines[0][0]
        rows.append((x, y, 0.0, z))
    return RobotPath.of_rows(rows, segments)


# Shorter steps are noise of a robot at rest.
SMALLEST_STEP_M = 1e-4


def make_path_along(points_m: ArrayLike, headings_rad: ArrayLike, *, segments: int) -> RobotPath:
    """Return a path through recorded poses (world x, y, z; heading) in equal `segments`."""
    points = np.asarray(points_m, np.float64).reshape(-1, 3)
    headings = np.asarray(headings_rad, np.float64)
    if not (np.isfinite(points).all() and np.isfinite(headings).all()):
        raise SimulationError('a recorded pose is NaN or infinite')
    rows = [(*points[0, :2], headings[0], points[0, 2])] if len(points) else []
    for (x, y, z), heading in zip(points[1:], np.unwrap(headings)[1:], strict=True):
        here_x, here_y, here_heading, here_z = rows[-1]
        if np.linalg.norm((x - here_x, y - here_y, z - here_z)) >= SMALLEST_STEP_M:
            rows.append((x, y, here_heading, z))
        if abs(heading - here_heading) > SMALLEST_TURN_RAD:
            x, y, _, z = rows[-1]
            rows.append((x, y, heading, z))
    if len(rows) < 2:
        raise SimulationError(
            'the recorded poses do not move; a path needs two places or headings'
        )
    return RobotPath.of_rows(rows, _split_segments(np.array(rows), segments).tolist())


def _split_segments(states: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the part, 0 to count - 1, that every leg begins in."""
    steps = np.abs(np.diff(states, axis=0))
    # A turn of a radian counts as a metre, so that a robot that only turns has parts as well.
    done = np.concatenate([[0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]) + steps[:, 2])])
    parts = np.floor(done[:-1] / done[-1] * count).astype(np.int64)
    return np.asarray(np.minimum(parts, count - 1))


@dataclass(frozen=True)
class CameraMount:
    """Where the camera sits on the robot: height above base_link, pitch positive downwards."""

    height_m: float = 1.5
    pitch_rad: float = 0.0

    @property
    def base_to_camera(self) -> Pose:
        """Optical frame in base_link."""
        from scipy.spatial.transform import Rotation

        rotation = Rotation.from_euler('y', self.pitch_rad).as_matrix()
        return Pose(rotation, np.array([0.0, 0.0, self.height_m])) @ OPTICAL_IN_LINK


@dataclass(frozen=True, eq=False)
class TrajectoryFrame:
    """One instant: base_link and the optical frame in the world, progress of a segment."""

    time_s: float
    base_pose: Pose
    camera_pose: Pose
    segment: int
    segment_progress: float


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Frames at a constant rate along a path, in order of time."""

    frames: tuple[TrajectoryFrame, ...]
    frame_rate_hz: float
    mount: CameraMount
    path: RobotPath
    motion: Motion

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def camera_poses(self) -> tuple[Pose, ...]:
        """Optical frames in the world."""
        return tuple(frame.camera_pose for frame in self.frames)

    def interpolate_camera_poses(self, times_s: NDArray[np.float64]) -> list[Pose]:
        """Return optical poses at any times, clipped to the times of the path."""
        poses, _ = self.path.interpolate_base_poses(times_s, self.motion)
        return [base @ self.mount.base_to_camera for base in poses]


def sample_trajectory(
    path: RobotPath, motion: Motion, frame_rate_hz: float, mount: CameraMount = CameraMount()
) -> Trajectory:
    """Sample a path at a frame rate, so that frame spacing follows from speed and rate."""
    reached = path.times_s(motion)
    count = int(np.floor(reached[-1] * frame_rate_hz + 1e-9)) + 1
    times = np.arange(count) / frame_rate_hz
    poses, legs = path.interpolate_base_poses(times, motion)
    frames = []
    for time_s, base, leg in zip(times, poses, legs, strict=True):
        segment = int(path.segments[leg]) if len(path.segments) else 0
        own = np.flatnonzero(path.segments == segment)
        start, end = (reached[own[0]], reached[own[-1] + 1]) if len(own) else (0.0, 0.0)
        progress = (time_s - start) / (end - start) if end > start else 0.0
        frames.append(
            TrajectoryFrame(
                float(time_s),
                base,
                base @ mount.base_to_camera,
                segment,
                float(np.clip(progress, 0.0, 1.0)),
            )
        )
    return Trajectory(tuple(frames), frame_rate_hz, mount, path, motion)
