"""TF, where tf2_ros is installed; without it, poses travel on topics alone."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.transform_edges import MapOrigin, TfMode
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.poses import transform_message
from osmabench_ros.ros.qos import tf_profile
from osmabench_ros.ros.stamps import stamp_to_message
from osmabench_ros.ros.topics import (
    BASE_FRAME,
    CAMERA_FRAME,
    CAMERA_LINK_FRAME,
    TF,
    TF_STATIC,
    WORLD_FRAME,
)
from osmabench_ros.ros.transform_authority import TransformAuthority
from osmabench_ros.ros.transform_settings import TfSettings

try:
    from tf2_msgs.msg import TFMessage
    from tf2_ros import StaticTransformBroadcaster, TransformBroadcaster

    AVAILABLE = True
except ImportError:
    AVAILABLE = False


TF_PARAMETERS = (
    ParameterSpec(
        'transforms',
        [''],
        'Edges that a stack publishes on TF itself, such as "map->odom" and "odom->base_link".',
    ),
    ParameterSpec(
        'publish_tf',
        TfMode.AUTO.value,
        'Edge from the world to publish on TF; auto: the one that transforms leave free; none '
        'leaves out the camera too.',
        choices=[item.value for item in TfMode],
    ),
    ParameterSpec(
        'map_origin',
        MapOrigin.FIRST_POSE.value,
        'Where a stack that localises itself puts the origin of its map.',
        choices=[item.value for item in MapOrigin],
    ),
)


class GroundTruthTransforms:
    """Broadcasts the edges that the bridge is the authority of, and watches over them.

    `base_to_camera` is the pose of the optical frame in base_link.
    """

    def __init__(
        self, node: Node, base_to_camera: Pose, settings: TfSettings | None = None
    ) -> None:
        self._node = node
        self._settings = settings or TfSettings()
        self._child = self._settings.below_world
        self._enabled = AVAILABLE and self._settings.mode is not TfMode.NONE
        if not self._enabled:
            return
        self._authority = TransformAuthority()
        self._dynamic = TransformBroadcaster(node)
        self._static = StaticTransformBroadcaster(node)
        link_in_base = base_to_camera @ optical_pose_in_link().inverse()
        camera = (
            _stamped(0, BASE_FRAME, CAMERA_LINK_FRAME, link_in_base),
            _stamped(0, CAMERA_LINK_FRAME, CAMERA_FRAME, optical_pose_in_link()),
        )
        ours = self._settings.of_camera
        self._fixed = [edge for edge in camera if edge.child_frame_id in ours]
        self._map_is_placed = self._child in ('', BASE_FRAME)
        self._send_fixed()
        for topic in (TF, TF_STATIC):
            create_checked_subscription(
                node, TFMessage, topic, self._watcher(topic), tf_profile(static=topic == TF_STATIC)
            )

    def send(self, stamp_ns: int, base_pose: Pose) -> None:
        """Broadcast what base_link in the world at a stamp means for our edges."""
        if not self._enabled:
            return
        if self._child == BASE_FRAME:
            transform = _stamped(stamp_ns, WORLD_FRAME, BASE_FRAME, base_pose)
            self._authority.claim([transform], fixed=False)
            self._dynamic.sendTransform(transform)
        elif not self._map_is_placed:
            self._place_map(base_pose)

    def _place_map(self, first_pose: Pose) -> None:
        at_start = self._settings.map_origin is MapOrigin.FIRST_POSE
        pose = first_pose if at_start else Pose.identity()
        self._fixed.append(_stamped(0, WORLD_FRAME, self._child, pose))
        self._map_is_placed = True
        self._send_fixed()

    def _send_fixed(self) -> None:
        self._authority.claim(self._fixed, fixed=True)
        self._static.sendTransform(self._fixed)

    def _watcher(self, topic: str) -> Any:
        def on_transforms(message: TFMessage) -> None:
            conflict = self._authority.contested(message.transforms)
            if conflict is not None:
                raise ContractError(self._describe(topic, *conflict))

        return on_transforms

    def _describe(self, topic: str, own: tuple[str, str], foreign: tuple[str, str]) -> str:
        us = self._node.get_name()
        publishers = self._node.get_publishers_info_by_topic(topic)
        others = sorted({item.node_name for item in publishers} - {us})
        names = ' or '.join(f'"{name}"' for name in others) or 'a node that has left'
        edges = self._authority.way_of_others(own[1])
        return (
            f'topic "{topic}": the edge {" → ".join(own)} of "{us}" is contested by '
            f'{" → ".join(foreign)} of {names}; an edge has one authority. Say which edges are '
            f'those of the stack, under its mapper in the configuration or in its file: '
            f'"transforms: [{", ".join(edges)}]" (launch files: '
            f"transforms:='{','.join(edges)}'), or stop the other publisher"
        )


def _stamped(stamp_ns: int, parent: str, child: str, pose: Pose) -> TransformStamped:
    message = TransformStamped(child_frame_id=child, transform=transform_message(pose))
    message.header.stamp = stamp_to_message(stamp_ns)
    message.header.frame_id = parent
    return message
