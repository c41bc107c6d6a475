"""A bridge that plays a recorded sequence, controlled by its services, over DDS."""

import pytest
from nodes.node_stage import UP

pytestmark = [pytest.mark.ros, pytest.mark.slow]
pytest.importorskip('rclpy')

import numpy as np
from osmabench_ros.msg import RunState
from osmabench_ros.srv import ControlRun
from support.bridge_process import Audience, bridge_process, write_sequence
from support.world.frames import FRAMES, LABELS

from osmabench_ros.base import contract
from osmabench_ros.nodes.frame_player import RUNS_FREE

STAMPS_NS = [frame.stamp_ns for frame in FRAMES]
NONE = ControlRun.Response.ERROR_NONE
WRONG_STATE = ControlRun.Response.ERROR_WRONG_STATE


@pytest.fixture
def sequence(tmp_path):
    return write_sequence(tmp_path / 'room')


@pytest.fixture
def audience(ros_context):
    audience = Audience(ros_context)
    yield audience
    audience.executor.shutdown()
    audience.node.destroy_node()


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
        audience.change(UP[0])
        response = audience.control(contract.START_RUN)
        assert response.error_code == WRONG_STATE
        assert 'not active' in response.error_msg
        audience.change(UP[1])
        audience.spin_until(lambda: audience.state.state == RunState.STATE_PAUSED)
        audience.spin_for(0.5)
        assert audience.frames == []

        response = audience.step(2)
        assert (response.error_code, response.error_msg) == (NONE, '')
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS[:2])
        audience.spin_until(lambda: audience.state.state == RunState.STATE_PAUSED)
        audience.spin_for(0.5)
        assert audience.stamps_ns == STAMPS_NS[:2]
        assert audience.control(contract.PAUSE_RUN).error_code == WRONG_STATE

        response = audience.control(contract.START_RUN)
        assert response.error_code == NONE
        assert response.state.state == RunState.STATE_RUNNING
        assert response.state.frames_published == 2
        audience.spin_until(lambda: audience.state.state == RunState.STATE_FINISHED)
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS)
        response = audience.control(contract.START_RUN)
        assert response.error_code == WRONG_STATE
        assert 'reset' in response.error_msg

        response = audience.control(contract.RESET_RUN)
        assert response.error_code == NONE
        assert response.state.state == RunState.STATE_PAUSED
        assert response.state.frames_published == 0
        everything = audience.frames
        audience.step(2)
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS[:2])
        assert audience.restarts == 1
        assert audience.clocks_ns[-1] < STAMPS_NS[-1]
        audience.spin_until(lambda: audience.state.state == RunState.STATE_PAUSED)
        assert audience.control(contract.RESET_RUN).state.frames_published == 0

        assert audience.control(contract.START_RUN).error_code == NONE
        audience.spin_until(lambda: audience.state.state == RunState.STATE_FINISHED)
        audience.spin_until(lambda: audience.stamps_ns == STAMPS_NS)
        assert audience.restarts == 2
        for before, again in zip(everything, audience.frames, strict=True):
            np.testing.assert_array_equal(before.color, again.color)
            np.testing.assert_array_equal(before.depth_m, again.depth_m)

        info = audience.infos[-1]
        assert (info.dataset, info.scene, info.condition) == ('small', 'room', 'camera')
        assert (info.simulator, info.frame_count) == ('recorded', len(FRAMES))
        assert info.frame_rate == pytest.approx(25.0)
        assert audience.lights == []
        assert set(np.unique(audience.frames[0].semantic)) <= {*LABELS.ids, 65535}
