"""A stack that knows nothing of this package and localises itself: map → odom → base_link.

Its map begins where the robot does. What it knows of its camera it reads from /tf_static.
"""

import numpy as np
import rclpy
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
from tf2_msgs.msg import TFMessage

RECORD = np.dtype([('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('label', '<u2')])
MAP_TO_ODOM = np.array([[0, -1, 0, 0.5], [1, 0, 0, -0.25], [0, 0, 1, 0], [0, 0, 0, 1.0]])
"""What its loop closures say, once and for all."""

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class LocalisingStack(Node):
    def __init__(self) -> None:
        super().__init__('localising_stack')
        self.parts: dict[int, dict[str, object]] = {}
        self.clouds: list[np.ndarray] = []
        self.edges: dict[str, tuple[str, np.ndarray]] = {}
        self.start: np.ndarray | None = None
        self.maps = self.create_publisher(PointCloud2, '/slam/cloud_map', 1)
        self.tf = self.create_publisher(TFMessage, '/tf', 10)
        self.create_subscription(TFMessage, '/tf_static', self.learn, LATCHED)
        for name, kind, topic in (
            ('depth', Image, 'camera/depth/image_rect'),
            ('semantic', Image, 'camera/semantic/image_raw'),
            ('info', CameraInfo, 'camera/depth/camera_info'),
            ('odometry', Odometry, 'ground_truth/odometry'),
        ):
            self.create_subscription(
                kind, topic, lambda message, name=name: self.take(name, message), 10
            )

    def learn(self, message: TFMessage) -> None:
        for edge in message.transforms:
            pose = matrix(edge.transform.translation, edge.transform.rotation)
            self.edges[edge.child_frame_id] = (edge.header.frame_id, pose)
        self.work()

    def take(self, name: str, message: object) -> None:
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        self.parts.setdefault(stamp, {})[name] = message
        self.work()

    def work(self) -> None:
        """Map what is complete, in the order of the stamps."""
        while self.parts and {'camera_link', 'camera_color_optical_frame'} <= self.edges.keys():
            stamp = min(self.parts)
            if len(self.parts[stamp]) < 4:
                return
            self.map(**self.parts.pop(stamp))

    def map(self, depth: Image, semantic: Image, info: CameraInfo, odometry: Odometry) -> None:
        pose = odometry.pose.pose
        base = matrix(pose.position, pose.orientation)
        self.start = base if self.start is None else self.start
        in_map = np.linalg.inv(self.start) @ base
        frame, in_base = depth.header.frame_id, np.eye(4)
        while frame != 'base_link':
            frame, step = self.edges[frame]
            in_base = step @ in_base
        self.clouds.append(cloud(depth, semantic, info, in_map @ in_base))
        self.tf.publish(
            TFMessage(
                transforms=[
                    transform(depth.header.stamp, 'map', 'odom', MAP_TO_ODOM),
                    transform(
                        depth.header.stamp, 'odom', 'base_link',
                        np.linalg.inv(MAP_TO_ODOM) @ in_map,
                    ),
                ]
            )
        )  # fmt: skip
        self.publish(depth.header.stamp)

    def publish(self, stamp: object) -> None:
        records = np.concatenate(self.clouds)
        message = PointCloud2(
            height=1, width=len(records), is_dense=True,
            point_step=RECORD.itemsize, row_step=RECORD.itemsize * len(records),
        )  # fmt: skip
        message.header.stamp, message.header.frame_id = stamp, 'map'
        kinds = [PointField.FLOAT32] * 3 + [PointField.UINT16]
        message.fields = [
            PointField(name=name, offset=RECORD.fields[name][1], datatype=kind, count=1)
            for name, kind in zip(RECORD.names, kinds, strict=True)
        ]
        message.data.frombytes(records.tobytes())
        self.maps.publish(message)


def matrix(place: object, turn: object) -> np.ndarray:
    made = np.eye(4)
    made[:3, :3] = Rotation.from_quat([turn.x, turn.y, turn.z, turn.w]).as_matrix()
    made[:3, 3] = place.x, place.y, place.z
    return made


def transform(stamp: object, parent: str, child: str, pose: np.ndarray) -> TransformStamped:
    message = TransformStamped(child_frame_id=child)
    message.header.stamp, message.header.frame_id = stamp, parent
    place, turn = message.transform.translation, message.transform.rotation
    place.x, place.y, place.z = pose[:3, 3]
    turn.x, turn.y, turn.z, turn.w = Rotation.from_matrix(pose[:3, :3]).as_quat()
    return message


def cloud(depth: Image, semantic: Image, info: CameraInfo, camera: np.ndarray) -> np.ndarray:
    z = np.frombuffer(depth.data, np.float32).reshape(depth.height, depth.width)
    labels = np.frombuffer(semantic.data, np.uint16).reshape(z.shape)
    v, u = np.nonzero(np.isfinite(z))
    k, z = info.k, z[v, u]
    seen = np.stack([(u - k[2]) * z / k[0], (v - k[5]) * z / k[4], z], axis=1)
    records = np.zeros(len(z), RECORD)
    records['x'], records['y'], records['z'] = (seen @ camera[:3, :3].T + camera[:3, 3]).T
    records['label'] = labels[v, u]
    return records[::3]


rclpy.init()
rclpy.spin(LocalisingStack())
