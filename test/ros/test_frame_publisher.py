"""The messages of a frame that the bridge publishes, and their receivers, over DDS."""

from unittest.mock import Mock

import pytest
from rclpy.publisher import Publisher
from sensor_msgs.msg import Image
from support.waiting import wait_until
from support.world.frames import FRAMES, MOUNT

from osmabench_ros.base import contract as topics
from osmabench_ros.nodes import frame_publisher
from osmabench_ros.nodes.frame_publisher import FramePublisher
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.qos import frame_profile


@pytest.mark.parametrize('lockstep', [True, False])
def test_images_are_made_for_subscribers_alone_and_for_late_ones_too(
    spinner, lockstep, monkeypatch
):
    convert = Mock(wraps=frame_publisher.image_to_message)
    monkeypatch.setattr(frame_publisher, 'image_to_message', convert)
    listener = spinner.make_node('listener')
    publisher = FramePublisher(
        spinner.make_node('publisher'), lockstep=lockstep, base_to_camera=MOUNT
    )
    heard = []

    def listen(topic):
        subscription = listener.create_subscription(
            Image,
            topic,
            lambda message: heard.append((topic, stamp_from_message(message.header.stamp))),
            frame_profile(lockstep=lockstep),
        )
        wait_until(lambda: publisher.subscribers(topic) and subscription.get_publisher_count())

    publisher.publish(FRAMES[0])
    convert.assert_not_called()
    listen(topics.COLOR)
    publisher.publish(FRAMES[1])
    assert convert.call_count == 1
    spinner.spin_until(lambda: len(heard) >= 1)
    listen(topics.INSTANCE)
    publisher.publish(FRAMES[2])
    assert [call.args[1] for call in convert.mock_calls] == ['rgb8', 'rgb8', '32SC1']
    spinner.spin_until(lambda: len(heard) >= 3)
    second, third = FRAMES[1].stamp_ns, FRAMES[2].stamp_ns
    expected = {(topics.COLOR, second), (topics.COLOR, third), (topics.INSTANCE, third)}
    assert set(heard) == expected


def test_the_clock_comes_first_and_images_last(spinner, monkeypatch):
    node = spinner.make_node('publisher')
    publisher = FramePublisher(node, lockstep=True, base_to_camera=MOUNT)
    monkeypatch.setattr(publisher, 'subscribers', lambda topic: 1)
    order = []
    monkeypatch.setattr(Publisher, 'publish', lambda self, message: order.append(self.topic_name))
    publisher.publish(FRAMES[0])
    images = [name for name in order if name.endswith(('image_raw', 'image_rect'))]
    assert order[0] == topics.CLOCK
    assert order[-len(images) :] == images
    assert len(images) == 4
    assert {f'/{topics.CAMERA_POSE}', f'/{topics.COLOR_INFO}'} <= set(order)
