"""Stamps, poses and transforms to messages and back."""

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Quaternion, Transform, Vector3
from geometry_msgs.msg import Pose as PoseMessage
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences import topics

pose_from_message = topics.pose_of
stamp_from_message = topics.stamp_ns_of
SECOND_NS = 1_000_000_000


def stamp_to_message(stamp_ns: int) -> Time:
    """Return a Time message."""
    seconds, nanoseconds = divmod(stamp_ns, SECOND_NS)
    return Time(sec=seconds, nanosec=nanoseconds)


def duration_to_message(duration_s: float) -> Duration:
    """Return a Duration message of a length in seconds."""
    seconds, nanoseconds = divmod(round(duration_s * SECOND_NS), SECOND_NS)
    return Duration(sec=seconds, nanosec=nanoseconds)


def duration_from_message(message: Duration) -> float:
    """Return seconds."""
    return float(message.sec) + float(message.nanosec) / SECOND_NS


def _quaternion(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x, y, z, w by the method of Bar-Itzhack (2000), w not negative, as ROS tools do."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = matrix[:3, :3]
    lower = [
        [xx - yy - zz, 0, 0, 0],
        [yx + xy, yy - xx - zz, 0, 0],
        [zx + xz, zy + yz, zz - xx - yy, 0],
        [zy - yz, xz - zx, yx - xy, xx + yy + zz],
    ]
    values, vectors = np.linalg.eigh(np.array(lower) / 3.0)
    found = vectors[:, values.argmax()]
    return np.asarray(-found if found[3] < 0 else found)


def quaternion_message(pose: Pose) -> Quaternion:
    """Return the rotation of a pose."""
    x, y, z, w = (float(value) for value in _quaternion(pose.matrix))
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
