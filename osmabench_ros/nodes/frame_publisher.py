"""Publishes everything that belongs to one frame, with one identical stamp, and its transforms."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from geometry_msgs.msg import Point, PoseStamped, TransformStamped, Vector3
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import ColorRGBA

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.live_method import ARROW, MapOrigin, TfMode, way_up
from osmabench_ros.msg import Light as LightMessage
from osmabench_ros.msg import LightingState
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages.images import (
    FRAME_IMAGES,
    camera_info_message,
    image_to_message,
)
from osmabench_ros.ros.messages.poses import pose_message, stamp_to_message, transform_message
from osmabench_ros.ros.node.settings import TfSettings
from osmabench_ros.scenes.scene import Light, Lighting, LightKind

# Own transforms that are recognised when they come back, and frames of others.
REMEMBERED = 4096

_Key = tuple[object, ...]


class TransformAuthority:
    """Remembers which transforms are ours; another parent of our frame contests our edge."""

    def __init__(self) -> None:
        self._moving: dict[_Key, None] = {}
        self._fixed: set[_Key] = set()
        self._parents: dict[str, str] = {}
        self._of_others: dict[str, str] = {}

    def claim(self, transforms: Iterable[TransformStamped], *, fixed: bool) -> None:
        """Remember transforms that are about to be published; static ones for good."""
        for transform in transforms:
            if fixed:
                self._fixed.add(_key(transform))
            else:
                self._moving[_key(transform)] = None
            if len(self._moving) > REMEMBERED:
                del self._moving[next(iter(self._moving))]
            self._parents[_name(transform.child_frame_id)] = _name(transform.header.frame_id)

    def contested(
        self, transforms: Iterable[TransformStamped]
    ) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """Return our edge and the other one, (parent, child), of the first conflict."""
        for transform in transforms:
            if (key := _key(transform)) in self._moving or key in self._fixed:
                continue
            parent = _name(transform.header.frame_id)
            child = _name(transform.child_frame_id)
            if len(self._of_others) < REMEMBERED:
                self._of_others[child] = parent
            if child in self._parents:
                return (self._parents[child], child), (parent, child)
        return None

    def way_of_others(self, child: str) -> list[str]:
        """Return the known edges of others from their root to a frame."""
        try:
            way = way_up(child, self._of_others)
        except ValueError:  # they form a circle
            way = [child, self._of_others[child]]
        return [ARROW.join(edge) for edge in zip(way[:0:-1], way[-2::-1], strict=True)]


def _name(frame_id: str) -> str:
    # tf2 ignores a leading slash as well.
    return frame_id.lstrip('/')


def _key(transform: TransformStamped) -> _Key:
    stamp, pose = transform.header.stamp, transform.transform
    places = (getattr(pose.translation, axis) for axis in 'xyz')
    turns = (getattr(pose.rotation, axis) for axis in 'xyzw')
    frames = _name(transform.header.frame_id), _name(transform.child_frame_id)
    return (*frames, stamp.sec, stamp.nanosec, *places, *turns)


try:
    from tf2_msgs.msg import TFMessage
    from tf2_ros import StaticTransformBroadcaster, TransformBroadcaster

    TF_AVAILABLE = True
except ImportError:
    TF_AVAILABLE = False


class GroundTruthTransforms:
    """Broadcasts the edges of which the bridge is the authority, and detects conflicts."""

    def __init__(
        self, node: Node, base_to_camera: Pose, settings: TfSettings | None = None
    ) -> None:
        self._node = node
        self._settings = settings or TfSettings()
        self._child = self._settings.below_world
        self._enabled = TF_AVAILABLE and self._settings.publish_tf is not TfMode.NONE
        if not self._enabled:
            return
        self._authority = TransformAuthority()
        self._dynamic = TransformBroadcaster(node)
        self._static = StaticTransformBroadcaster(node)
        link_in_base = base_to_camera @ OPTICAL_IN_LINK.inverse()
        camera = (
            _stamp_transform(0, topics.BASE_FRAME, topics.CAMERA_LINK_FRAME, link_in_base),
            _stamp_transform(0, topics.CAMERA_LINK_FRAME, topics.CAMERA_FRAME, OPTICAL_IN_LINK),
        )
        ours = self._settings.of_camera
        self._fixed = [edge for edge in camera if edge.child_frame_id in ours]
        self._map_is_placed = self._child in ('', topics.BASE_FRAME)
        self._send_fixed()
        for topic in (topics.TF, topics.TF_STATIC):
            qos.create_checked_subscription(
                node,
                TFMessage,
                topic,
                partial(self._check_authority, topic),
                qos.tf_profile(static=topic == topics.TF_STATIC),
            )

    def send(self, stamp_ns: int, base_pose: Pose) -> None:
        """Broadcast our edges for a pose of base_link in the world."""
        if not self._enabled:
            return
        if self._child == topics.BASE_FRAME:
            transform = _stamp_transform(
                stamp_ns, topics.WORLD_FRAME, topics.BASE_FRAME, base_pose
            )
            self._authority.claim([transform], fixed=False)
            self._dynamic.sendTransform(transform)
        elif not self._map_is_placed:
            self._place_map(base_pose)

    def _place_map(self, first_pose: Pose) -> None:
        at_start = self._settings.map_origin is MapOrigin.FIRST_POSE
        pose = first_pose if at_start else Pose.identity()
        self._fixed.append(_stamp_transform(0, topics.WORLD_FRAME, self._child, pose))
        self._map_is_placed = True
        self._send_fixed()

    def _send_fixed(self) -> None:
        self._authority.claim(self._fixed, fixed=True)
        self._static.sendTransform(self._fixed)

    def _check_authority(self, topic: str, message: TFMessage) -> None:
        conflict = self._authority.contested(message.transforms)
        if conflict is None:
            return
        own, other = conflict
        us = self._node.get_name()
        publishers = self._node.get_publishers_info_by_topic(topic)
        others = sorted({item.node_name for item in publishers} - {us})
        names = ' or '.join(f'"{name}"' for name in others) or 'a node that has left'
        edges = self._authority.way_of_others(own[1])
        raise ContractError(
            f'topic "{topic}": the edge {" → ".join(own)} of "{us}" is contested by '
            f'{" → ".join(other)} of {names}; an edge has one authority. Say which edges '
            'the stack publishes, under its mapper in the configuration or in its file: '
            f'"transforms: [{", ".join(edges)}]" (launch files: '
            f"transforms:='{','.join(edges)}'), or stop the other publisher"
        )


def _stamp_transform(stamp_ns: int, parent: str, child: str, pose: Pose) -> TransformStamped:
    message = TransformStamped(child_frame_id=child, transform=transform_message(pose))
    message.header.stamp = stamp_to_message(stamp_ns)
    message.header.frame_id = parent
    return message


def _light_to_message(light: Light) -> LightMessage:
    red, green, blue = light.color
    return LightMessage(
        kind=getattr(LightMessage, f'KIND_{light.kind.name}'),
        name=light.name,
        position=Point(**dict(zip('xyz', light.position, strict=True))),
        direction=Vector3(**dict(zip('xyz', light.direction, strict=True))),
        color=ColorRGBA(r=red, g=green, b=blue, a=1.0),
        intensity=light.intensity,
        spot_half_angle=light.spot_half_angle_rad if light.kind is LightKind.SPOT else 0.0,
        attached_to_camera=light.attached_to_camera,
    )


def lighting_to_message(lighting: Lighting, condition: str, path_segment: int) -> LightingState:
    """Return the lighting message of a goal segment, counted from 0, without header."""
    return LightingState(
        condition=condition,
        path_segment=path_segment,
        ambient=lighting.ambient,
        exposure=lighting.exposure,
        lights=[_light_to_message(light) for light in lighting.lights],
    )


class FramePublisher:
    """Publishers of the camera, `base_to_camera` in base_link, ground truth, lighting, clock."""

    def __init__(
        self, node: Node, *, lockstep: bool, base_to_camera: Pose, tf: TfSettings | None = None
    ) -> None:
        profile = qos.frame_profile(lockstep=lockstep)
        self._images = {
            topic: node.create_publisher(Image, topic, profile) for topic in FRAME_IMAGES
        }
        self._infos = [
            node.create_publisher(CameraInfo, topic, profile)
            for topic in (topics.COLOR_INFO, topics.DEPTH_INFO)
        ]
        self._pose = node.create_publisher(PoseStamped, topics.CAMERA_POSE, profile)
        self._odometry = node.create_publisher(Odometry, topics.ODOMETRY, profile)
        self._lighting = node.create_publisher(
            LightingState, topics.LIGHTING, qos.latched_profile()
        )
        self._clock = node.create_publisher(Clock, topics.CLOCK, qos.clock_profile())
        self._transforms = GroundTruthTransforms(node, base_to_camera, tf)

    def subscribers(self, topic: str) -> int:
        """Return how many subscribe to an image topic."""
        return int(self._images[topic].get_subscription_count())

    def publish(self, frame: Frame, lighting: LightingState | None = None) -> None:
        """Publish one frame; the clock first, the images last."""
        stamp = stamp_to_message(frame.stamp_ns)
        self._clock.publish(Clock(clock=stamp))
        if lighting is not None:
            lighting.header.stamp = stamp
            lighting.header.frame_id = topics.WORLD_FRAME
            self._lighting.publish(lighting)
        pose = PoseStamped(pose=pose_message(frame.camera_pose))
        pose.header.stamp = stamp
        pose.header.frame_id = topics.WORLD_FRAME
        self._pose.publish(pose)
        if frame.base_pose is not None:
            odometry = Odometry(child_frame_id=topics.BASE_FRAME)
            odometry.header = pose.header
            odometry.pose.pose = pose_message(frame.base_pose)
            self._odometry.publish(odometry)
            self._transforms.send(frame.stamp_ns, frame.base_pose)
        for publisher in self._infos:
            publisher.publish(camera_info_message(frame.intrinsics, stamp, topics.CAMERA_FRAME))
        for topic, (name, encoding, _) in FRAME_IMAGES.items():
            image = getattr(frame, name)
            # Serialising takes milliseconds; for late joiners these topics keep nothing anyway.
            if image is not None and self.subscribers(topic):
                self._images[topic].publish(
                    image_to_message(image, encoding, stamp, topics.CAMERA_FRAME)
                )
