"""Nodes of a run, over DDS: how they begin, are asked, end, and begin again."""

from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from nodes.node_stage import DOWN, UP
from osmabench_ros.msg import RecordedMap, RunState
from osmabench_ros.srv import ControlRun
from support.bridge_process import Audience, bridge_process, write_sequence
from support.ros_processes import node_process
from support.waiting import listen, wait_until
from support.world.frames import FRAMES, LABELS

from osmabench_ros.base import contract as topics
from osmabench_ros.nodes.frame_player import RUNS_FREE
from osmabench_ros.ros.qos import latched_profile

pytestmark = pytest.mark.slow

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
                node_process(ros_domain, f'{node}_node', autostart=False, **parameters[node])
            )
            for node in NODES
        }


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.rglob('*') if path.is_file()}


def test_a_run_is_reset_and_repeated_by_the_same_processes(processes, audience, tmp_path):
    recorded = listen(audience.node, RecordedMap, topics.RECORDED_MAP, latched_profile())

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


STAMPS_NS = [frame.stamp_ns for frame in FRAMES]
NONE = ControlRun.Response.ERROR_NONE
WRONG_STATE = ControlRun.Response.ERROR_WRONG_STATE


@pytest.fixture
def sequence(tmp_path):
    return write_sequence(tmp_path / 'room')


@pytest.fixture
def audience(ros_context):
    with closing(Audience(ros_context)) as made:
        yield made


def test_lockstep_that_does_not_wait_says_so_once(ros_domain, audience, sequence):
    with bridge_process(ros_domain, sequence=sequence, pacing='lockstep') as running:
        audience.change(*UP)
        audience.spin_until(lambda: audience.state.state == RunState.STATE_FINISHED)
        running.terminate()
        _, errors = running.communicate(timeout=180)
    assert errors.count(RUNS_FREE) == 1, errors


def test_a_sequence_is_stepped_started_and_reset(ros_domain, audience, sequence):
    with bridge_process(
        ros_domain, sequence=sequence, pacing='realtime', start_paused=True, speed_factor=0.2
    ):
        audience.change(*UP)
        audience.spin_until(lambda: audience.state.state == RunState.STATE_PAUSED)
        audience.spin_for(0.5)
        assert audience.frames == []

        response = audience.control(topics.STEP_RUN, 2)
        assert (response.error_code, response.error_msg) == (NONE, '')
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS[:2])
        audience.spin_until(lambda: audience.state.state == RunState.STATE_PAUSED)
        audience.spin_for(0.5)
        assert audience.stamps_ns == STAMPS_NS[:2]

        response = audience.control(topics.START_RUN)
        assert response.error_code == NONE
        assert response.state.state == RunState.STATE_RUNNING
        assert response.state.frames_published == 2
        audience.spin_until(lambda: audience.state.state == RunState.STATE_FINISHED)
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS)
        response = audience.control(topics.START_RUN)
        assert response.error_code == WRONG_STATE
        assert 'reset' in response.error_msg

        response = audience.control(topics.RESET_RUN)
        assert response.error_code == NONE
        assert response.state.state == RunState.STATE_PAUSED
        assert response.state.frames_published == 0
        everything = audience.frames
        audience.control(topics.STEP_RUN, 2)
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS[:2])
        assert audience.restarts == 1
        assert audience.clocks_ns[-1] < STAMPS_NS[-1]
        assert audience.control(topics.START_RUN).error_code == NONE
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS)
        for before, again in zip(everything, audience.frames, strict=True):
            np.testing.assert_array_equal(before.color, again.color)
            np.testing.assert_array_equal(before.depth_m, again.depth_m)

        info = audience.infos[-1]
        assert (info.dataset, info.scene, info.condition) == ('small', 'room', 'camera')
        assert (info.simulator, info.frame_count) == ('recorded', len(FRAMES))
        assert info.frame_rate == pytest.approx(25.0)
        assert audience.lights == []
        assert set(np.unique(audience.frames[0].semantic)) <= {*LABELS.ids, 65535}
