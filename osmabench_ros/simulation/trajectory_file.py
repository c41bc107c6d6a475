"""Trajectories on disk, to be driven again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.simulation.trajectory import CameraMount, Trajectory, TrajectoryFrame

FORMAT = 'osmabench.trajectory/1'


def write_trajectory(trajectory: Trajectory, path: Path) -> None:
    """Write the frames of a trajectory as JSON; the same trajectory gives the same bytes."""
    data = {
        'format': FORMAT,
        'frame_rate_hz': trajectory.frame_rate_hz,
        'mount': {
            'height_m': trajectory.mount.height_m,
            'pitch_rad': trajectory.mount.pitch_rad,
        },
        'frames': [_frame_to_json(frame) for frame in trajectory.frames],
    }
    temporary = path.with_name(f'.{path.name}.partial')
    temporary.write_text(json.dumps(data, indent=1, allow_nan=False) + '\n', encoding='utf-8')
    os.replace(temporary, path)


def read_trajectory(path: Path) -> Trajectory:
    """Read what `write_trajectory` wrote.

    Raises
    ------
    SimulationError
        If the file is missing or broken, or a pose holds NaN; names the file and the frame.
    """
    try:
        data = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise SimulationError(f'cannot read trajectory {path}: {error}') from error
    if not isinstance(data, dict) or data.get('format') != FORMAT:
        raise SimulationError(f'{path} is no trajectory; its "format" must be "{FORMAT}"')
    try:
        mount = CameraMount(float(data['mount']['height_m']), float(data['mount']['pitch_rad']))
        rate = float(data['frame_rate_hz'])
        items = list(data['frames'])
    except (KeyError, TypeError, ValueError) as error:
        raise SimulationError(f'trajectory {path} is malformed: {error!r}') from error
    frames = [_frame_from_json(item, f'{path}: frame {i}') for i, item in enumerate(items)]
    return _checked(frames, rate, mount, str(path))


def recorded_trajectory(
    camera_poses: Sequence[Pose],
    times_s: Sequence[float],
    mount: CameraMount,
    source: str = 'recorded trajectory',
) -> Trajectory:
    """Make a trajectory of recorded optical poses, e.g. those of a sequence.

    It is one goal segment; the frame rate is the median one.

    Raises
    ------
    SimulationError
        If there is no pose, the numbers differ, or times do not grow.
    """
    if len(camera_poses) != len(times_s):
        raise SimulationError(f'{source}: {len(camera_poses)} poses but {len(times_s)} times')
    duration = (times_s[-1] - times_s[0]) if len(times_s) else 0.0
    from_camera = mount.base_to_camera.inverse()
    frames = [
        TrajectoryFrame(
            float(time_s - times_s[0]),
            pose @ from_camera,
            pose,
            0,
            float((time_s - times_s[0]) / duration) if duration > 0 else 0.0,
        )
        for pose, time_s in zip(camera_poses, times_s, strict=True)
    ]
    rate = 1.0 / float(np.median(np.diff(times_s))) if duration > 0 else 1.0
    return _checked(frames, rate, mount, source)


def _checked(
    frames: Sequence[TrajectoryFrame], rate_hz: float, mount: CameraMount, source: str
) -> Trajectory:
    times = np.array([frame.time_s for frame in frames])
    if not len(frames) or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise SimulationError(f'{source}: a trajectory needs frames whose times grow')
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise SimulationError(f'{source}: the frame rate must be positive, not {rate_hz}')
    return Trajectory(tuple(frames), rate_hz, mount)


def _frame_to_json(frame: TrajectoryFrame) -> dict[str, Any]:
    return {
        'time_s': frame.time_s,
        'segment': frame.segment,
        'segment_progress': frame.segment_progress,
        'base_pose': frame.base_pose.matrix.tolist(),
        'camera_pose': frame.camera_pose.matrix.tolist(),
    }


def _frame_from_json(item: Mapping[str, Any], where: str) -> TrajectoryFrame:
    try:
        return TrajectoryFrame(
            float(item['time_s']),
            Pose.from_matrix(item['base_pose']),
            Pose.from_matrix(item['camera_pose']),
            int(item['segment']),
            float(item['segment_progress']),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SimulationError(f'{where}: {error}') from error
