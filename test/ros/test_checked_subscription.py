"""A message that lies about its size, over DDS."""

import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.msg import LabelInfo
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import serialize_message

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ContractError
from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
from osmabench_ros.ros.wire.qos import latched_profile


class Careful(Node):
    """Remembers what it was told and what was refused, as BenchmarkNode's guard does."""

    def __init__(self, context: Any) -> None:
        super().__init__('careful', context=context)
        self.heard: list[LabelInfo] = []
        self.refused: list[str] = []
        create_checked_subscription(
            self, LabelInfo, topics.LABEL_INFO, self.heard.append, latched_profile()
        )

    def guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        def call(data: bytes) -> None:
            try:
                callback(data)
            except ContractError as error:
                self.refused.append(str(error))

        return call


def test_a_lie_is_refused_by_name_and_the_truth_is_heard(ros_context: Any) -> None:
    node, liar = Careful(ros_context), Node('liar', context=ros_context)
    publisher = liar.create_publisher(LabelInfo, topics.LABEL_INFO, latched_profile())
    executor = SingleThreadedExecutor(context=ros_context)
    executor.add_node(node)
    whole = serialize_message(LabelInfo(name='true'))
    lie = whole[:-4] + struct.pack('<I', 2**31) + bytes(900_000)

    def publish_until(done: Callable[[], bool], data: bytes) -> None:
        deadline = time.monotonic() + 120
        while not done():
            assert time.monotonic() < deadline, 'timed out'
            publisher.publish(data)
            executor.spin_once(timeout_sec=0.2)

    publish_until(lambda: bool(node.refused), lie)
    assert 'topic "label_info": classes claims 2147483648 elements' in node.refused[0]
    publish_until(lambda: bool(node.heard), whole)
    assert node.heard[0].name == 'true'
