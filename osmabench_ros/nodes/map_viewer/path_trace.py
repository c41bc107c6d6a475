"""Travelled path as nav_msgs/Path."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from std_msgs.msg import Header

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.ros.messages.poses import pose_message

MAX_POSES = 20_000
SMALLEST_STEP_M = 0.02


class PathTrace:
    """Collects poses at a minimum distance; halves its resolution when it gets too long."""

    def __init__(
        self, max_poses: int = MAX_POSES, smallest_step_m: float = SMALLEST_STEP_M
    ) -> None:
        self._max_poses = max_poses
        self._step_m = smallest_step_m
        self._poses: list[PoseStamped] = []

    def __len__(self) -> int:
        return len(self._poses)

    def add(self, message: PoseStamped) -> bool:
        """Add a pose; return whether it was kept. Poses that are not finite are dropped."""
        place = _place(message)
        if not np.isfinite(place).all():
            return False
        if self._poses:
            latest = self._poses[-1]
            if message.header.frame_id != latest.header.frame_id:
                self._poses = []
            elif np.linalg.norm(place - _place(latest)) < self._step_m:
                return False
        self._poses.append(message)
        if len(self._poses) > self._max_poses:
            self._poses = self._poses[::2]
            self._step_m *= 2
        return True

    def message(self) -> Path:
        """Return the path in the frame of its poses, with the stamp of the newest."""
        header = self._poses[-1].header if self._poses else Header()
        return Path(header=header, poses=list(self._poses))


def path_message(poses: Iterable[Pose], header: Header) -> Path:
    """Return the path of a trajectory, all with one header."""
    stamped = [PoseStamped(header=header, pose=pose_message(pose)) for pose in poses]
    return Path(header=header, poses=stamped)


def _place(message: PoseStamped) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    position = message.pose.position
    return np.array([position.x, position.y, position.z])
