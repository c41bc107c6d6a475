"""Trajectory files of the TUM RGB-D benchmark: stamp, position, quaternion a line."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from osmabench_ros.base.limits.allowance import allowance
from osmabench_ros.base.limits.reading import read_bytes
from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory

_HEADER = '# timestamp tx ty tz qx qy qz qw\n'
_MAX_SHOWN = 100
_MOST_SECONDS = 2**63 // 10**9


def read_tum(path: Path) -> StampedTrajectory:
    """Read a trajectory: ``stamp tx ty tz qx qy qz qw``, seconds and metres; # comments.

    Stamps are read as decimals, because a double loses nanoseconds of the time of day. Raises
    SequenceError, which names the line, if the file cannot be read or a line is malformed.
    """
    data = read_bytes(path, SequenceError, allowance().document_bytes(), 'document_mib')
    try:
        lines = data.decode('utf-8-sig').splitlines()
    except UnicodeDecodeError as error:
        raise SequenceError(
            f'{path} is no text; a trajectory is a TUM file, or BAG:TOPIC'
        ) from error
    stamps: list[int] = []
    numbers: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        words = line.replace(',', ' ').split()
        if not words or words[0].startswith('#'):
            continue
        try:
            if len(words) != 8:
                raise ValueError(f'{len(words)} columns')
            stamp_s = Decimal(words[0])
            if (
                not -_MOST_SECONDS < stamp_s < _MOST_SECONDS
            ):  # its digits alone could fill the memory
                raise ValueError('the stamp is no time')
            stamps.append(int((stamp_s * 10**9).to_integral_value()))
            numbers.append([float(word) for word in words[1:]])
        except (ValueError, InvalidOperation, OverflowError) as error:
            raise SequenceError(
                f'{path}, line {number}: {str(error)[:_MAX_SHOWN]}; '
                'expected 8 numbers: stamp tx ty tz qx qy qz qw'
            ) from error
    table = np.array(numbers).reshape(-1, 7)
    try:
        return StampedTrajectory.from_quaternions(stamps, table[:, :3], table[:, 3:])
    except ValueError as error:
        raise SequenceError(f'{path}: {error}') from error


def tum_text(trajectory: StampedTrajectory) -> str:
    """Return the content of a TUM file; stamps keep their nanoseconds."""
    turns = Rotation.from_matrix(trajectory.rotations).as_quat(canonical=True)
    lines = [_HEADER]
    for stamp, place, turn in zip(
        trajectory.stamps_ns.tolist(), trajectory.positions, turns, strict=True
    ):
        seconds = f'{stamp // 10**9}.{stamp % 10**9:09d}'
        lines.append(' '.join([seconds, *(f'{value:.9g}' for value in (*place, *turn))]) + '\n')
    return ''.join(lines)
