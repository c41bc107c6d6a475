"""Plays a bag into the ROS domain of this shell, and shows the progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from select import select
from typing import Any

from osmabench_ros.base.contract import BAG_PLAYER as BAG_PLAYER
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.runner.foreground import ForegroundNode, foreground_node
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.errors import RunError
from osmabench_ros.sequences.bags.playback import PlaybackSettings


def replay(
    settings: PlaybackSettings,
    *,
    remap: Sequence[str] = (),
    progress: Progress,
    log: Callable[[str], None],
) -> int:
    """Play a bag to its end, or until Ctrl-C; return how many messages were played."""
    arguments = ['-p', 'autostart:=true', '--log-level', 'warn']
    arguments += [item for rule in remap for item in ('-r', rule)]
    node = NodeSpec(BAG_PLAYER, 'bag_player_node', settings)
    with foreground_node(node, arguments) as player, _watch() as watch:
        while player.poll() is None:
            _show_progress(player, watch, progress, log)
            if settings.paused and _enter_pressed():
                watch.step()
        _show_progress(player, watch, progress, log)
        if player.poll() != 0:
            raise RunError(f'playing failed: {player.reason()}')
        return int(watch.state.frames_published)


def _show_progress(
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
    """Follows the state of the player and asks it to step."""

    def __init__(self, node: Any, executor: Any) -> None:
        from osmabench_ros.base import contract
        from osmabench_ros.msg import RunState
        from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
        from osmabench_ros.ros.wire.matched_client import MatchedClient
        from osmabench_ros.ros.wire.qos import latched_profile
        from osmabench_ros.srv import StepRun

        self._executor = executor
        self._step_request = StepRun.Request
        self._owed = 0
        self._stepper = MatchedClient(node, StepRun, contract.STEP_RUN, BAG_PLAYER)
        self.state = RunState()
        create_checked_subscription(
            node, RunState, f'{BAG_PLAYER}/state', self._on_state, latched_profile()
        )

    def _on_state(self, message: Any) -> None:
        self.state = message

    def step(self) -> None:
        """Request one frame as soon as the player's service is available."""
        self._owed += 1

    def spin(self, seconds: float) -> None:
        """Process messages for a while."""
        deadline_s = time.monotonic() + seconds
        if self._stepper.ready() and self._owed:
            self._stepper.call(self._step_request(frames=self._owed))
            self._owed = 0
        while (left_s := deadline_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left_s)


@contextmanager
def _watch() -> Iterator[_Watch]:
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    from osmabench_ros.ros.wire.matched_client import CommandExecutor

    context = rclpy.Context()
    # Ctrl-C stays Python's, so that it ends the player too.
    rclpy.init(context=context, args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node('osmabench_replay', context=context)
        executor = CommandExecutor(context=context)
        executor.add_node(node)
        yield _Watch(node, executor)
        executor.shutdown()
    finally:
        context.try_shutdown()
