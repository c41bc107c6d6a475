"""The services of simulation_interfaces, where that package is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from osmabench_ros.base import contract
from osmabench_ros.base.configuration import version
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.ros.node.run_control import ControllableRun, RunPhase, WrongStateError

try:
    from simulation_interfaces.action import SimulateSteps
    from simulation_interfaces.msg import Result, SimulationState, SimulatorFeatures
    from simulation_interfaces.srv import (
        GetSimulationState,
        GetSimulatorFeatures,
        ResetSimulation,
        SetSimulationState,
        StepSimulation,
    )

    AVAILABLE = True
except ImportError:
    AVAILABLE = False


class SimulationServices:
    """Serves what Gazebo and Isaac Sim serve, as far as a run has it, if the package is there."""

    def __init__(self, node: Node, run: ControllableRun) -> None:
        self._run = run
        self._waiting: list[Future] = []
        self._paused_at_start = False
        if AVAILABLE:
            self._serve(node)

    def _serve(self, node: Node) -> None:
        # A step answers only when it is done; others must be answered meanwhile.
        group = ReentrantCallbackGroup()
        for kind, name, answer in (
            (GetSimulatorFeatures, contract.GET_SIMULATOR_FEATURES, self._features),
            (GetSimulationState, contract.GET_SIMULATION_STATE, self._get_state),
            (SetSimulationState, contract.SET_SIMULATION_STATE, self._set_state),
            (StepSimulation, contract.STEP_SIMULATION, self._step),
            (ResetSimulation, contract.RESET_SIMULATION, self._reset),
        ):
            node.create_service(kind, name, answer, callback_group=group)
        ActionServer(
            node,
            SimulateSteps,
            contract.SIMULATE_STEPS,
            self._simulate_steps,
            callback_group=group,
            cancel_callback=self._cancel,
        )

    def notify(self) -> None:
        """Wake waiting steps, as the state of the run may have changed."""
        if not self._held_at_start():
            self._paused_at_start = False
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(None)

    def _change(self) -> Future:
        future = Future()
        self._waiting.append(future)
        return future

    def _features(self, _request: Any, response: Any) -> Any:
        kinds = SimulatorFeatures
        response.features.features = [
            kinds.SIMULATION_RESET,
            kinds.SIMULATION_STATE_GETTING,
            kinds.SIMULATION_STATE_SETTING,
            kinds.SIMULATION_STATE_PAUSE,
            kinds.STEP_SIMULATION_SINGLE,
            kinds.STEP_SIMULATION_MULTIPLE,
            kinds.STEP_SIMULATION_ACTION,
        ]
        response.features.custom_info = f'osmabench_ros {version()}; a step is a frame'
        return response

    def _state(self) -> int:
        phase = self._run.phase
        if phase in (RunPhase.RUNNING, RunPhase.WAITING):
            return int(SimulationState.STATE_PLAYING)
        if self._held_at_start() and not self._paused_at_start:
            return int(SimulationState.STATE_STOPPED)
        return int(SimulationState.STATE_PAUSED)

    def _held_at_start(self) -> bool:
        return self._run.phase is RunPhase.PAUSED and self._run.frames_published == 0

    def _get_state(self, _request: Any, response: Any) -> Any:
        response.state.state = self._state()
        response.result = Result(result=Result.RESULT_OK)
        return response

    def _set_state(self, request: Any, response: Any) -> Any:
        wanted = request.state.state
        changes: dict[int, Callable[[], None]] = {
            SimulationState.STATE_STOPPED: self._stop,
            SimulationState.STATE_PLAYING: self._run.start_run,
            SimulationState.STATE_PAUSED: self._pause,
            SimulationState.STATE_QUITTING: self._run.quit_run,
        }
        if wanted not in changes:
            response.result = Result(
                result=Result.RESULT_FEATURE_UNSUPPORTED,
                error_message=f'state {wanted} is none that a run can be put into',
            )
        elif wanted == self._state():
            response.result = Result(result=response.ALREADY_IN_TARGET_STATE)
        else:
            response.result = _tried(changes[wanted], wrong_state=response.STATE_TRANSITION_ERROR)
        return response

    def _stop(self) -> None:
        if self._run.phase in (RunPhase.RUNNING, RunPhase.WAITING):
            self._run.pause_run()
        self._run.reset_run()
        self._paused_at_start = False
        if self._run.phase is not RunPhase.PAUSED:
            self._run.pause_run()

    def _pause(self) -> None:
        if self._run.phase is RunPhase.PAUSED:
            self._paused_at_start = True
        else:
            self._run.pause_run()

    def _reset(self, request: Any, response: Any) -> Any:
        both = ResetSimulation.Request.SCOPE_TIME | ResetSimulation.Request.SCOPE_STATE
        if request.scope != ResetSimulation.Request.SCOPE_DEFAULT and request.scope & both != both:
            response.result = Result(
                result=Result.RESULT_FEATURE_UNSUPPORTED,
                error_message='time and poses come from the frames; reset both, or all',
            )
        else:
            response.result = _tried(self._run.reset_run)
        return response

    async def _step(self, request: Any, response: Any) -> Any:
        response.result = self._started(request.steps)
        if response.result.result == Result.RESULT_OK:
            first = self._run.frames_published
            while self._going_on():
                await self._change()
            response.result = self._outcome(request.steps, self._run.frames_published - first)
        return response

    def _cancel(self, _goal: Any) -> CancelResponse:
        self.notify()
        return CancelResponse.ACCEPT

    async def _simulate_steps(self, goal: Any) -> Any:
        steps, result = goal.request.steps, self._started(goal.request.steps)
        if result.result != Result.RESULT_OK:
            goal.abort()
            return SimulateSteps.Result(result=result)
        first, done = self._run.frames_published, 0
        while self._going_on() and not goal.is_cancel_requested:
            await self._change()
            if self._run.frames_published - first > done:
                done = self._run.frames_published - first
                goal.publish_feedback(
                    SimulateSteps.Feedback(completed_steps=done, remaining_steps=steps - done)
                )
        if goal.is_cancel_requested:
            if self._going_on():
                self._run.pause_run()
            goal.canceled()
            return SimulateSteps.Result(result=self._outcome(steps, done))
        result = self._outcome(steps, done)
        goal.succeed() if result.result == Result.RESULT_OK else goal.abort()
        return SimulateSteps.Result(result=result)

    def _started(self, steps: int) -> Any:
        if steps < 1:
            return Result(
                result=Result.RESULT_OPERATION_FAILED, error_message='steps must be 1 or more'
            )
        # The interface asks for this code, not for RESULT_INCORRECT_STATE.
        return _tried(
            lambda: self._run.step_run(steps), wrong_state=Result.RESULT_OPERATION_FAILED
        )

    def _going_on(self) -> bool:
        return self._run.phase in (RunPhase.RUNNING, RunPhase.WAITING)

    def _outcome(self, steps: int, done: int) -> Any:
        if done == steps:
            return Result(result=Result.RESULT_OK)
        return Result(
            result=Result.RESULT_OPERATION_FAILED,
            error_message=f'{max(done, 0)} of {steps} steps were made; '
            f'the run is {self._run.phase.name.lower()}',
        )


def _tried(command: Callable[[], None], *, wrong_state: int | None = None) -> Any:
    """Return the Result of a command."""
    try:
        command()
    except WrongStateError as error:
        code = Result.RESULT_INCORRECT_STATE if wrong_state is None else wrong_state
        return Result(result=code, error_message=str(error))
    except OsmabenchError as error:
        return Result(result=Result.RESULT_OPERATION_FAILED, error_message=str(error))
    return Result(result=Result.RESULT_OK)
