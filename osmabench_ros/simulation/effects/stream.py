"""Effects on the stream: frames that get lost, poses that drift."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.spatial.transform import Rotation

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.simulation.effects.effect import Effect


class DroppedFrames(Effect):
    """Loses an expected `share` of frames, `burst` in a row; the first one always arrives."""

    kind: Literal['dropped_frames'] = 'dropped_frames'
    share: float = Field(ge=0, lt=1)
    burst: int = Field(1, ge=1)

    def keeps(self, count: int, seed: int) -> NDArray[np.bool_]:
        """Draw which frames arrive."""
        rng = np.random.default_rng([self.seed, seed, zlib.crc32(self.kind.encode())])
        # Between two bursts lies a geometrically distributed number of frames that arrive.
        begins = self.share / (self.burst * (1 - self.share) + self.share) if self.share else 0.0
        starts = rng.random(count) < begins
        kept = np.ones(count, bool)
        index = 1
        while index < count:
            if starts[index]:
                kept[index : index + self.burst] = False
                index += self.burst
            else:
                index += 1
        return kept


class PoseDrift(Effect):
    """Odometry that drifts: every step's error adds to all later poses.

    Parameters
    ----------
    translation_per_m : float
        Standard deviation of the position's error after 1 m, metres; it grows with the square
        root of the way.
    rotation_per_m_deg, rotation_per_turn_deg : float
        Standard deviation of the heading's error after 1 m and after a full turn, degrees.
    """

    kind: Literal['pose_drift'] = 'pose_drift'
    translation_per_m: float = Field(0.01, ge=0)
    rotation_per_m_deg: float = Field(0.5, ge=0)
    rotation_per_turn_deg: float = Field(2.0, ge=0)

    def reported_poses(self, poses: Sequence[Pose], seed: int) -> list[Pose]:
        """Chain the noisy steps from the true first pose; errors lie in the horizontal plane."""
        rng = np.random.default_rng([self.seed, seed, zlib.crc32(self.kind.encode())])
        believed = list(poses[:1])
        for before, after in pairwise(poses):
            step = after.translation - before.translation
            length = float(np.linalg.norm(step))
            turned = Rotation.from_matrix(before.rotation.T @ after.rotation).magnitude()
            variance = self.rotation_per_m_deg**2 * length
            variance += self.rotation_per_turn_deg**2 * turned / (2 * np.pi)
            yaw = np.radians(np.sqrt(variance)) * rng.normal()
            slip = self.translation_per_m * np.sqrt(length) * rng.normal(size=2)
            believed.append(_moved(believed[-1], before, after, yaw, np.append(slip, 0.0)))
        return believed


def _moved(last: Pose, before: Pose, after: Pose, yaw_rad: float, slip_m: np.ndarray) -> Pose:
    """Add a true step, turned as the belief is turned, and this step's own errors."""
    turned = last.rotation @ before.rotation.T
    error = Rotation.from_euler('z', yaw_rad).as_matrix()
    step = turned @ (after.translation - before.translation)
    rotation = Rotation.from_matrix(error @ turned @ after.rotation).as_matrix()
    return Pose(rotation, last.translation + step + slip_m)
