"""The services that start, pause, step and reset a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from rclpy.node import Node

from osmabench_ros.base import contract
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.msg import RunState
from osmabench_ros.ros.node.run_control import RunPhase, WrongStateError
from osmabench_ros.srv import ControlRun, StepRun


class ControllableRun(Protocol):
    """Interface of a run to its services; WrongStateError if a request is not allowed now."""

    @property
    def phase(self) -> RunPhase:
        """State of the run."""
        ...

    @property
    def frames_published(self) -> int:
        """Frames since the start or the last reset."""
        ...

    def state_message(self) -> RunState:
        """Return the current run_state message."""
        ...

    def start_run(self) -> None:
        """Resume, or start to wait for the participants."""
        ...

    def pause_run(self) -> None:
        """Publish no further frame."""
        ...

    def step_run(self, frames: int) -> None:
        """Publish some frames, then pause again."""
        ...

    def reset_run(self) -> None:
        """Start over from frame 0."""
        ...

    def quit_run(self) -> None:
        """End the process."""
        ...


class RunServices:
    """Serves `start_run`, `pause_run`, `step_run` and `reset_run`."""

    def __init__(self, node: Node, run: ControllableRun) -> None:
        self._run = run
        for name, command in (
            (contract.START_RUN, run.start_run),
            (contract.PAUSE_RUN, run.pause_run),
            (contract.RESET_RUN, run.reset_run),
        ):
            node.create_service(ControlRun, name, self._server(command))
        node.create_service(StepRun, contract.STEP_RUN, self._step)

    def _server(self, command: Callable[[], None]) -> Callable[[Any, Any], Any]:
        return lambda _request, response: self._answer(response, command)

    def _step(self, request: Any, response: Any) -> Any:
        return self._answer(response, lambda: self._run.step_run(request.frames))

    def _answer(self, response: Any, command: Callable[[], None]) -> Any:
        try:
            command()
        except WrongStateError as error:
            response.error_code, response.error_msg = response.ERROR_WRONG_STATE, str(error)
        except OsmabenchError as error:
            response.error_code, response.error_msg = response.ERROR_FAILED, str(error)
        response.state = self._run.state_message()
        return response
