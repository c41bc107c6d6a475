"""A stack that knows nothing of this package and localises itself: map → odom → base_link.

Its map begins where the robot does. It reads the camera's place from /tf_static.
"""

import numpy as np
import rclpy
from cloud_stack import CloudStack, matrix
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.spatial.transform import Rotation
from tf2_msgs.msg import TFMessage

# What its loop closures say, once and for all.
MAP_TO_ODOM = np.array([[0, -1, 0, 0.5], [1, 0, 0, -0.25], [0, 0, 1, 0], [0, 0, 0, 1.0]])

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class LocalisingStack(CloudStack):
    name, topic, depth = 'localising_stack', '/slam/cloud_map', 10
    pose_topic = (Odometry, 'ground_truth/odometry')

    def __init__(self):
        super().__init__()
        self.edges = {}
        self.start = None
        self.tf = self.create_publisher(TFMessage, '/tf', 10)
        self.create_subscription(TFMessage, '/tf_static', self.learn, LATCHED)

    def learn(self, message):
        for edge in message.transforms:
            pose = matrix(edge.transform.translation, edge.transform.rotation)
            self.edges[edge.child_frame_id] = (edge.header.frame_id, pose)
        self.work()

    def work(self):
        """Map the complete frames, in the order of the stamps."""
        while self.parts and {'camera_link', 'camera_color_optical_frame'} <= self.edges.keys():
            stamp = min(self.parts)
            if len(self.parts[stamp]) < 4:
                return
            self.map(self.parts.pop(stamp))

    def map(self, parts):
        header, pose = parts['depth'].header, parts['pose'].pose.pose
        base = matrix(pose.position, pose.orientation)
        self.start = base if self.start is None else self.start
        in_map = np.linalg.inv(self.start) @ base
        frame, in_base = header.frame_id, np.eye(4)
        while frame != 'base_link':
            frame, step = self.edges[frame]
            in_base = step @ in_base
        self.add(parts, in_map @ in_base)
        in_odom = np.linalg.inv(MAP_TO_ODOM) @ in_map
        edges = (('map', 'odom', MAP_TO_ODOM), ('odom', 'base_link', in_odom))
        self.tf.publish(TFMessage(transforms=[transform(header.stamp, *edge) for edge in edges]))
        self.publish(header.stamp, 'map')


def transform(stamp, parent, child, pose):
    message = TransformStamped(child_frame_id=child)
    message.header.stamp, message.header.frame_id = stamp, parent
    place, turn = message.transform.translation, message.transform.rotation
    place.x, place.y, place.z = pose[:3, 3]
    turn.x, turn.y, turn.z, turn.w = Rotation.from_matrix(pose[:3, :3]).as_quat()
    return message


rclpy.init()
rclpy.spin(LocalisingStack())
