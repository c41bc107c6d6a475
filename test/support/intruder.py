"""A node that takes no part in a run and publishes on its topics: `intruder.py NAME TOPIC [wait]`.

With `wait` it prints a line once it is loaded, and begins when it reads one.
"""

import os
import sys
import time

import rclpy
from rclpy.node import Node

from osmabench_ros.base.contract import TYPES
from osmabench_ros.ros.messages.message_definitions import message_class
from osmabench_ros.ros.qos import latched_profile

name, topic = sys.argv[1:3]
if sys.argv[3:] == ['wait']:
    print('loaded', flush=True)
    sys.stdin.readline()
rclpy.init(args=[])
node = Node(name)
kind = message_class(TYPES[topic])
publisher = node.create_publisher(kind, topic, latched_profile())
print('there', flush=True)
parent = os.getppid()
while os.getppid() == parent:
    publisher.publish(kind())
    time.sleep(0.1)
