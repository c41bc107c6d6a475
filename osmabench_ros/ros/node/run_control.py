"""The states of a run, the transitions between them, and the services that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from osmabench_ros.base import contract
from osmabench_ros.errors import OsmabenchError

if TYPE_CHECKING:
    from rclpy.node import Node

    from osmabench_ros.msg import RunState


class RunPhase(IntEnum):
    """State of a run; the numbers are as in RunState.state."""

    WAITING = 0
    RUNNING = 1
    PAUSED = 2
    FINISHED = 3
    FAILED = 4


class WrongStateError(OsmabenchError):
    """The request is not allowed in the current state of the run."""


class _Pace(Enum):
    FREE = 'free'
    STEPPING = 'stepping'
    HELD = 'held'


@dataclass
class RunControl:
    """The states of a run: waiting, publishing, held (before the first frame too), stepping."""

    start_paused: bool = False
    # Whether the node is; without it nothing goes on.
    active: bool = field(default=False, init=False)
    _matched: bool = field(default=False, init=False)
    _over: RunPhase | None = field(default=None, init=False)
    _pace: _Pace = field(default=_Pace.FREE, init=False)
    _steps_left: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._hold_if(self.start_paused)

    @property
    def phase(self) -> RunPhase:
        """State of the run."""
        if self._over is not None:
            return self._over
        if self._pace is _Pace.HELD:
            return RunPhase.PAUSED
        if not self._matched:
            return RunPhase.WAITING
        return RunPhase.RUNNING if self.active else RunPhase.PAUSED

    @property
    def may_publish(self) -> bool:
        """Whether the state allows another frame."""
        stepped = self._pace is _Pace.STEPPING and self._steps_left == 0
        return self.phase is RunPhase.RUNNING and not stepped

    @property
    def awaits(self) -> str:
        """Why the run waits before the next frame, as text; empty if for nothing."""
        if self.phase not in (RunPhase.WAITING, RunPhase.PAUSED):
            return ''
        if not self.active:
            return 'waiting to be activated'
        if self.phase is RunPhase.WAITING:
            return 'waiting for participants'
        return 'paused; start_run or step_run goes on'

    def match(self) -> None:
        """Note that every participant is connected."""
        self._matched = True

    def start(self) -> None:
        """Resume, or start to wait for the participants."""
        self._require_under_way()
        if self.phase is RunPhase.RUNNING and self._pace is _Pace.FREE:
            raise WrongStateError('the run is going on already')
        self._pace = _Pace.FREE

    def pause(self) -> None:
        """Pause, also before the first frame."""
        self._require_under_way()
        if self.phase is RunPhase.PAUSED:
            raise WrongStateError('the run is paused already')
        self._hold_if(True)

    def step(self, frames: int) -> None:
        """Go on by some frames after those asked for before, then pause; 0 counts as 1."""
        self._require_under_way()
        if self._pace is _Pace.FREE:
            raise WrongStateError('the run is not paused; pause it before a step')
        self._pace = _Pace.STEPPING
        self._steps_left += max(frames, 1)

    def reset(self) -> None:
        """Go back to frame 0; a paused run stays paused."""
        self._require_not_failed()
        self._over, self._matched = None, False
        self._hold_if(self.start_paused or self._pace is not _Pace.FREE)

    def count_frame(self) -> None:
        """Note that a frame was published."""
        self._steps_left = max(self._steps_left - 1, 0)

    def end_steps(self) -> bool:
        """Pause once all steps are done; return whether that happened now."""
        ended = self._pace is _Pace.STEPPING and self._steps_left == 0
        if ended:
            self._pace = _Pace.HELD
        return ended

    def finish(self) -> None:
        """Note that all frames were published."""
        self._over = RunPhase.FINISHED

    def fail(self) -> None:
        """Note that the run cannot go on."""
        self._over = RunPhase.FAILED

    def _hold_if(self, held: bool) -> None:
        self._pace, self._steps_left = _Pace.HELD if held else _Pace.FREE, 0

    def _require_not_failed(self) -> None:
        if not self.active:
            raise WrongStateError('the node is not active; activate it by its lifecycle')
        if self._over is RunPhase.FAILED:
            raise WrongStateError('the run has failed and ends')

    def _require_under_way(self) -> None:
        self._require_not_failed()
        if self._over is RunPhase.FINISHED:
            raise WrongStateError('the run is over; reset it to start from frame 0')


def serve_run_control(
    node: Node,
    control: RunControl,
    follow: Callable[[str], None],
    state: Callable[[], RunState],
) -> None:
    """Serve `start_run`, `pause_run`, `step_run` and `reset_run`.

    `follow` gets the name of a service that has changed the control; every response has a `state`.
    """
    from osmabench_ros.srv import ControlRun, StepRun

    def serve(kind: type[Any], name: str, command: Callable[[Any], None]) -> None:
        def answer(request: Any, response: Any) -> Any:
            try:
                command(request)
                follow(name)
            except WrongStateError as error:
                response.error_code, response.error_msg = response.ERROR_WRONG_STATE, str(error)
            except OsmabenchError as error:
                response.error_code, response.error_msg = response.ERROR_FAILED, str(error)
            response.state = state()
            return response

        node.create_service(kind, name, answer)

    serve(ControlRun, contract.START_RUN, lambda _request: control.start())
    serve(ControlRun, contract.PAUSE_RUN, lambda _request: control.pause())
    serve(ControlRun, contract.RESET_RUN, lambda _request: control.reset())
    serve(StepRun, contract.STEP_RUN, lambda request: control.step(request.frames))
