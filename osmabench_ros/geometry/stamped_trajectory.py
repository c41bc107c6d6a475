"""A trajectory as arrays: stamps, positions, orientations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.similarity import Similarity


@dataclass(frozen=True, eq=False)
class StampedTrajectory:
    """Poses of one moving frame in a fixed frame, ascending in time.

    Parameters
    ----------
    stamps_ns : ndarray of int64, shape (N,)
        Header stamps, ascending; N >= 1.
    positions : ndarray of float64, shape (N, 3)
        Metres.
    rotations : ndarray of float64, shape (N, 3, 3)
        Rotation matrices.
    frame_id : str
        The fixed frame; '' if unknown.
    child_frame_id : str
        The moving frame; '' if unknown.

    Raises
    ------
    ValueError
        If it is empty, shapes do not fit, a number is not finite or time runs backwards.
    """

    stamps_ns: NDArray[np.int64]
    positions: NDArray[np.float64]
    rotations: NDArray[np.float64]
    frame_id: str = ''
    child_frame_id: str = ''

    def __post_init__(self) -> None:
        n = len(self.stamps_ns)
        if n == 0:
            raise ValueError('there is no pose')
        if self.positions.shape != (n, 3) or self.rotations.shape != (n, 3, 3):
            raise ValueError(
                f'{n} stamps, positions {self.positions.shape}, rotations {self.rotations.shape}'
            )
        if not (np.isfinite(self.positions).all() and np.isfinite(self.rotations).all()):
            raise ValueError('a pose is not finite')
        if (np.diff(self.stamps_ns) < 0).any():
            raise ValueError('the stamps are not in order')

    @classmethod
    def from_quaternions(
        cls,
        stamps_ns: ArrayLike,
        positions: ArrayLike,
        xyzw: ArrayLike,
        frame_id: str = '',
        child_frame_id: str = '',
    ) -> StampedTrajectory:
        """Build from quaternions (N, 4), of about unit length or ValueError, in any time order."""
        stamps = np.asarray(stamps_ns, np.int64)
        turns = np.asarray(xyzw, np.float64).reshape(-1, 4)
        norms = np.linalg.norm(turns, axis=1)
        if not (np.abs(norms - 1) <= 1e-2).all():  # NaN fails too
            worst = int(np.argmax(~(np.abs(norms - 1) <= 1e-2)))
            raise ValueError(f'pose {worst}: the quaternion {turns[worst]} has not length 1')
        order = np.argsort(stamps, kind='stable')
        matrices = Rotation.from_quat(turns[order]).as_matrix() if len(turns) else turns
        places = np.asarray(positions, np.float64).reshape(-1, 3)[order]
        return cls(stamps[order], places, matrices.reshape(-1, 3, 3), frame_id, child_frame_id)

    @classmethod
    def from_poses(
        cls,
        stamped: Iterable[tuple[int, Pose]],
        frame_id: str = '',
        child_frame_id: str = '',
    ) -> StampedTrajectory:
        """Build from (stamp in ns, pose) in any order of time; errors as of the class."""
        ordered = sorted(stamped, key=lambda item: item[0])
        return cls(
            np.array([stamp for stamp, _ in ordered], np.int64),
            np.array([pose.translation for _, pose in ordered]).reshape(-1, 3),
            np.array([pose.rotation for _, pose in ordered]).reshape(-1, 3, 3),
            frame_id,
            child_frame_id,
        )

    def __len__(self) -> int:
        return len(self.stamps_ns)

    def select(self, rows: NDArray[np.integer]) -> StampedTrajectory:
        """Return the poses of some rows."""
        return StampedTrajectory(
            self.stamps_ns[rows],
            self.positions[rows],
            self.rotations[rows],
            self.frame_id,
            self.child_frame_id,
        )

    def transformed(self, by: Similarity) -> StampedTrajectory:
        """Return the trajectory in another fixed frame, scaled if the similarity scales."""
        return StampedTrajectory(
            self.stamps_ns,
            by.transform(self.positions),
            by.pose.rotation @ self.rotations,
            self.frame_id,
            self.child_frame_id,
        )

    def pose(self, row: int) -> Pose:
        """Return one pose."""
        return Pose(self.rotations[row], self.positions[row])

    @property
    def path_length_m(self) -> float:
        """Length of the polygon through the positions."""
        return float(np.linalg.norm(np.diff(self.positions, axis=0), axis=1).sum())

    @property
    def duration_s(self) -> float:
        """Time from the first pose to the last."""
        return float(self.stamps_ns[-1] - self.stamps_ns[0]) / 1e9
