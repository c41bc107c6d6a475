"""An idle mapper: receives frames, acknowledges each, and prints when each arrived.

bridge.py starts it. It prints a line of JSON once it has all frames, and ends when asked to.

    python benchmarks/bridge_subscriber.py --frames 60 --images all
"""

import argparse
import json
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.ros.node.frame_receiver import Acknowledger, FrameReceiver

NAME = 'idle_mapper'


class IdleMapper(Node):
    """Turns the messages of a frame into arrays, as a mapper needs them, and leaves it at that.

    Parameters
    ----------
    frames : int
        How many to wait for.
    all_images : bool
        Whether to subscribe to the semantic and instance images too.
    """

    def __init__(self, frames: int, all_images: bool) -> None:
        super().__init__(NAME)
        self._expected = frames
        self._arrivals_s: list[float] = []
        self._acks = Acknowledger(self, NAME)
        self._receiver = FrameReceiver(
            self,
            self._on_frame,
            lockstep=True,
            ground_truth=all_images,
            on_repeat=self._acks.acknowledge,
        )

    def _on_frame(self, frame: Frame) -> None:
        self._arrivals_s.append(time.monotonic())
        self._acks.acknowledge(frame.stamp_ns, frame_index=frame.index)
        if len(self._arrivals_s) == self._expected:
            result = {'arrivals_s': self._arrivals_s, 'incomplete': self._receiver.incomplete}
            print(json.dumps(result), flush=True)


def main() -> None:
    """Receive until asked to end, so that the last acknowledgement is not cut off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--frames', type=int, required=True)
    parser.add_argument('--images', choices=('rgbd', 'all'), required=True)
    options = parser.parse_args()
    rclpy.init()
    try:
        rclpy.spin(IdleMapper(options.frames, options.images == 'all'))
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
