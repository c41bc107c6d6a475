"""Messages that no node may believe, and what takes them out before a callback."""

import math
import struct

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from osmabench_ros.msg import LabelClass, LabelInfo, RunInfo, SemanticMap
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from support.messages import put

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.nodes.map_recorder_node import FrameSampler
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages.evaluation_messages import check_run_info, path_from_uri
from osmabench_ros.ros.messages.images import (
    camera_info_message,
    image_to_message,
    label_set_from_message,
)
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.ros.node.frame_receiver import frame_from_messages

WHOLE = serialize_message(LabelInfo(name='true'))
# Claims two thousand million classes.
LIE = WHOLE[:-4] + struct.pack('<I', 2**31) + bytes(900_000)


@pytest.mark.parametrize(
    ('kind', 'limit'),
    [
        (RunInfo, qos.MAX_BYTES[RunInfo]),
        (LabelInfo, qos.MAX_BYTES[LabelInfo]),
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


def test_a_lie_is_refused_by_name_and_the_next_message_is_taken(spinner):
    node, liar = spinner.add(Careful(spinner.context)), spinner.make_node('liar')
    publisher = liar.create_publisher(LabelInfo, topics.LABEL_INFO, qos.latched_profile())

    def publish_until(answers, data):
        spinner.spin_until(lambda: publisher.publish(data) or answers)

    publish_until(node.refused, LIE)
    assert 'topic "label_info": 900' in node.refused[0]
    publish_until(node.received, WHOLE)
    assert node.received[0].name == 'true'


STAMP = stamp_to_message(1_000_000_000)
HUGE = (2**31, 2**32 - 1)
NO_NUMBERS = (math.nan, math.inf, -math.inf)
IMAGES = {
    topics.COLOR: ('rgb8', np.zeros((3, 4, 3), np.uint8)),
    topics.DEPTH: ('32FC1', np.ones((3, 4), np.float32)),
    topics.SEMANTIC: ('16UC1', np.zeros((3, 4), np.uint16)),
    topics.INSTANCE: ('32SC1', np.zeros((3, 4), np.int32)),
}


def parts():
    """Return the messages of a frame of 4 x 3 pixels."""
    camera = Intrinsics(4, 3, 2.0, 2.0, 1.5, 1.0)
    pose = PoseStamped()
    pose.pose.orientation.w = 1.0
    images = {
        topic: image_to_message(pixels, encoding, STAMP, 'c')
        for topic, (encoding, pixels) in IMAGES.items()
    }
    info = camera_info_message(camera, STAMP, 'c')
    return {**images, topics.COLOR_INFO: info, topics.CAMERA_POSE: pose}


def absurd():
    """Yield topic, place in its message, and the value to put there."""
    for topic in IMAGES:
        yield from ((topic, name, value) for name in ('width', 'step') for value in (0, *HUGE))
        yield from ((topic, 'encoding', 'x' * 10**5), (topic, 'data', b'x' * 1000))
    for value in (*NO_NUMBERS, 0.0, 1e308):
        yield topics.COLOR_INFO, 'k.0', value
        yield topics.CAMERA_POSE, 'pose.orientation.w', value
    for value in NO_NUMBERS:
        yield topics.COLOR_INFO, 'd', [value] * 5
        yield topics.CAMERA_POSE, 'pose.position.x', value
    yield from ((topics.COLOR_INFO, 'width', value) for value in (0, *HUGE))
    yield topics.CAMERA_POSE, 'header.frame_id', 'y' * 10**6


def test_the_frame_without_absurdities_is_one():
    assert frame_from_messages(0, 0, parts()).world_points().shape == (12, 3)


@pytest.mark.parametrize(
    ('topic', 'place', 'value'),
    [pytest.param(*row, id=f'{row[0]} {row[1]} {str(row[2])[:12]}') for row in absurd()],
)
@pytest.mark.filterwarnings('error')
def test_a_frame_with_absurd_content_is_refused(topic, place, value):
    messages = parts()
    put(messages[topic], place, value)
    with pytest.raises(ContractError) as reported:
        frame_from_messages(0, 0, messages)
    assert len(str(reported.value)) < 500
    # Of a camera and an image of other widths either may be wrong.
    assert 'topic' in str(reported.value)
    assert topic in str(reported.value) or place == 'width'


def test_depth_that_is_nowhere_valid_is_a_frame_without_points():
    """As a covered camera sends it."""
    messages = parts()
    nowhere = np.full((3, 4), np.nan, np.float32)
    messages[topics.DEPTH] = image_to_message(nowhere, '32FC1', STAMP, 'c')
    assert frame_from_messages(0, 0, messages).world_points().shape == (0, 3)


@pytest.mark.parametrize(
    'changes',
    [
        *({'frame_rate': value} for value in (*NO_NUMBERS, -1.0, 1e308)),
        *({'speed_factor': value} for value in (*NO_NUMBERS, -1.0)),
        *({name: 'x' * 100_000} for name in ('run_id', 'scene', 'world_frame')),
        {'mapper': 'a\0b'},
        {'condition': 'a\nb'},
    ],
)
def test_a_run_info_of_no_run_is_refused(changes):
    with pytest.raises(ContractError, match='topic "run_info"') as reported:
        check_run_info(RunInfo(**changes))
    assert len(str(reported.value)) < 300


@pytest.mark.parametrize(
    'classes', [[(65_535, 'a')], [(0, '')], [(0, 'a'), (0, 'b')], [(0, 'a'), (1, 'a')]]
)
def test_classes_that_are_none_are_refused(classes):
    message = LabelInfo(classes=[LabelClass(id=number, name=name) for number, name in classes])
    with pytest.raises(ContractError, match='topic "label_info"'):
        label_set_from_message(message, topics.LABEL_INFO)


@pytest.mark.parametrize('sec', [-(2**31), -1, 5, 2**31 - 1])
def test_stamps_outside_a_run_make_no_pictures(sec, tmp_path):
    sampler = FrameSampler(tmp_path / 'frames')
    sampler.start(RunInfo(frame_count=5, frame_rate=1.0))
    image = parts()[topics.COLOR]
    image.header.stamp.sec, image.header.stamp.nanosec = sec, 0
    sampler.take(image)
    assert not (tmp_path / 'frames').exists()


@pytest.mark.parametrize(
    'uri',
    ['', 'http://x', 'file://[', 'file:///a%00b', f'file:///{"x" * 5000}', '\0', 'x' * 10**6],
)
def test_an_address_that_is_no_path_is_refused(uri):
    with pytest.raises(ContractError, match='map_uri is') as reported:
        path_from_uri(uri, 'map_uri')
    assert len(str(reported.value)) < 400
