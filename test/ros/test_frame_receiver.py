"""Cameras of a frame receiver, and its memory of frames that never become complete."""

import numpy as np
import pytest
from sensor_msgs.msg import Image
from support import SUPPORT
from support.ros_processes import process

from osmabench_ros.base import contract as topics
from osmabench_ros.ros.node.frame_receiver import MAX_PENDING, FrameReceiver


def test_incomplete_frames_are_bounded_in_number(spinner):
    node = spinner.make_node('receiver')
    receiver = FrameReceiver(node, lambda _frame: None, lockstep=False, ground_truth=False)
    for second in range(MAX_PENDING + 5):
        message = Image()
        message.header.stamp.sec = second
        receiver.collect(topics.COLOR, message)
    assert receiver.incomplete == 5


CAMERA = str(SUPPORT / 'foreign_camera.py')


@pytest.mark.parametrize(
    ('encoding', 'pixel', 'color'),
    [
        ('bgra8', (1, 2, 3, 9), (3, 2, 1)),
        ('rgba8', (3, 2, 1, 9), (3, 2, 1)),
        ('mono8', (7,), (7, 7, 7)),
    ],
)
def test_frames_of_a_foreign_camera_are_rgb_and_metres(
    encoding, pixel, color, spinner, ros_domain
):
    node, frames = spinner.make_node('receiver'), []
    FrameReceiver(node, frames.append, lockstep=False, ground_truth=False)
    with process(ros_domain, CAMERA, encoding, *map(str, pixel)):
        spinner.spin_until(lambda: frames)
    assert set(map(tuple, frames[0].color.reshape(-1, 3).tolist())) == {color}
    np.testing.assert_array_equal(frames[0].depth_m, np.full((6, 8), 1.5, np.float32))
