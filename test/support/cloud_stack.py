"""A mapping stack that knows nothing of this package: it publishes a growing labelled cloud.

Its first argument, if any, says how slow it is: `sleep:S` for each frame.
"""

import sys
import time

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField

HOW, _, SECONDS = sys.argv[1].partition(':') if len(sys.argv) > 1 else ('', '', '0')
SLOW_S = float(SECONDS) if HOW == 'sleep' else 0.0
RECORD = np.dtype([('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('label', '<u2')])


class CloudStack(Node):
    def __init__(self) -> None:
        super().__init__('cloud_stack')
        self.parts: dict[int, dict[str, object]] = {}
        self.clouds: list[np.ndarray] = []
        self.publisher = self.create_publisher(PointCloud2, '/stack/cloud_map', 1)
        for name, kind, topic in (
            ('depth', Image, 'camera/depth/image_rect'),
            ('semantic', Image, 'camera/semantic/image_raw'),
            ('info', CameraInfo, 'camera/depth/camera_info'),
            ('pose', PoseStamped, 'ground_truth/camera_pose'),
        ):
            self.create_subscription(
                kind, topic, lambda message, name=name: self.take(name, message), 100
            )

    def take(self, name: str, message: object) -> None:
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        parts = self.parts.setdefault(stamp, {})
        parts[name] = message
        if len(parts) == 4:
            del self.parts[stamp]
            self.clouds.append(cloud(**parts))
            time.sleep(SLOW_S)
            self.publish(parts['depth'].header)

    def publish(self, header: object) -> None:
        records = np.concatenate(self.clouds)
        message = PointCloud2(
            height=1, width=len(records), is_dense=True,
            point_step=RECORD.itemsize, row_step=RECORD.itemsize * len(records),
        )  # fmt: skip
        message.header.stamp, message.header.frame_id = header.stamp, 'world'
        kinds = [PointField.FLOAT32] * 3 + [PointField.UINT16]
        message.fields = [
            PointField(name=name, offset=RECORD.fields[name][1], datatype=kind, count=1)
            for name, kind in zip(RECORD.names, kinds, strict=True)
        ]
        message.data.frombytes(records.tobytes())
        self.publisher.publish(message)


def cloud(depth: Image, semantic: Image, info: CameraInfo, pose: PoseStamped) -> np.ndarray:
    z = np.frombuffer(depth.data, np.float32).reshape(depth.height, depth.width)
    labels = np.frombuffer(semantic.data, np.uint16).reshape(z.shape)
    v, u = np.nonzero(np.isfinite(z))
    k, z = info.k, z[v, u]
    camera = np.stack([(u - k[2]) * z / k[0], (v - k[5]) * z / k[4], z], axis=1)
    turn, place = pose.pose.orientation, pose.pose.position
    rotation = Rotation.from_quat([turn.x, turn.y, turn.z, turn.w])
    records = np.zeros(len(z), RECORD)
    world = rotation.apply(camera) + np.array([place.x, place.y, place.z])
    records['x'], records['y'], records['z'] = world.T
    records['label'] = labels[v, u]
    return records[::3]


rclpy.init()
rclpy.spin(CloudStack())
