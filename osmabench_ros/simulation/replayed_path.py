"""A robot path along recorded poses, so that a recorded drive can be repeated under any condition.

Conditions decide how fast a path is driven; of a recording only the places and headings count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.simulation.robot_path import SMALLEST_TURN_RAD, RobotPath

SMALLEST_STEP_M = 1e-4
"""Shorter steps are noise of a robot that stands."""


def path_along(
    points_m: ArrayLike, headings_rad: ArrayLike, *, segments: int, floor_height_m: float
) -> RobotPath:
    """Return a path through recorded poses: straight to the next place, then to its heading.

    Points are world x and y, (N, 2), headings about z, 0 along x; `segments` parts of equal length
    count as goal segments. Raises SimulationError if there are fewer than two different poses, or
    a number is not finite.
    """
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
