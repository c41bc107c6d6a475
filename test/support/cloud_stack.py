"""A mapping stack that knows nothing of this package: it publishes a growing labelled cloud.

Its first argument, if any, says how slow it is: `sleep:S` for each frame.
"""

import signal
import sys
import time

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField

HOW, _, SECONDS = sys.argv[1].partition(':') if len(sys.argv) > 1 else ('', '', '0')
SLOW_S = float(SECONDS) if HOW == 'sleep' else 0.0
RECORD = np.dtype([('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('label', '<u2')])


class CloudStack(Node):
    name, topic, depth = 'cloud_stack', '/stack/cloud_map', 100
    pose_topic: tuple[type, str] = (PoseStamped, 'ground_truth/camera_pose')

    def __init__(self):
        super().__init__(self.name)
        self.parts = {}
        self.clouds = []
        self.publisher = self.create_publisher(PointCloud2, self.topic, 1)
        for name, kind, topic in (
            ('depth', Image, 'camera/depth/image_rect'),
            ('semantic', Image, 'camera/semantic/image_raw'),
            ('info', CameraInfo, 'camera/depth/camera_info'),
            ('pose', *self.pose_topic),
        ):
            self.create_subscription(
                kind, topic, lambda message, name=name: self.take(name, message), self.depth
            )

    def take(self, name, message):
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        self.parts.setdefault(stamp, {})[name] = message
        self.work()

    def work(self):
        """Map the complete frames."""
        for stamp in [stamp for stamp, parts in self.parts.items() if len(parts) == 4]:
            parts = self.parts.pop(stamp)
            pose = parts['pose'].pose
            self.add(parts, matrix(pose.position, pose.orientation))
            time.sleep(SLOW_S)
            self.publish(parts['depth'].header.stamp, 'world')

    def add(self, parts, camera):
        """Keep every third point of a frame."""
        depth, k = parts['depth'], parts['info'].k
        z = np.frombuffer(depth.data, np.float32).reshape(depth.height, depth.width)
        labels = np.frombuffer(parts['semantic'].data, np.uint16).reshape(z.shape)
        v, u = np.nonzero(np.isfinite(z))
        z = z[v, u]
        seen = np.stack([(u - k[2]) * z / k[0], (v - k[5]) * z / k[4], z], axis=1)
        records = np.zeros(len(z), RECORD)
        records['x'], records['y'], records['z'] = (seen @ camera[:3, :3].T + camera[:3, 3]).T
        records['label'] = labels[v, u]
        self.clouds.append(records[::3])

    def publish(self, stamp, frame_id):
        records = np.concatenate(self.clouds)
        message = PointCloud2(
            height=1, width=len(records), is_dense=True,
            point_step=RECORD.itemsize, row_step=RECORD.itemsize * len(records),
        )  # fmt: skip
        message.header.stamp, message.header.frame_id = stamp, frame_id
        kinds = [PointField.FLOAT32] * 3 + [PointField.UINT16]
        message.fields = [
            PointField(name=name, offset=RECORD.fields[name][1], datatype=kind, count=1)
            for name, kind in zip(RECORD.names, kinds, strict=True)
        ]
        message.data.frombytes(records.tobytes())
        self.publisher.publish(message)


def matrix(place, turn):
    made = np.eye(4)
    made[:3, :3] = Rotation.from_quat([turn.x, turn.y, turn.z, turn.w]).as_matrix()
    made[:3, 3] = place.x, place.y, place.z
    return made


if __name__ == '__main__':
    # rclpy would handle signals in a thread, which may wait for this one for ever.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    rclpy.spin(CloudStack())
