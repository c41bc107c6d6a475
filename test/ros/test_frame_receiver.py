"""What a frame receiver keeps of frames that never become complete."""

from typing import Any

import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from rclpy.node import Node  # noqa: E402
from sensor_msgs.msg import Image  # noqa: E402

from osmabench_ros.ros import frame_receiver, topics  # noqa: E402
from osmabench_ros.ros.frame_receiver import MAX_PENDING, FrameReceiver  # noqa: E402


def flood(context: Any, images: int, image_bytes: int) -> FrameReceiver:
    """Give a receiver colour images whose other parts never come."""
    node = Node('receiver', context=context)
    receiver = FrameReceiver(node, lambda _frame: None, lockstep=False, ground_truth=False)
    for second in range(images):
        message = Image(data=bytes(image_bytes))
        message.header.stamp.sec = second
        receiver._collect(topics.COLOR, message)
    node.destroy_node()
    return receiver


def test_incomplete_frames_are_bounded_in_number(ros_context: Any) -> None:
    receiver = flood(ros_context, MAX_PENDING + 5, 1)
    assert receiver.incomplete == 5


def test_incomplete_frames_are_bounded_in_bytes(
    ros_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_receiver, 'MAX_PENDING_BYTES', 3000)
    receiver = flood(ros_context, 10, 1000)
    assert receiver.incomplete == 7
