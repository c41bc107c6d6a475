"""A node that takes no part in a run and publishes on its topics: `stranger.py NAME TOPIC`."""

import os
import sys
import time

import rclpy
from rclpy.node import Node

from osmabench_ros.ros.contract import CONTRACT
from osmabench_ros.ros.qos import latched_profile

name, topic = sys.argv[1:3]
rclpy.init(args=[])
node = Node(name)
kind = next(item.message_type for item in CONTRACT if item.name == topic)
publisher = node.create_publisher(kind, topic, latched_profile())
print('there', flush=True)
parent = os.getppid()
while os.getppid() == parent:
    publisher.publish(kind())
    time.sleep(0.1)
