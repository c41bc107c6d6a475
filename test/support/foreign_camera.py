"""A third-party driver: `foreign_camera.py ENCODING PIXEL...`, bytes of each pixel.

Publishes one frame again and again, with depth in millimetres, until its parent is gone.
"""

import array
import os
import sys
import time

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Image

WIDTH, HEIGHT = 8, 6
encoding, pixel = sys.argv[1], bytes(map(int, sys.argv[2:]))
rclpy.init(args=[])
node = Node('driver')


def image(kind, data):
    made = Image(height=HEIGHT, width=WIDTH, encoding=kind, step=WIDTH * len(data))
    made.data = array.array('B', data * (WIDTH * HEIGHT))
    return made


info = CameraInfo(height=HEIGHT, width=WIDTH, distortion_model='plumb_bob', d=[0.0] * 5)
info.k = [5.0, 0.0, 3.5, 0.0, 5.0, 2.5, 0.0, 0.0, 1.0]
messages = {
    'camera/color/image_raw': image(encoding, pixel),
    'camera/depth/image_rect': image('16UC1', (1500).to_bytes(2, 'little')),
    'camera/color/camera_info': info,
    'ground_truth/camera_pose': PoseStamped(),
}
publishers = {
    topic: node.create_publisher(type(message), topic, QoSProfile(depth=10))
    for topic, message in messages.items()
}
parent, second = os.getppid(), 0
while os.getppid() == parent:
    second += 1
    for topic, message in messages.items():
        message.header.stamp.sec = second
        message.header.frame_id = 'world' if isinstance(message, PoseStamped) else 'optical'
        publishers[topic].publish(message)
    time.sleep(0.1)
