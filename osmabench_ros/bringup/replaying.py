"""Plays a bag into the ROS domain of this shell, and shows how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

from osmabench_ros.bringup.foreground import ForegroundNode, foreground_node
from osmabench_ros.bringup.node_spec import NodeSpec
from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.ros.node_names import BAG_PLAYER as BAG_PLAYER
from osmabench_ros.sequences.playback import PlaybackOptions

Progress = Callable[[str, float], None]
"""Gets what is going on and the fraction done, 0 to 1."""


@dataclass(frozen=True)
class ReplaySettings:
    """What to play, and how; raises ConfigError if a remapping is malformed.

    With `step` a frame is played whenever Enter is pressed; no topics are all; a remapping is like
    ``/camera/color/image_raw:=/image``; `msg_paths` have message definitions that the bag lacks.
    """

    bag: Path
    options: PlaybackOptions = field(default_factory=PlaybackOptions)
    step: bool = False
    clock: bool = True
    topics: tuple[str, ...] = ()
    remap: tuple[str, ...] = ()
    msg_paths: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for rule in self.remap:
            name, separator, target = rule.partition(':=')
            if not (name and separator and target):
                raise ConfigError(f'remapping "{rule}" is malformed; write FROM:=TO')

    def node(self) -> NodeSpec:
        """Return the node that does it."""
        return NodeSpec(
            BAG_PLAYER,
            'bag_player_node',
            {
                'bag': str(self.bag.absolute()),
                'msg_paths': [str(path.absolute()) for path in self.msg_paths] or [''],
                'rate': float(self.options.rate),
                'start_s': float(self.options.start_s),
                'duration_s': float(self.options.duration_s),
                'loop': self.options.loop,
                'paused': self.step,
                'clock': self.clock,
                'topics': list(self.topics) or [''],
            },
        )


def replay(settings: ReplaySettings, *, progress: Progress, log: Callable[[str], None]) -> int:
    """Play a bag to its end, or until Ctrl-C; return how many messages were played.

    Raises RunError with the reason if the player fails.
    """
    arguments = ['-p', 'autostart:=true', '--log-level', 'warn']
    arguments += [item for rule in settings.remap for item in ('-r', rule)]
    with foreground_node(settings.node(), arguments) as player, _watch() as watch:
        while player.poll() is None:
            _tell(player, watch, progress, log)
            if settings.step and _enter_pressed():
                watch.step()
        _tell(player, watch, progress, log)
        if player.poll() != 0:
            raise RunError(f'playing failed: {player.reason()}')
        return int(watch.state.frames_published)


def _tell(
    player: ForegroundNode, watch: _Watch, progress: Progress, log: Callable[[str], None]
) -> None:
    watch.spin(0.1)
    for line in player.new_lines():
        log(line)
    state = watch.state
    if state.frames_total:
        paused = ' (paused)' if state.state == state.STATE_PAUSED else ''
        played = f'{state.frames_published} of {state.frames_total} messages'
        position = state.message.partition(';')[0]
        progress(f'{position}, {played}{paused}', state.frames_published / state.frames_total)


def _enter_pressed() -> bool:
    if not sys.stdin.isatty() or not select([sys.stdin], [], [], 0.0)[0]:
        return False
    return bool(sys.stdin.readline())


class _Watch:
    """Listens to the player and asks it to step."""

    def __init__(self, node: Any, executor: Any) -> None:
        from osmabench_ros.msg import RunState
        from osmabench_ros.ros import services
        from osmabench_ros.ros.checked_subscription import create_checked_subscription
        from osmabench_ros.ros.matched_client import MatchedClient
        from osmabench_ros.ros.qos import latched_profile
        from osmabench_ros.srv import StepRun

        self._executor = executor
        self._step_request = StepRun.Request
        self._owed = 0
        self._stepper = MatchedClient(node, StepRun, services.STEP_RUN, BAG_PLAYER)
        self.state = RunState()
        create_checked_subscription(
            node, RunState, f'{BAG_PLAYER}/state', self._on_state, latched_profile()
        )

    def _on_state(self, message: Any) -> None:
        self.state = message

    def step(self) -> None:
        """Ask for one frame, as soon as the player can be asked."""
        self._owed += 1

    def spin(self, seconds: float) -> None:
        """Look after messages for a while."""
        deadline_s = time.monotonic() + seconds
        if self._stepper.ready() and self._owed:
            self._stepper.call(self._step_request(frames=self._owed))
            self._owed = 0
        while (left_s := deadline_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left_s)


@contextmanager
def _watch() -> Iterator[_Watch]:
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    context = rclpy.Context()
    # Ctrl-C stays Python's, so that it ends the player too.
    rclpy.init(context=context, args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node('osmabench_replay', context=context)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        yield _Watch(node, executor)
        executor.shutdown()
    finally:
        context.try_shutdown()
