"""KISS-ICP as a mapper that finds its own poses: add the suite map_trajectory.

    mappers: [{name: kiss_icp, command: [python3, examples/kiss_icp_odometry.py]}]

Needs `pip install kiss-icp`. Vizzo et al., KISS-ICP: In Defense of Point-to-Point ICP, RA-L 2023.
It was made for the wide scans of a lidar: a camera sees little of a room, so frames should lie
close together.
"""

import numpy as np
from kiss_icp.config import KISSConfig
from kiss_icp.kiss_icp import KissICP

from osmabench_ros.participant import (
    DenseMap,
    MapHeader,
    Participant,
    Provenance,
    SemanticMap,
    StampedTrajectory,
)

RANGE_M = 8.0
VOXEL_M = 0.12
# Every so many-th point is kept for the map; the odometry gets all.
EVERY = 4


class KissIcpMapper:
    """Reads only the first pose, and takes the pose of every frame from the odometry."""

    def __init__(self):
        config = KISSConfig()
        config.data.max_range, config.data.min_range, config.data.deskew = RANGE_M, 0.1, False
        config.mapping.voxel_size = VOXEL_M
        # Of a camera that moves by centimetres from frame to frame, not of a car.
        config.adaptive_threshold.initial_threshold = 0.3
        config.adaptive_threshold.min_motion_th = 0.01
        self.odometry, self.start = KissICP(config), None
        self.stamps, self.poses, self.points = [], [], []

    def integrate(self, frame):
        """Find where the camera is, and keep the points from there."""
        if self.start is None:
            self.start = frame.camera_pose.matrix
        valid = frame.valid & (frame.depth_m < RANGE_M)
        local = frame.intrinsics.back_project(np.where(valid, frame.depth_m, 0.0))[valid]
        local = local.astype(np.float64)
        self.odometry.register_frame(local, np.zeros(len(local)))
        pose = self.start @ self.odometry.last_pose
        self.stamps.append(frame.stamp_ns)
        self.poses.append(pose)
        self.points.append((local[::EVERY] @ pose[:3, :3].T + pose[:3, 3]).astype(np.float32))

    def semantic_map(self, final):
        """Return the points, and the poses that they were seen from."""
        poses = np.array(self.poses)
        trajectory = StampedTrajectory(
            np.array(self.stamps), poses[:, :3, 3], poses[:, :3, :3],
            'world', 'camera_color_optical_frame',
        )  # fmt: skip
        header = MapHeader(Provenance('kiss_icp', frames_used=len(poses)), complete=final)
        dense = DenseMap(np.concatenate(self.points))
        return SemanticMap(header, dense=dense, trajectory=trajectory)


if __name__ == '__main__':
    Participant(KissIcpMapper).spin()
