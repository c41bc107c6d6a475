"""Messages that do not fit are refused with their topic, and the next one is taken."""

import struct

import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.msg import LabelInfo, RunInfo, SemanticMap
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from support.waiting import wait_until

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ContractError
from osmabench_ros.ros import qos

WHOLE = serialize_message(LabelInfo(name='true'))
LIE = WHOLE[:-4] + struct.pack('<I', 2**31) + bytes(900_000)
"""Claims two thousand million classes."""


@pytest.mark.parametrize(
    ('kind', 'limit'),
    [
        (RunInfo, qos.MAX_BYTES[RunInfo]),
        (SemanticMap, qos.MAX_BYTES[SemanticMap]),
        (Image, qos.MAX_MESSAGE_BYTES),
    ],
)
def test_a_message_larger_than_its_type_needs_is_refused(kind, limit):
    with pytest.raises(ContractError, match=f'topic "t": a message of .* bytes exceeds {limit}'):
        qos.deserialize_checked(bytes(limit + 1), kind, 't')


@pytest.mark.parametrize('data', [b'', WHOLE[:3], WHOLE[:9], WHOLE[:-4], LIE])
def test_a_message_that_is_cut_off_or_lies_is_refused(data):
    with pytest.raises(ContractError, match=f'topic "t": {len(data)} bytes are not a LabelInfo'):
        qos.deserialize_checked(data, LabelInfo, 't')


class Careful(Node):
    """Remembers received and refused messages, as BenchmarkNode's guard does."""

    def __init__(self, context):
        super().__init__('careful', context=context)
        self.received = []
        self.refused = []
        qos.create_checked_subscription(
            self, LabelInfo, topics.LABEL_INFO, self.received.append, qos.latched_profile()
        )

    def guarded(self, callback):
        def call(data):
            try:
                callback(data)
            except ContractError as error:
                self.refused.append(str(error))

        return call


def test_a_lie_is_refused_by_name_and_the_next_message_is_taken(ros_context):
    node, liar = Careful(ros_context), Node('liar', context=ros_context)
    publisher = liar.create_publisher(LabelInfo, topics.LABEL_INFO, qos.latched_profile())
    executor = SingleThreadedExecutor(context=ros_context)
    executor.add_node(node)

    def publish_until(done, data):
        def publish():
            publisher.publish(data)
            executor.spin_once(timeout_sec=0.2)

        wait_until(done, step=publish)

    publish_until(lambda: bool(node.refused), LIE)
    assert 'topic "label_info": 900' in node.refused[0]
    publish_until(lambda: bool(node.received), WHOLE)
    assert node.received[0].name == 'true'
