"""Which frames of a trajectory to look at."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from osmabench_ros.geometry.pose import Pose


def frames_at_interval(count: int, every: int) -> list[int]:
    """Return every n-th frame index, the first one included."""
    return list(range(0, count, max(1, every)))


def novel_frames(
    poses: Sequence[Pose],
    *,
    min_distance_m: float = 1.0,
    min_angle_rad: float = math.pi / 6,
    most: int | None = None,
) -> list[int]:
    """Return frames whose pose is new: far from, or turned away from, every frame taken before.

    Poses are of the optical frame, in order of time; of more than `most`, an even selection.
    """
    taken: list[int] = []
    for index, pose in enumerate(poses):
        if all(_differs(pose, poses[i], min_distance_m, min_angle_rad) for i in taken):
            taken.append(index)
    if most is not None and len(taken) > most:
        chosen = np.linspace(0, len(taken) - 1, most).round().astype(int)
        taken = [taken[i] for i in dict.fromkeys(chosen.tolist())]
    return taken


def _differs(first: Pose, second: Pose, distance_m: float, angle_rad: float) -> bool:
    if np.linalg.norm(first.translation - second.translation) >= distance_m:
        return True
    cosine = float(first.rotation[:, 2] @ second.rotation[:, 2])
    return math.acos(min(1.0, max(-1.0, cosine))) >= angle_rad
