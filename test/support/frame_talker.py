"""A process that publishes like a bridge: frames at a rate, and the latched messages.

    python frame_talker.py FRAMES RATE_HZ WIDTH HEIGHT [SUBSCRIBERS]

Waits until so many nodes subscribe to the colour images, prints "done" when it has published all,
and stays until its input is closed, so that nothing is lost with it.
"""

import sys
import time
from dataclasses import replace

import numpy as np
import rclpy
from osmabench_ros.msg import LabelClass, LabelInfo, Light, LightingState, RunInfo, RunState
from rclpy.duration import Duration
from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.nodes.frame_publisher import FramePublisher
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.ros.qos import latched_profile
from support.waiting import wait_until

FIRST_NS = 1_000_000_000
STEP_NS = 40_000_000


def talker_frame(index, width, height):
    """Return a frame with a content that is known from its index."""
    rows, columns = np.mgrid[0:height, 0:width]
    wave = ((rows + 3 * columns + 7 * index) // 4).astype(np.uint8)
    pose = Pose.from_yaw(0.01 * index, (0.1 * index, 0.0, 1.0))
    return Frame(
        index,
        FIRST_NS + index * STEP_NS,
        pose,
        Intrinsics(width, height, width / 2, width / 2, width / 2 - 0.5, height / 2 - 0.5),
        np.dstack([wave, wave // 2, 255 - wave]),
        (1 + rows / height + 0.001 * (index % 50)).astype(np.float32),
        (wave // 32).astype(np.uint16),
        (wave // 8).astype(np.int32),
        pose,
    )


class Talker(Node):
    """Publishes frames."""

    def __init__(self):
        super().__init__('talker')
        self._frames = FramePublisher(self, lockstep=True, base_to_camera=Pose.identity())
        self._state = self.create_publisher(RunState, topics.RUN_STATE, latched_profile())
        info = self.create_publisher(RunInfo, topics.RUN_INFO, latched_profile())
        labels = self.create_publisher(LabelInfo, topics.LABEL_INFO, latched_profile())
        info.publish(RunInfo(run_id='talk', scene='room', frame_rate=25.0))
        labels.publish(LabelInfo(name='small', classes=[LabelClass(id=1, name='chair')]))
        self.tell(RunState.STATE_WAITING, 0, 0)

    def tell(self, state, published, total):
        """Publish the state of the run."""
        message = RunState(state=state, frames_published=published, frames_total=total)
        if published:
            message.header.stamp = stamp_to_message(FIRST_NS + (published - 1) * STEP_NS)
        self._state.publish(message)

    def send(self, frame):
        """Publish a frame with its light."""
        lighting = LightingState(condition='camera', lights=[Light(name='lamp')])
        self._frames.publish(frame, lighting)


def main():
    """Publish."""
    count, rate_hz, width, height = (int(text) for text in sys.argv[1:5])
    rclpy.init()
    talker = Talker()
    # Drawing frames is not a part of the load; a few serve for all.
    drawn = [talker_frame(index, width, height) for index in range(min(count, 10))]
    listeners = int(sys.argv[5])
    wait_until(lambda: all(talker.count_subscribers(x) >= listeners for x in topics.FRAME_TOPICS))
    time.sleep(0.5)
    start_s = time.monotonic()
    for index in range(count):
        time.sleep(max(0.0, start_s + index / rate_hz - time.monotonic()))
        shown = drawn[index % len(drawn)]
        talker.send(replace(shown, index=index, stamp_ns=FIRST_NS + index * STEP_NS))
        talker.tell(RunState.STATE_RUNNING, index + 1, count)
    talker.tell(RunState.STATE_FINISHED, count, count)
    for publisher in talker.publishers:
        publisher.wait_for_all_acked(Duration(seconds=30))
    print(f'done {time.monotonic() - start_s:.3f}', flush=True)
    sys.stdin.read()


if __name__ == '__main__':
    main()
