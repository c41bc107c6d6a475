"""The only place that converts between axis conventions.

World and base frames follow REP-103: x forward, y left, z up. Optical frames: x right, y down,
z forward. Habitat (and glTF): x right, y up, -z forward.
"""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose

# Rotation that takes Habitat's y-up coordinates to z-up: (x, y, z) -> (x, -z, y).
WORLD_FROM_HABITAT: NDArray[np.float64] = np.array(
    [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
)

# Rotation that takes optical coordinates to coordinates of camera_link (REP-103).
LINK_FROM_OPTICAL: NDArray[np.float64] = np.array(
    [[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
)

# Pose of a camera's optical frame in its link frame.
OPTICAL_IN_LINK = Pose(LINK_FROM_OPTICAL, np.zeros(3))

# Rotation that takes optical coordinates to an OpenGL or Habitat camera (y up, -z forward).
OPENGL_FROM_OPTICAL: NDArray[np.float64] = np.diag([1.0, -1.0, -1.0])


class World(str, Enum):
    """Axes of the world that a method's files or a recorded sequence are in."""

    Z_UP = 'z_up'
    # y up, -z forward: what OSMa-Bench sequences and HM3D use.
    HABITAT = 'habitat'
    # x right, y down, z forward: the first camera is the origin.
    OPTICAL = 'optical'

    @property
    def rotation(self) -> NDArray[np.float64]:
        """Rotation (3, 3) from these axes to the z-up world."""
        return {
            World.Z_UP: np.eye(3),
            World.HABITAT: WORLD_FROM_HABITAT,
            World.OPTICAL: LINK_FROM_OPTICAL,
        }[self]


def turn_from_habitat(points: NDArray[np.floating]) -> NDArray[np.floating]:
    """Convert points or directions (..., 3) from Habitat's y-up to the z-up world."""
    return np.stack([points[..., 0], -points[..., 2], points[..., 1]], axis=-1)


def turn_to_habitat(points: NDArray[np.floating]) -> NDArray[np.floating]:
    """Convert points or directions (..., 3) from the z-up world to Habitat's y-up."""
    return np.stack([points[..., 0], points[..., 2], -points[..., 1]], axis=-1)


def turn_pose_from_habitat(pose: Pose) -> Pose:
    """Convert the pose of a y-up object in a y-up world to the pose of its z-up copy, z up.

    Both the world and the object's own vertices are expected to be turned by
    `turn_from_habitat`, hence the conjugation.
    """
    rotation = WORLD_FROM_HABITAT @ pose.rotation @ WORLD_FROM_HABITAT.T
    return Pose(rotation, WORLD_FROM_HABITAT @ pose.translation)


def turn_pose_to_habitat(pose: Pose) -> Pose:
    """Undo `turn_pose_from_habitat`."""
    rotation = WORLD_FROM_HABITAT.T @ pose.rotation @ WORLD_FROM_HABITAT
    return Pose(rotation, WORLD_FROM_HABITAT.T @ pose.translation)


def turn_camera_to_habitat(pose: Pose) -> Pose:
    """Convert an optical pose, z up, to a Habitat camera (y up, -z forward) in its world."""
    rotation = WORLD_FROM_HABITAT.T @ pose.rotation @ OPENGL_FROM_OPTICAL
    return Pose(rotation, WORLD_FROM_HABITAT.T @ pose.translation)
