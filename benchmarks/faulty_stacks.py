"""Camera stacks of somebody else, each with one fault: `faulty_stacks.py FAULT=DOMAIN ...`.

They know nothing of this package. With `--after` their publishers come so many seconds after they
saw a node called osmabench_doctor in their domain. Printed is when all nodes are there, and the
name of each that begins to publish. They go on until SIGTERM.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image

WIDTH, HEIGHT, FOCAL_PX = 32, 24, 20.0
PERIOD_S = 0.1
TOPICS = {
    'color': 'camera/color/image_raw',
    'depth': 'camera/depth/image_rect',
    'info': 'camera/color/camera_info',
    'pose': 'ground_truth/camera_pose',
}
RELIABLE = QoSProfile(depth=10)
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


def good_messages(stamp: Time) -> dict[str, Any]:
    """Return what a frame consists of, without a fault."""
    k = [FOCAL_PX, 0.0, WIDTH / 2, 0.0, FOCAL_PX, HEIGHT / 2, 0.0, 0.0, 1.0]
    p = [*k[:3], 0.0, *k[3:6], 0.0, *k[6:], 0.0]
    info = CameraInfo(width=WIDTH, height=HEIGHT, distortion_model='plumb_bob', k=k, p=p)
    info.d, info.r = [0.0] * 5, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    messages = {
        'color': image(np.full((HEIGHT, WIDTH, 3), 90, np.uint8), 'rgb8'),
        'depth': image(np.full((HEIGHT, WIDTH), 2.0, np.float32), '32FC1'),
        'info': info,
        'pose': PoseStamped(),
    }
    for name, message in messages.items():
        message.header.stamp = stamp
        message.header.frame_id = 'world' if name == 'pose' else 'camera_color_optical_frame'
    return messages


def image(pixels: np.ndarray, encoding: str) -> Image:
    """Return an image without a header."""
    height, width = pixels.shape[:2]
    message = Image(height=height, width=width, encoding=encoding, step=pixels[0].nbytes)
    message.data.frombytes(pixels.tobytes())
    return message


def pixels(name: str, changed: np.ndarray, encoding: str) -> Callable[[dict[str, Any]], None]:
    """Return a fault: other pixels in an image."""

    def change(messages: dict[str, Any]) -> None:
        header = messages[name].header
        messages[name] = image(changed, encoding)
        messages[name].header = header

    return change


def zeros(messages: dict[str, Any]) -> None:
    """Give every second row no depth, as 0."""
    rows = np.full((HEIGHT, WIDTH), 2.0, np.float32)
    rows[::2] = 0.0
    pixels('depth', rows, '32FC1')(messages)


def stamped(nanoseconds: int, *names: str) -> Callable[[dict[str, Any]], None]:
    """Return a fault: stamps that are later by so much, or 0 if that is 0."""

    def change(messages: dict[str, Any]) -> None:
        for name in names:
            before = messages[name].header.stamp
            later = (before.sec * 10**9 + before.nanosec + nanoseconds) * bool(nanoseconds)
            messages[name].header.stamp = Time(sec=later // 10**9, nanosec=later % 10**9)

    return change


def framed(frame: str, *names: str) -> Callable[[dict[str, Any]], None]:
    """Return a fault: another frame."""

    def change(messages: dict[str, Any]) -> None:
        for name in names:
            messages[name].header.frame_id = frame

    return change


def uncalibrated(messages: dict[str, Any]) -> None:
    """Leave K empty."""
    messages['info'].k = [0.0] * 9


def distorted(messages: dict[str, Any]) -> None:
    """Publish images that are not rectified."""
    messages['info'].d = [0.2, -0.1, 0.0, 0.0, 0.0]


def nothing(_messages: dict[str, Any]) -> None:
    """Change no message; the fault, if any, is in how it is published."""


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    'none': nothing,
    'silent depth': lambda messages: messages.pop('depth'),
    'colour in YUV': pixels('color', np.zeros((HEIGHT, WIDTH, 2), np.uint8), 'yuv422_yuy2'),
    'millimetres in 32FC1': pixels('depth', np.full((HEIGHT, WIDTH), 2000.0, np.float32), '32FC1'),
    'zeros in 32FC1': zeros,
    'picture of depth': pixels('depth', np.full((HEIGHT, WIDTH), 9, np.uint8), 'mono8'),
    'depth of another size': pixels('depth', np.full((9, 12), 2.0, np.float32), '32FC1'),
    'depth stamped later': stamped(3_000_000, 'depth'),
    'no stamps': stamped(0, *TOPICS),
    'wall time beside a clock': nothing,
    'no calibration': uncalibrated,
    'distorted images': distorted,
    'best effort': nothing,
    'pose of another type': lambda messages: messages.update(
        pose=Odometry(header=messages['pose'].header)
    ),
    'images in camera_link': framed('camera_link', 'color', 'depth', 'info'),
    'pose in map': framed('map', 'pose'),
}


class Stack:
    """One stack in its own domain."""

    def __init__(self, fault: str, domain: int) -> None:
        self.fault = fault
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain, args=[])
        self.node = Node('driver', context=self.context)
        self.publishers: dict[str, Any] = {}
        self.watched_since = 0.0

    def advance(self, after_s: float) -> None:
        """Publish a frame if it is time."""
        if not self.publishers and self._may_come(after_s):
            self._create_publishers()
            print(self.fault, flush=True)
        if self.publishers:
            self._publish()

    def end(self) -> None:
        """Leave the domain."""
        self.node.destroy_node()
        self.context.try_shutdown()

    def _may_come(self, after_s: float) -> bool:
        if not self.watched_since and 'osmabench_doctor' in self.node.get_node_names():
            self.watched_since = time.monotonic()
        late = self.watched_since and time.monotonic() > self.watched_since + after_s
        return bool(late) or not after_s

    def _create_publishers(self) -> None:
        for name, message in self._messages().items():
            weak = self.fault == 'best effort' and name == 'color'
            self.publishers[name] = self.node.create_publisher(
                type(message), TOPICS[name], BEST_EFFORT if weak else RELIABLE
            )
        if self.fault == 'silent depth':
            self.node.create_publisher(Image, TOPICS['depth'], RELIABLE)
        if self.fault == 'best effort':
            self.node.create_subscription(Image, TOPICS['color'], lambda _message: None, RELIABLE)
        if self.fault == 'wall time beside a clock':
            self.publishers['clock'] = self.node.create_publisher(Clock, '/clock', RELIABLE)

    def _messages(self) -> dict[str, Any]:
        now_ns = time.time_ns()
        messages = good_messages(Time(sec=now_ns // 10**9, nanosec=now_ns % 10**9))
        CHANGES[self.fault](messages)
        return messages

    def _publish(self) -> None:
        messages = self._messages()
        if 'clock' in self.publishers:
            passed_ns = time.monotonic_ns() % 10**12
            passed = Time(sec=passed_ns // 10**9, nanosec=passed_ns % 10**9)
            messages['clock'] = Clock(clock=passed)
        for name, message in messages.items():
            self.publishers[name].publish(message)


def main() -> None:
    """Publish all stacks that are asked for until the parent is gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--after', type=float, default=0.0)
    parser.add_argument('stacks', nargs='+', metavar='FAULT=DOMAIN')
    arguments = parser.parse_args()
    pairs = [text.rsplit('=', 1) for text in arguments.stacks]
    stacks = [Stack(fault, int(domain)) for fault, domain in pairs]
    print('ready', flush=True)
    parent = os.getppid()
    # A participant that is killed leaves its shared memory behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        while os.getppid() == parent:
            start = time.monotonic()
            for stack in stacks:
                stack.advance(arguments.after)
            time.sleep(max(0.0, start + PERIOD_S - time.monotonic()))
    finally:
        for stack in stacks:
            stack.end()


if __name__ == '__main__':
    main()
