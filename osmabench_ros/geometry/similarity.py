"""Similarity transformations, Sim(3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose


@dataclass(frozen=True, eq=False)
class Similarity:
    """A rigid transformation after a scaling by a positive factor: p -> R (s p) + t, metres."""

    pose: Pose
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f'a scale must be a positive number, not {self.scale}')

    @classmethod
    def identity(cls) -> Similarity:
        """Return the transformation that changes nothing."""
        return cls(Pose.identity())

    def transform(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the images of points of shape (..., 3)."""
        return self.pose.transform(np.asarray(points, np.float64) * self.scale)

    def __matmul__(self, other: Similarity) -> Similarity:
        """Chain: the right one is applied first."""
        translation = self.transform(other.pose.translation)
        rotation = self.pose.rotation @ other.pose.rotation
        return Similarity(Pose(rotation, translation), self.scale * other.scale)

    @property
    def distance_m(self) -> float:
        """Length of the translation."""
        return float(np.linalg.norm(self.pose.translation))

    @property
    def angle_deg(self) -> float:
        """Angle of the rotation in degrees, in [0, 180]."""
        # Rounding may take the trace of a rotation slightly out of [-1, 3].
        cosine = np.clip((np.trace(self.pose.rotation) - 1) / 2, -1, 1)
        return float(np.degrees(np.arccos(cosine)))
