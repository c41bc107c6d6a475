"""Rigid transformations, SE(3), and similarity transformations, Sim(3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Pose:
    """Pose of a child frame in a parent frame; maps child coordinates to parent coordinates.

    Parameters
    ----------
    rotation : ndarray, shape (3, 3)
        Rotation matrix.
    translation : ndarray, shape (3,)
        Origin of the child in the parent, metres.

    Raises
    ------
    ValueError
        If the shapes are wrong, a value is not finite, or the rotation is not orthonormal.
    """

    rotation: NDArray[np.float64]
    translation: NDArray[np.float64]

    def __post_init__(self) -> None:
        rotation = np.array(self.rotation, dtype=np.float64)
        translation = np.array(self.translation, dtype=np.float64)
        if rotation.shape != (3, 3) or translation.shape != (3,):
            raise ValueError(
                f'a pose needs shapes (3, 3) and (3,), not {rotation.shape}, {translation.shape}'
            )
        if not (np.isfinite(rotation).all() and np.isfinite(translation).all()):
            raise ValueError('a pose must be finite; it holds NaN or infinity')
        if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-4 or np.linalg.det(rotation) < 0:
            raise ValueError('the rotation of a pose must be orthonormal and right-handed')
        rotation.flags.writeable = False
        translation.flags.writeable = False
        object.__setattr__(self, 'rotation', rotation)
        object.__setattr__(self, 'translation', translation)

    @classmethod
    def identity(cls) -> Pose:
        """Return the pose of a frame in itself."""
        return cls(np.eye(3), np.zeros(3))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Pose:
        """Build from a homogeneous matrix of shape (4, 4)."""
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.shape != (4, 4):
            raise ValueError(f'a homogeneous matrix is (4, 4), not {matrix.shape}')
        return cls(matrix[:3, :3], matrix[:3, 3])

    @classmethod
    def from_quaternion(cls, xyzw: Sequence[float], translation: ArrayLike) -> Pose:
        """Build from a unit quaternion (x, y, z, w) and a translation in metres."""
        from scipy.spatial.transform import Rotation

        norm = float(np.linalg.norm(xyzw))
        if not np.isfinite(norm) or abs(norm - 1.0) > 1e-2:
            raise ValueError(f'a quaternion must have length 1, not {norm}')
        return cls(Rotation.from_quat(xyzw).as_matrix(), np.asarray(translation))

    @classmethod
    def from_yaw(cls, yaw_rad: float, translation: ArrayLike = (0.0, 0.0, 0.0)) -> Pose:
        """Build from a heading about z (positive turns left) and a translation in metres."""
        from scipy.spatial.transform import Rotation

        return cls(Rotation.from_euler('z', yaw_rad).as_matrix(), np.asarray(translation))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Homogeneous matrix, shape (4, 4)."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.rotation
        matrix[:3, 3] = self.translation
        return matrix

    @property
    def quaternion(self) -> NDArray[np.float64]:
        """Unit quaternion (x, y, z, w) with w >= 0."""
        from scipy.spatial.transform import Rotation

        return np.asarray(Rotation.from_matrix(self.rotation).as_quat(canonical=True))

    @property
    def yaw_rad(self) -> float:
        """Heading of the child's x axis about the parent's z axis, in (-pi, pi]."""
        return float(np.arctan2(self.rotation[1, 0], self.rotation[0, 0]))

    def inverse(self) -> Pose:
        """Return the pose of the parent in the child."""
        return Pose(self.rotation.T, -self.rotation.T @ self.translation)

    def __matmul__(self, other: Pose) -> Pose:
        """Chain: (a in b) @ (c in a) is c in b."""
        return Pose(
            self.rotation @ other.rotation, self.rotation @ other.translation + self.translation
        )

    def transform(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Take points of shape (..., 3) from child to parent coordinates."""
        return np.asarray(points @ self.rotation.T + self.translation)


@dataclass(frozen=True, eq=False)
class Similarity:
    """A rigid transformation after a scaling by a positive factor: p -> R (s p) + t, metres.

    By default it changes nothing.
    """

    pose: Pose = field(default_factory=Pose.identity)
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f'a scale must be a positive number, not {self.scale}')

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
