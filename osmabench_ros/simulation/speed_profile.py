"""How a distance is covered over time: at constant speed, or with limited acceleration."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def duration_s(
    distances: ArrayLike, speed: float, acceleration: float = math.inf
) -> NDArray[np.float64]:
    """Return the time that each distance, metres or radians, takes from rest to rest.

    Short distances never reach full speed: the profile is then a triangle, otherwise a trapezoid;
    an infinite acceleration means a constant speed.
    """
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
