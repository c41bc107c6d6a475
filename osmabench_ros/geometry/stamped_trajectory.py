"""A trajectory as arrays: stamps, positions, orientations."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.base.documents import document_limit
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import SequenceError, errors_as
from osmabench_ros.geometry.pose import Pose, Similarity


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
        cls, stamps_ns: ArrayLike, positions: ArrayLike, xyzw: ArrayLike
    ) -> StampedTrajectory:
        """Build from quaternions (N, 4), of about unit length or ValueError, in any time order."""
        from scipy.spatial.transform import Rotation

        stamps = np.asarray(stamps_ns, np.int64)
        turns = np.asarray(xyzw, np.float64).reshape(-1, 4)
        norms = np.linalg.norm(turns, axis=1)
        if not (np.abs(norms - 1) <= 1e-2).all():  # NaN fails too
            worst = int(np.argmax(~(np.abs(norms - 1) <= 1e-2)))
            raise ValueError(f'pose {worst}: the quaternion {turns[worst]} has not length 1')
        order = np.argsort(stamps, kind='stable')
        matrices = Rotation.from_quat(turns[order]).as_matrix() if len(turns) else turns
        places = np.asarray(positions, np.float64).reshape(-1, 3)[order]
        return cls(stamps[order], places, matrices.reshape(-1, 3, 3))

    @classmethod
    def from_poses(
        cls, stamped: Iterable[tuple[int, Pose]], frame_id: str = '', child_frame_id: str = ''
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
        names = 'stamps_ns', 'positions', 'rotations'
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def transform(self, by: Similarity) -> StampedTrajectory:
        """Return the trajectory in another fixed frame, scaled if the similarity scales."""
        positions, rotations = by.transform(self.positions), by.pose.rotation @ self.rotations
        return replace(self, positions=positions, rotations=rotations)

    def pose(self, row: int) -> Pose:
        """Return one pose."""
        return Pose(self.rotations[row], self.positions[row])

    @property
    def path_length_m(self) -> float:
        """Length of the polygon through the positions."""
        return float(np.linalg.norm(np.diff(self.positions, axis=0), axis=1).sum())


_HEADER = '# timestamp tx ty tz qx qy qz qw\n'
_MAX_STAMP_S = 2**63 // 10**9


def read_tum(path: Path) -> StampedTrajectory:
    """Read a trajectory: ``stamp tx ty tz qx qy qz qw``, seconds and metres; # comments.

    Raises SequenceError, which names the file, if it cannot be read or a row is malformed.
    """
    data = read_bytes(path, SequenceError, document_limit())
    what = f'{path} is not a trajectory (a TUM file of 8 numbers per line, or BAG:TOPIC)'
    with errors_as(SequenceError, what, ValueError), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of no lines and of overflows, which are errors below
        lines = data.decode('utf-8-sig').replace(',', ' ').splitlines()
        # A double loses nanoseconds of the time of day; 64 bits keep them until the year 2116.
        table = np.loadtxt(lines, np.longdouble, ndmin=2)
        if table.size and table.shape[1] != 8:
            raise ValueError(f'it has {table.shape[1]} columns')
        table = table.reshape(-1, 8)
        if not (np.abs(table[:, 0]) < _MAX_STAMP_S).all():
            raise ValueError('a stamp is not a time')
        stamps = np.rint(table[:, 0] * 10**9).astype(np.int64)
        poses = table[:, 1:].astype(float)
        return StampedTrajectory.from_quaternions(stamps, poses[:, :3], poses[:, 3:])


def format_stamp(stamp_ns: int) -> str:
    """Return a stamp as decimal seconds, without loss."""
    return f'{stamp_ns // 10**9}.{stamp_ns % 10**9:09d}'


def format_tum(trajectory: StampedTrajectory) -> str:
    """Return the content of a TUM file; stamps keep their nanoseconds."""
    from scipy.spatial.transform import Rotation

    turns = Rotation.from_matrix(trajectory.rotations).as_quat(canonical=True)
    rows = zip(trajectory.stamps_ns.tolist(), trajectory.positions, turns, strict=True)
    lines = (
        ' '.join([format_stamp(stamp), *(f'{value:.9g}' for value in (*place, *turn))])
        for stamp, place, turn in rows
    )
    return _HEADER + ''.join(f'{line}\n' for line in lines)
