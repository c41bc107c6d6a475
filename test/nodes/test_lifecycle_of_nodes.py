"""Every node goes twice through its lifecycle in one process, over DDS."""

from contextlib import ExitStack
from dataclasses import replace

import pytest
from nodes.node_stage import DOWN, UP
from support.ros_processes import node_arguments, process

pytestmark = [pytest.mark.ros, pytest.mark.slow]
pytest.importorskip('rclpy')

import numpy as np
from lifecycle_msgs.msg import Transition
from osmabench_ros.msg import RecordedMap, RunState
from support.bridge_process import Audience, write_sequence
from support.waiting import wait_until
from support.world.frames import FRAMES

from osmabench_ros.base import contract as topics
from osmabench_ros.ros.qos import latched_profile

NODES = ('mapper', 'map_recorder', 'simulator_bridge')


def two_objects(frame):
    """Return a frame with few objects, so that its graph is made quickly."""
    halves = np.where(np.arange(frame.intrinsics.width) < 8, 1, 2)
    image = np.broadcast_to(halves, (frame.intrinsics.height, frame.intrinsics.width))
    return replace(frame, semantic=image.astype(np.uint16), instance=image.astype(np.int32))


@pytest.fixture
def processes(ros_domain, tmp_path):
    frames = [two_objects(frame) for frame in FRAMES]
    parameters = {
        'mapper': {'mapper': 'oracle'},
        'map_recorder': {'map_directory': tmp_path / 'map'},
        'simulator_bridge': {
            'sequence': write_sequence(tmp_path / 'room', frames),
            'participants': ['mapper:acks', 'map_recorder:acks'],
        },
    }
    with ExitStack() as stack:
        yield {
            node: stack.enter_context(
                process(
                    ros_domain,
                    *node_arguments(f'{node}_node', {**parameters[node], 'autostart': False}),
                )
            )
            for node in NODES
        }


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.rglob('*') if path.is_file()}


def test_a_run_is_reset_and_repeated_by_the_same_processes(processes, ros_context, tmp_path):
    audience = Audience(ros_context)
    recorded = []
    audience.node.create_subscription(
        RecordedMap, topics.RECORDED_MAP, recorded.append, latched_profile()
    )

    def alive():
        for node, running in processes.items():
            assert running.poll() is None, f'{node}: {running.communicate()[1]}'

    def change(transitions):
        for transition in transitions:
            for node in NODES:
                audience.manager.change(node, transition, alive)

    def wait(condition):
        def step():
            alive()
            audience.executor.spin_once(timeout_sec=0.05)

        wait_until(condition, step=step, state=lambda: audience.state)

    for number in range(3):
        if number == 1:
            assert audience.control(topics.RESET_RUN).error_code == 0
            audience.spin_until(lambda: audience.state.frames_published < 4)
        else:
            change(UP)
        wait(lambda: audience.state.state == RunState.STATE_FINISHED)
        wait(lambda: len(recorded) == number + 1)  # noqa: B023
        figures = {item.participant: item for item in audience.state.participants}
        assert figures['mapper'].frames_mapped == 4
        assert figures['map_recorder'].frames_acknowledged == 4
        if number != 0:
            change(DOWN)
            wait(lambda: audience.node.count_publishers(topics.SEMANTIC_MAP) == 0)
            audience.states.clear()
    assert len({item.digest for item in recorded}) == 1
    assert files_of(tmp_path / 'map') == files_of(tmp_path / 'map_2') != {}
    assert files_of(tmp_path / 'map_2') == files_of(tmp_path / 'map_3')

    for node in NODES:
        audience.manager.change(node, Transition.TRANSITION_UNCONFIGURED_SHUTDOWN, lambda: None)
        assert processes[node].wait(timeout=180) == 0
