"""TF, where tf2_ros is installed; without it, poses travel on topics alone."""

from __future__ import annotations

from rclpy.node import Node

from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.ros.poses import transform_message
from osmabench_ros.ros.stamps import stamp_to_message
from osmabench_ros.ros.topics import BASE_FRAME, CAMERA_FRAME, CAMERA_LINK_FRAME, WORLD_FRAME

try:
    from geometry_msgs.msg import TransformStamped
    from tf2_ros import StaticTransformBroadcaster, TransformBroadcaster

    AVAILABLE = True
except ImportError:
    AVAILABLE = False


class GroundTruthTransforms:
    """Broadcasts world → base_link and the fixed edges from base_link to the optical frame.

    Parameters
    ----------
    node : Node
        Owner of the broadcasters.
    base_to_camera : Pose
        Optical frame in base_link.
    """

    def __init__(self, node: Node, base_to_camera: Pose) -> None:
        self._dynamic = None
        if not AVAILABLE:
            return
        link_in_base = base_to_camera @ optical_pose_in_link().inverse()
        self._dynamic = TransformBroadcaster(node)
        self._static = StaticTransformBroadcaster(node)
        self._static.sendTransform(
            [
                _stamped(0, BASE_FRAME, CAMERA_LINK_FRAME, link_in_base),
                _stamped(0, CAMERA_LINK_FRAME, CAMERA_FRAME, optical_pose_in_link()),
            ]
        )

    def send(self, stamp_ns: int, base_pose: Pose) -> None:
        """Broadcast base_link in the world at a stamp."""
        if self._dynamic is not None:
            self._dynamic.sendTransform(_stamped(stamp_ns, WORLD_FRAME, BASE_FRAME, base_pose))


def _stamped(stamp_ns: int, parent: str, child: str, pose: Pose) -> TransformStamped:
    message = TransformStamped(child_frame_id=child, transform=transform_message(pose))
    message.header.stamp = stamp_to_message(stamp_ns)
    message.header.frame_id = parent
    return message
