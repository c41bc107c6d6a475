"""The bridge controlled as any simulator that speaks simulation_interfaces, over DDS."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.slow]
pytest.importorskip('rclpy')
pytest.importorskip('simulation_interfaces', reason='simulation_interfaces is not installed')

from lifecycle_msgs.msg import Transition
from osmabench_ros.msg import RunState
from rclpy.action import ActionClient
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import Result, SimulationState, SimulatorFeatures
from simulation_interfaces.srv import (
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetSimulationState,
    StepSimulation,
)
from support.bridge_process import Audience, bridge_process, write_sequence
from support.recorded_frames import FRAMES

from osmabench_ros.base import contract

STAMPS_NS = [frame.stamp_ns for frame in FRAMES]
PLAYING, PAUSED = SimulationState.STATE_PLAYING, SimulationState.STATE_PAUSED
STOPPED, QUITTING = SimulationState.STATE_STOPPED, SimulationState.STATE_QUITTING
Answer = SetSimulationState.Response


class Operator(Audience):
    """An audience that speaks simulation_interfaces."""

    def current(self) -> int:
        return self.call(GetSimulationState, contract.GET_SIMULATION_STATE).state.state

    def set(self, state: int) -> int:
        request = SimulationState(state=state)
        answer = self.call(SetSimulationState, contract.SET_SIMULATION_STATE, state=request)
        return answer.result.result

    def reset(self, scope: int = 0) -> int:
        answer = self.call(ResetSimulation, contract.RESET_SIMULATION, scope=scope)
        return answer.result.result

    def advance(self, steps: int) -> Result:
        return self.call(StepSimulation, contract.STEP_SIMULATION, steps=steps).result


@pytest.fixture
def operator(ros_domain: int, ros_context: Any, tmp_path: Path) -> Iterator[Operator]:
    operator = Operator(ros_context)
    values = {'sequence': write_sequence(tmp_path / 'room'), 'start_paused': True}
    with bridge_process(ros_domain, **values, pacing='realtime', speed_factor=0.2) as process:
        operator.process = process
        operator.change(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
        yield operator
    operator.executor.shutdown()
    operator.node.destroy_node()


def test_states_steps_and_resets(operator: Operator) -> None:
    features = operator.call(GetSimulatorFeatures, contract.GET_SIMULATOR_FEATURES).features
    assert SimulatorFeatures.STEP_SIMULATION_ACTION in features.features
    assert SimulatorFeatures.SPAWNING not in features.features

    assert operator.current() == STOPPED
    assert operator.set(STOPPED) == Answer.ALREADY_IN_TARGET_STATE
    assert operator.set(PAUSED) == Result.RESULT_OK
    assert operator.current() == PAUSED
    assert operator.advance(0).result == Result.RESULT_OPERATION_FAILED
    assert operator.advance(2).result == Result.RESULT_OK
    # The answer comes when the steps are done.
    assert operator.current() == PAUSED
    operator.spin_until(lambda: operator.stamps_ns == STAMPS_NS[:2])
    outcome = operator.advance(5)
    assert outcome.result == Result.RESULT_OPERATION_FAILED
    assert '2 of 5 steps' in outcome.error_message
    assert operator.set(PLAYING) == Answer.STATE_TRANSITION_ERROR

    assert operator.reset(ResetSimulation.Request.SCOPE_TIME) == Result.RESULT_FEATURE_UNSUPPORTED
    assert operator.reset(ResetSimulation.Request.SCOPE_ALL) == Result.RESULT_OK
    assert operator.current() == STOPPED
    assert operator.set(PLAYING) == Result.RESULT_OK
    assert operator.set(PLAYING) == Answer.ALREADY_IN_TARGET_STATE
    refused = operator.advance(1)
    assert refused.result == Result.RESULT_OPERATION_FAILED
    assert 'not paused' in refused.error_message
    assert operator.set(STOPPED) == Result.RESULT_OK
    assert operator.current() == STOPPED
    operator.spin_until(lambda: operator.state.frames_published == 0)
    assert operator.set(SimulationState.STATE_NO_WORLD) == Result.RESULT_FEATURE_UNSUPPORTED
    assert operator.set(QUITTING) == Result.RESULT_OK
    assert operator.process.wait(timeout=180) == 0


def test_steps_as_an_action_tell_their_progress_and_can_be_cancelled(operator: Operator) -> None:
    client = ActionClient(operator.node, SimulateSteps, contract.SIMULATE_STEPS)
    operator.spin_until(client.server_is_ready)
    feedback: list[tuple[int, int]] = []

    def send(steps: int) -> Any:
        future = client.send_goal_async(
            SimulateSteps.Goal(steps=steps),
            feedback_callback=lambda message: feedback.append(
                (message.feedback.completed_steps, message.feedback.remaining_steps)
            ),
        )
        operator.spin_until(future.done)
        return future.result()

    goal = send(2)
    result = goal.get_result_async()
    operator.spin_until(result.done)
    assert result.result().result.result.result == Result.RESULT_OK
    assert result.result().status == 4
    operator.spin_until(lambda: feedback == [(1, 1), (2, 0)])

    # Two frames are left, 0.2 s apart: time to cancel after the first.
    goal = send(1000)
    operator.spin_until(lambda: (1, 999) in feedback)
    operator.spin_until(goal.cancel_goal_async().done)
    result = goal.get_result_async()
    operator.spin_until(result.done)
    assert result.result().status == 5
    operator.spin_until(lambda: operator.state.state == RunState.STATE_PAUSED)
    assert operator.state.frames_published == 3
