"""Publishes everything that belongs to one frame, with one identical stamp."""

from __future__ import annotations

from geometry_msgs.msg import Point, PoseStamped, Vector3
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import ColorRGBA

from osmabench_ros.base import contract as topics
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.msg import Light as LightMessage
from osmabench_ros.msg import LightingState
from osmabench_ros.nodes.simulator_bridge.transforms import GroundTruthTransforms
from osmabench_ros.ros.messages.images import camera_info_message, image_to_message
from osmabench_ros.ros.messages.poses import pose_message, stamp_to_message
from osmabench_ros.ros.node.settings import TfSettings
from osmabench_ros.ros.wire.qos import clock_profile, frame_profile, latched_profile
from osmabench_ros.scenes.lights import Light, Lighting, LightKind

KINDS = {
    LightKind.POINT: LightMessage.KIND_POINT,
    LightKind.DIRECTIONAL: LightMessage.KIND_DIRECTIONAL,
    LightKind.SPOT: LightMessage.KIND_SPOT,
}


def _light_to_message(light: Light) -> LightMessage:
    red, green, blue = light.color
    return LightMessage(
        kind=KINDS[light.kind],
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
        self,
        node: Node,
        *,
        lockstep: bool,
        base_to_camera: Pose,
        tf: TfSettings | None = None,
    ) -> None:
        profile = frame_profile(lockstep=lockstep)
        self._images = {
            topic: node.create_publisher(Image, topic, profile)
            for topic in (
                topics.COLOR,
                topics.DEPTH,
                topics.SEMANTIC,
                topics.INSTANCE,
                topics.ALBEDO,
            )
        }
        self._infos = [
            node.create_publisher(CameraInfo, topic, profile)
            for topic in (topics.COLOR_INFO, topics.DEPTH_INFO)
        ]
        self._pose = node.create_publisher(PoseStamped, topics.CAMERA_POSE, profile)
        self._odometry = node.create_publisher(Odometry, topics.ODOMETRY, profile)
        self._lighting = node.create_publisher(LightingState, topics.LIGHTING, latched_profile())
        self._clock = node.create_publisher(Clock, topics.CLOCK, clock_profile())
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
        self._publish_poses(frame)
        for publisher in self._infos:
            publisher.publish(camera_info_message(frame.intrinsics, stamp, topics.CAMERA_FRAME))
        for topic, image, encoding in (
            (topics.COLOR, frame.color, 'rgb8'),
            (topics.DEPTH, frame.depth_m, '32FC1'),
            (topics.SEMANTIC, frame.semantic, '16UC1'),
            (topics.INSTANCE, frame.instance, '32SC1'),
            (topics.ALBEDO, frame.albedo, 'rgb8'),
        ):
            # Serialising takes milliseconds; for late joiners these topics keep nothing anyway.
            if image is not None and self.subscribers(topic):
                self._images[topic].publish(
                    image_to_message(image, encoding, stamp, topics.CAMERA_FRAME)
                )

    def _publish_poses(self, frame: Frame) -> None:
        pose = PoseStamped(pose=pose_message(frame.camera_pose))
        pose.header.stamp = stamp_to_message(frame.stamp_ns)
        pose.header.frame_id = topics.WORLD_FRAME
        self._pose.publish(pose)
        if frame.base_pose is not None:
            odometry = Odometry(child_frame_id=topics.BASE_FRAME)
            odometry.header = pose.header
            odometry.pose.pose = pose_message(frame.base_pose)
            self._odometry.publish(odometry)
            self._transforms.send(frame.stamp_ns, frame.base_pose)
