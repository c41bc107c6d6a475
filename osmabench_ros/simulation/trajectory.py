"""Camera poses along a path at a frame rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.simulation.robot_path import Motion, RobotPath


@dataclass(frozen=True)
class CameraMount:
    """Where the camera sits on the robot: height above base_link, pitch positive downwards."""

    height_m: float = 1.5
    pitch_rad: float = 0.0

    @property
    def base_to_camera(self) -> Pose:
        """Optical frame in base_link."""
        from scipy.spatial.transform import Rotation

        rotation = Rotation.from_euler('y', self.pitch_rad).as_matrix()
        return Pose(rotation, np.array([0.0, 0.0, self.height_m])) @ optical_pose_in_link()


@dataclass(frozen=True, eq=False)
class TrajectoryFrame:
    """One instant: base_link and the optical frame in the world, progress of a segment."""

    time_s: float
    base_pose: Pose
    camera_pose: Pose
    segment: int
    segment_progress: float


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Frames at a constant rate along a path, in order of time."""

    frames: tuple[TrajectoryFrame, ...]
    frame_rate_hz: float
    mount: CameraMount
    path: RobotPath
    motion: Motion

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def camera_poses(self) -> tuple[Pose, ...]:
        """Optical frames in the world."""
        return tuple(frame.camera_pose for frame in self.frames)

    def camera_poses_at(self, times_s: NDArray[np.float64]) -> list[Pose]:
        """Return optical poses at any times, clipped to those of the path."""
        poses, _ = self.path.base_poses_at(times_s, self.motion)
        return [base @ self.mount.base_to_camera for base in poses]


def sample_trajectory(
    path: RobotPath, motion: Motion, frame_rate_hz: float, mount: CameraMount = CameraMount()
) -> Trajectory:
    """Sample a path at a frame rate, so that frame spacing follows from speed and rate."""
    reached = path.times_s(motion)
    count = int(np.floor(reached[-1] * frame_rate_hz + 1e-9)) + 1
    times = np.arange(count) / frame_rate_hz
    poses, legs = path.base_poses_at(times, motion)
    frames = []
    for time_s, base, leg in zip(times, poses, legs, strict=True):
        segment = int(path.segments[leg]) if len(path.segments) else 0
        own = np.flatnonzero(path.segments == segment)
        start, end = (reached[own[0]], reached[own[-1] + 1]) if len(own) else (0.0, 0.0)
        progress = (time_s - start) / (end - start) if end > start else 0.0
        frames.append(
            TrajectoryFrame(
                float(time_s),
                base,
                base @ mount.base_to_camera,
                segment,
                float(np.clip(progress, 0.0, 1.0)),
            )
        )
    return Trajectory(tuple(frames), frame_rate_hz, mount, path, motion)
