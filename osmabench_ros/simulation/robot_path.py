"""The path of the robot: turns in place and straight drives, shared by all conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.errors import SimulationError
from osmabench_ros.simulation.navigation import Navigation


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
SMALLEST_TURN_RAD = 1e-6
NO_FRAME = 1e-3
"""Share of a frame that needs no frame of its own; simulators give positions in 32 bits."""


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

    def faster(self, factor: float) -> Motion:
        """Return both speeds times a factor, with the same accelerations."""
        return replace(
            self,
            linear_m_s=self.linear_m_s * factor,
            angular_rad_s=self.angular_rad_s * factor,
        )


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
        World z of base_link.

    Raises
    ------
    SimulationError
        If a number is not finite or the shapes do not fit.
    """

    states: NDArray[np.float64]
    segments: NDArray[np.int64]
    floor_height_m: float

    def __post_init__(self) -> None:
        if self.states.ndim != 2 or self.states.shape[1] != 3 or len(self.states) < 1:
            raise SimulationError(f'a path needs states of shape (K, 3), not {self.states.shape}')
        if self.segments.shape != (len(self.states) - 1,):
            raise SimulationError(
                f'a path of {len(self.states)} states needs {len(self.states) - 1} segment '
                f'numbers, not {len(self.segments)}'
            )
        if not np.isfinite(self.states).all() or not np.isfinite(self.floor_height_m):
            raise SimulationError('a path must be finite; it holds NaN or infinity')

    @property
    def length_m(self) -> float:
        """Distance driven."""
        return float(np.linalg.norm(np.diff(self.states[:, :2], axis=0), axis=1).sum())

    def times_s(self, motion: Motion) -> NDArray[np.float64]:
        """Return when each state is reached, shape (K,), starting at 0."""
        distances, angles = self._legs
        driving = duration_s(distances, motion.linear_m_s, motion.linear_m_s2)
        turning = duration_s(angles, motion.angular_rad_s, motion.angular_rad_s2)
        legs = driving + turning
        if motion.whole_s > 0:
            legs = np.ceil(legs / motion.whole_s - NO_FRAME) * motion.whole_s
        return np.concatenate([[0.0], np.cumsum(legs)])

    def states_at(
        self, times_s: NDArray[np.float64], motion: Motion
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return states (T, 3) and legs (T,) at times since the start."""
        if len(self.states) == 1:
            return np.repeat(self.states, len(times_s), axis=0), np.zeros(len(times_s), np.int64)
        reached = self.times_s(motion)
        legs = np.clip(np.searchsorted(reached, times_s, side='right') - 1, 0, len(reached) - 2)
        since = times_s - reached[legs]
        distances, angles = (item[legs] for item in self._legs)
        done = covered(since, distances, motion.linear_m_s, motion.linear_m_s2)
        done = done + covered(since, angles, motion.angular_rad_s, motion.angular_rad_s2)
        share = np.clip(done / np.maximum(distances + angles, 1e-12), 0.0, 1.0)
        states = self.states[legs] + share[:, None] * np.diff(self.states, axis=0)[legs]
        return states, legs

    @property
    def _legs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Metres driven and radians turned of each leg; one of them is 0."""
        steps = np.diff(self.states, axis=0)
        return np.linalg.norm(steps[:, :2], axis=1), np.abs(steps[:, 2])

    def until(self, duration_s: float, motion: Motion) -> RobotPath:
        """Return the part of the path that is done within a time."""
        reached = self.times_s(motion)
        if reached[-1] <= duration_s:
            return self
        kept = int(np.searchsorted(reached, duration_s, side='right'))
        end, _ = self.states_at(np.array([duration_s]), motion)
        states = np.concatenate([self.states[:kept], end])
        return RobotPath(states, self.segments[: len(states) - 1], self.floor_height_m)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {
            'format': FORMAT,
            'states': self.states.tolist(),
            'segments': self.segments.tolist(),
            'floor_height_m': self.floor_height_m,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: str = 'path') -> RobotPath:
        """Rebuild from `to_json`; `source` is named in errors."""
        try:
            if data['format'] != FORMAT:
                raise SimulationError(f'{source}: format is {data["format"]}, expected {FORMAT}')
            return cls(
                np.array(data['states'], np.float64).reshape(-1, 3),
                np.array(data['segments'], np.int64),
                float(data['floor_height_m']),
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
    goal_points: Sequence[Sequence[float]] = (),
    look_around: bool = False,
) -> RobotPath:
    """Plan a path through a start and random reachable goals, or through given points.

    `goal_points` are start and goals, x and y in metres; `look_around` turns the robot once at
    every goal. Raises SimulationError, which names it, if a given point cannot be reached.
    """
    rng = np.random.default_rng([seed, goals])
    points = np.asarray(goal_points, np.float64).reshape(-1, 2)
    if not len(points):
        points = navigation.random_points(goals + 1, rng)
    if len(points) < 2:
        raise SimulationError('a path needs a start and a goal: two points or more')
    lines = [navigation.shortest_path(start, goal) for start, goal in pairwise(points)]
    return _with_turns(lines, navigation.floor_height_m, look_around)


def _with_turns(
    lines: Sequence[NDArray[np.float64]], floor_height_m: float, look_around: bool
) -> RobotPath:
    states: list[tuple[float, float, float]] = []
    segments: list[int] = []
    for number, line in enumerate(lines):
        for (x, y), (next_x, next_y) in pairwise(line):
            if np.hypot(next_x - x, next_y - y) < 1e-9:
                continue
            heading = float(np.arctan2(next_y - y, next_x - x))
            if states:
                turn = (heading - states[-1][2] + np.pi) % (2 * np.pi) - np.pi
                heading = states[-1][2] + turn
                if abs(turn) > SMALLEST_TURN_RAD:
                    states.append((x, y, heading))
                    segments.append(number)
            else:
                states.append((x, y, heading))
            states.append((next_x, next_y, states[-1][2]))
            segments.append(number)
        if look_around and states:
            x, y, heading = states[-1]
            states.append((x, y, heading + 2 * np.pi))
            segments.append(number)
    if not states:
        x, y = lines[0][0]
        states.append((x, y, 0.0))
    return RobotPath(np.array(states), np.array(segments, np.int64), floor_height_m)


SMALLEST_STEP_M = 1e-4
"""Shorter steps are noise of a robot that stands."""


def path_along(
    points_m: ArrayLike, headings_rad: ArrayLike, *, segments: int, floor_height_m: float
) -> RobotPath:
    """Return a path through recorded poses (world x, y, heading) in equal `segments`."""
    points = np.asarray(points_m, np.float64).reshape(-1, 2)
    headings = np.asarray(headings_rad, np.float64)
    if not (np.isfinite(points).all() and np.isfinite(headings).all()):
        raise SimulationError('a recorded pose is NaN or infinite')
    states = [(*points[0], headings[0])] if len(points) else []
    for (x, y), heading in zip(points[1:], np.unwrap(headings)[1:], strict=True):
        here_x, here_y, here_heading = states[-1]
        if np.hypot(x - here_x, y - here_y) >= SMALLEST_STEP_M:
            states.append((x, y, here_heading))
        if abs(heading - here_heading) > SMALLEST_TURN_RAD:
            states.append((*states[-1][:2], heading))
    if len(states) < 2:
        raise SimulationError(
            'the recorded poses do not move; a path needs two places or headings'
        )
    found = np.array(states)
    return RobotPath(found, _segments(found, segments), floor_height_m)


def _segments(states: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the part, 0 to count - 1, that the beginning of every leg lies in."""
    steps = np.abs(np.diff(states, axis=0))
    # A turn of a radian counts as a metre, so that a robot that only turns has parts as well.
    done = np.concatenate([[0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]) + steps[:, 2])])
    parts = np.floor(done[:-1] / done[-1] * count).astype(np.int64)
    return np.asarray(np.minimum(parts, count - 1))
