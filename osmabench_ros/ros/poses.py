"""Poses to messages and back."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point, Quaternion, Transform, Vector3
from geometry_msgs.msg import Pose as PoseMessage
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences.pose_topics import pose_of as pose_from_message

__all__ = [
    'point_message',
    'pose_from_message',
    'pose_message',
    'quaternion_message',
    'transform_message',
    'vector_message',
]

try:
    from tf_transformations import quaternion_from_matrix as _quaternion_from_matrix
except ImportError:
    from transforms3d.quaternions import mat2quat

    def _quaternion_from_matrix(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Do what tf_transformations does through the same library."""
        w, x, y, z = mat2quat(matrix[:3, :3])
        return np.array([x, y, z, w])


def quaternion_message(pose: Pose) -> Quaternion:
    """Return the rotation of a pose."""
    x, y, z, w = (float(value) for value in _quaternion_from_matrix(pose.matrix))
    return Quaternion(x=x, y=y, z=z, w=w)


def point_message(point: NDArray[np.floating]) -> Point:
    """Return a Point of three metres."""
    return Point(x=float(point[0]), y=float(point[1]), z=float(point[2]))


def vector_message(vector: NDArray[np.floating]) -> Vector3:
    """Return a Vector3."""
    return Vector3(x=float(vector[0]), y=float(vector[1]), z=float(vector[2]))


def pose_message(pose: Pose) -> PoseMessage:
    """Return a geometry_msgs Pose."""
    return PoseMessage(
        position=point_message(pose.translation), orientation=quaternion_message(pose)
    )


def transform_message(pose: Pose) -> Transform:
    """Return a geometry_msgs Transform."""
    return Transform(
        translation=vector_message(pose.translation), rotation=quaternion_message(pose)
    )
