"""The bridge over DDS: its topics, its latched information, its pause."""

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]
pytest.importorskip('rclpy')

from lifecycle_msgs.msg import Transition
from osmabench_ros.msg import LabelInfo, RunInfo, RunState
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from support.waiting import Spinner

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.spec.isolation import isolated_environment
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.node.frame_receiver import FrameReceiver
from osmabench_ros.ros.wire.matched_client import LifecycleClient
from osmabench_ros.ros.wire.qos import clock_profile, latched_profile

COMMAND = [
    sys.executable, '-m', 'osmabench_ros.nodes.simulator_bridge_node', '--ros-args',
    '-p', 'image_width:=64', '-p', 'image_height:=48', '-p', 'frame_rate_hz:=4.0',
    '-p', 'pacing:=realtime', '-p', 'goals:=1', '-p', 'seed:=3', '-p', 'run_id:=under_test',
]  # fmt: skip


class Listener(Spinner):
    """Hears everything of a bridge in realtime."""

    def __init__(self, context: Any) -> None:
        self.node = Node('listener', context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.frames: list[Frame] = []
        self.clocks: list[int] = []
        self.latched: dict[str, Any] = {}
        FrameReceiver(self.node, self.frames.append, lockstep=False, ground_truth=True)
        self.node.create_subscription(
            Clock,
            topics.CLOCK,
            lambda message: self.clocks.append(stamp_from_message(message.clock)),
            clock_profile(),
        )
        self.hear_latched()

    def hear_latched(self) -> None:
        for kind, topic in (
            (RunInfo, topics.RUN_INFO),
            (RunState, topics.RUN_STATE),
            (LabelInfo, topics.LABEL_INFO),
        ):
            self.node.create_subscription(
                kind,
                topic,
                lambda message, topic=topic: self.latched.__setitem__(topic, message),
                latched_profile(),
            )


@pytest.fixture
def bridge(ros_domain: int) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(COMMAND, env=dict(isolated_environment(ros_domain)))
    yield process
    process.terminate()
    process.wait(timeout=180)


def test_frames_are_complete_stamped_alike_and_stop_while_inactive(
    bridge: subprocess.Popen, ros_context: Any
) -> None:
    listener = Listener(ros_context)
    manager = LifecycleClient(listener.node, listener.executor, timeout_s=60.0)
    manager.bring_up(['simulator_bridge'], lambda: None)
    listener.spin_until(lambda: len(listener.frames) >= 3)
    stamps = [frame.stamp_ns for frame in listener.frames]
    assert stamps == sorted(set(stamps))
    # The first frame may come before the clock's publisher is discovered.
    listener.spin_until(lambda: set(stamps[1:]) <= set(listener.clocks))
    assert {(stamp - stamps[0]) % 250_000_000 for stamp in stamps} == {0}
    frame = listener.frames[0]
    assert frame.semantic.shape == frame.instance.shape == (48, 64)

    manager.change('simulator_bridge', Transition.TRANSITION_DEACTIVATE, lambda: None)
    listener.spin_until(lambda: listener.latched[topics.RUN_STATE].state == RunState.STATE_PAUSED)
    heard = len(listener.frames)
    quiet_until = time.monotonic() + 1.5
    while time.monotonic() < quiet_until:
        listener.executor.spin_once(timeout_sec=0.05)
    assert len(listener.frames) <= heard + 1

    manager.change('simulator_bridge', Transition.TRANSITION_ACTIVATE, lambda: None)
    listener.spin_until(lambda: len(listener.frames) >= heard + 3)

    late = Listener(ros_context)
    late.spin_until(lambda: len(late.latched) == 3)
    assert late.latched[topics.RUN_INFO].run_id == 'under_test'
    assert late.latched[topics.LABEL_INFO].classes
