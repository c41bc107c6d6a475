"""A process that hears topics serialised: `raw_listener.py TOPIC...`.

It reads lines: `TOPIC COUNT` waits until so many messages came and prints how many did, `end`
prints all of them. One line at a time: the next is written once the last was answered.
"""

from __future__ import annotations

import json
import select
import sys
import time

import rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile

from osmabench_ros.ros.messages.message_definitions import message_class

KINDS = {
    '/run_info': 'osmabench_ros/msg/RunInfo',
    '/label_info': 'osmabench_ros/msg/LabelInfo',
    '/clock': 'rosgraph_msgs/msg/Clock',
}

PATIENCE_S = 60.0
QUIET_S = 1.0


def kind_of(topic: str) -> str:
    if topic in KINDS:
        return KINDS[topic]
    return f'{"sensor_msgs/msg/Image" if "image" in topic else "geometry_msgs/msg/PoseStamped"}'


def main() -> None:
    rclpy.init()
    node = Node('listener')
    heard: list[list[str]] = []
    for topic in sys.argv[1:]:
        latched = kind_of(topic).startswith('osmabench_ros')
        node.create_subscription(
            message_class(kind_of(topic)),
            topic,
            lambda data, topic=topic: heard.append([topic, data.hex()]),
            QoSProfile(
                history=HistoryPolicy.KEEP_ALL,
                depth=1,
                durability=(
                    DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
                ),
            ),
            raw=True,
        )
    print('listening', flush=True)
    while (words := _next_words(node)) != ['end']:
        topic, count = words[0], int(words[1])
        deadline = time.monotonic() + PATIENCE_S
        while sum(item[0] == topic for item in heard) < count and time.monotonic() < deadline:
            rclpy.spin_once(node, timeout_sec=0.02)
        print(sum(item[0] == topic for item in heard), flush=True)
    # What is on its way still counts.
    count, since_s = len(heard), time.monotonic()
    while time.monotonic() - since_s < QUIET_S:
        rclpy.spin_once(node, timeout_sec=0.02)
        if len(heard) > count:
            count, since_s = len(heard), time.monotonic()
    print(json.dumps(heard), flush=True)


def _next_words(node: Node) -> list[str]:
    while not select.select([sys.stdin], [], [], 0)[0]:
        rclpy.spin_once(node, timeout_sec=0.02)
    return sys.stdin.readline().split() or ['end']


if __name__ == '__main__':
    main()
