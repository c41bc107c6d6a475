"""Cameras of a frame receiver, and its memory of frames that never become complete."""

import numpy as np
from ros.test_checked_subscription import STAMP, parts
from sensor_msgs.msg import Image

from osmabench_ros.base import contract as topics
from osmabench_ros.ros.messages.images import image_to_message
from osmabench_ros.ros.node.frame_receiver import MAX_PENDING, FrameReceiver


def test_incomplete_frames_are_bounded_in_number(spinner):
    node = spinner.make_node('receiver')
    receiver = FrameReceiver(node, lambda _frame: None, lockstep=False, ground_truth=False)
    for second in range(MAX_PENDING + 5):
        message = Image()
        message.header.stamp.sec = second
        receiver.collect(topics.COLOR, message)
    assert receiver.incomplete == 5


def test_frames_of_a_third_party_camera_are_rgb_and_metres(spinner):
    node, driver, frames = spinner.make_node('receiver'), spinner.make_node('driver'), []
    FrameReceiver(node, frames.append, lockstep=False, ground_truth=False)
    messages = parts()
    image = messages[topics.COLOR]
    image.encoding, image.step, image.data = 'bgra8', 4 * 4, bytes([1, 2, 3, 9]) * 12
    millimetres = np.full((3, 4), 1500, np.uint16)
    messages[topics.DEPTH] = image_to_message(millimetres, '16UC1', STAMP, 'c')
    for topic in (topics.COLOR, topics.DEPTH, topics.COLOR_INFO, topics.CAMERA_POSE):
        message = messages[topic]
        message.header.stamp, message.header.frame_id = STAMP, topics.WORLD_FRAME
        publisher = driver.create_publisher(type(message), topic, 10)
        spinner.spin_until(publisher.get_subscription_count)
        publisher.publish(message)
    spinner.spin_until(lambda: frames)
    assert set(map(tuple, frames[0].color.reshape(-1, 3).tolist())) == {(3, 2, 1)}
    np.testing.assert_array_equal(frames[0].depth_m, np.full((3, 4), 1.5, np.float32))
