"""TF, where tf2_ros is installed; without it, poses travel on topics alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.pose import Pose
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

try:
    from tf2_msgs.msg import TFMessage
    from tf2_ros import StaticTransformBroadcaster, TransformBroadcaster

    AVAILABLE = True
except ImportError:
    AVAILABLE = False


class TfMode(str, Enum):
    """Which edge the bridge is the authority of, besides those from base_link to the camera.

    With a stack that owns map → odom → base_link, world → base_link would give base_link a second
    parent.
    """

    WORLD_TO_BASE = 'world_to_base'
    WORLD_TO_MAP = 'world_to_map'
    NONE = 'none'


class MapOrigin(str, Enum):
    """Where a stack puts its map: where the robot starts, or at our world."""

    FIRST_POSE = 'first_pose'
    WORLD = 'world'


@dataclass(frozen=True)
class TfSettings:
    """What of the TF tree the bridge publishes.

    Parameters
    ----------
    mode : TfMode
        Which edge from the world.
    map_origin : MapOrigin
        For WORLD_TO_MAP.
    map_frame : str
        For WORLD_TO_MAP: the root of the stack's tree.
    """

    mode: TfMode = TfMode.WORLD_TO_BASE
    map_origin: MapOrigin = MapOrigin.FIRST_POSE
    map_frame: str = 'map'

    @classmethod
    def from_parameters(cls, values: Mapping[str, Any]) -> TfSettings:
        """Read the values of `TF_PARAMETERS`."""
        return cls(
            TfMode(values['publish_tf']), MapOrigin(values['map_origin']), values['map_frame']
        )


TF_PARAMETERS = (
    ParameterSpec(
        'publish_tf',
        TfMode.WORLD_TO_BASE.value,
        'Edge from the world to publish on TF; world_to_map or none with a stack that publishes '
        'base_link; none leaves out the camera too.',
        choices=[item.value for item in TfMode],
    ),
    ParameterSpec(
        'map_origin',
        MapOrigin.FIRST_POSE.value,
        'With world_to_map: where the stack puts the origin of its map.',
        choices=[item.value for item in MapOrigin],
    ),
    ParameterSpec('map_frame', 'map', "With world_to_map: name of the stack's map frame."),
)


class GroundTruthTransforms:
    """Broadcasts the edges that the bridge is the authority of, and watches over them.

    Parameters
    ----------
    node : Node
        Owner of the broadcasters.
    base_to_camera : Pose
        Optical frame in base_link.
    settings : TfSettings
        Which edges.
    """

    def __init__(
        self, node: Node, base_to_camera: Pose, settings: TfSettings | None = None
    ) -> None:
        self._node = node
        self._settings = settings or TfSettings()
        self._enabled = AVAILABLE and self._settings.mode is not TfMode.NONE
        if not self._enabled:
            return
        self._authority = TransformAuthority()
        self._dynamic = TransformBroadcaster(node)
        self._static = StaticTransformBroadcaster(node)
        link_in_base = base_to_camera @ optical_pose_in_link().inverse()
        self._fixed = [
            _stamped(0, BASE_FRAME, CAMERA_LINK_FRAME, link_in_base),
            _stamped(0, CAMERA_LINK_FRAME, CAMERA_FRAME, optical_pose_in_link()),
        ]
        self._map_is_placed = self._settings.mode is not TfMode.WORLD_TO_MAP
        self._send_fixed()
        for topic in (TF, TF_STATIC):
            create_checked_subscription(
                node, TFMessage, topic, self._watcher(topic), tf_profile(static=topic == TF_STATIC)
            )

    def send(self, stamp_ns: int, base_pose: Pose) -> None:
        """Broadcast what base_link in the world at a stamp means for our edges."""
        if not self._enabled:
            return
        if self._settings.mode is TfMode.WORLD_TO_BASE:
            transform = _stamped(stamp_ns, WORLD_FRAME, BASE_FRAME, base_pose)
            self._authority.claim([transform], fixed=False)
            self._dynamic.sendTransform(transform)
        elif not self._map_is_placed:
            self._place_map(base_pose)

    def _place_map(self, first_pose: Pose) -> None:
        at_start = self._settings.map_origin is MapOrigin.FIRST_POSE
        pose = first_pose if at_start else Pose.identity()
        self._fixed.append(_stamped(0, WORLD_FRAME, self._settings.map_frame, pose))
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
        return (
            f'topic "{topic}": the edge {" → ".join(own)} of "{us}" is contested by '
            f'{" → ".join(foreign)} of {names}; an edge has one authority. Set publish_tf to '
            f'{TfMode.WORLD_TO_MAP.value} or {TfMode.NONE.value}, or stop the other publisher'
        )


def _stamped(stamp_ns: int, parent: str, child: str, pose: Pose) -> TransformStamped:
    message = TransformStamped(child_frame_id=child, transform=transform_message(pose))
    message.header.stamp = stamp_to_message(stamp_ns)
    message.header.frame_id = parent
    return message
