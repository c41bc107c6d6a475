"""Records from, or plays into, the ROS domain of this shell by one node, while a command runs."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from select import select

from rclpy.executors import Executor
from rclpy.node import Node

from osmabench_ros.base.contract import BAG_PLAYER, STEP_RUN
from osmabench_ros.base.files import check_folder
from osmabench_ros.base.processes import signals_held
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.runner.processes import ManagedProcess
from osmabench_ros.bringup.spec.definition import recorder_node
from osmabench_ros.bringup.spec.isolation import transport_environment
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.msg import RunState
from osmabench_ros.ros.node.lifecycle import ERROR_PREFIX
from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
from osmabench_ros.ros.wire.matched_client import MatchedClient, command_node
from osmabench_ros.ros.wire.qos import latched_profile
from osmabench_ros.sequences.bags.playback import PlaybackSettings
from osmabench_ros.sequences.bags.recording_report import (
    RecordingReport,
    RecordingSettings,
    read_report,
)
from osmabench_ros.srv import StepRun


class ForegroundNode(ManagedProcess):
    """A node in its own process, in the ROS domain of this shell."""

    _read_to = 0

    def new_lines(self) -> list[str]:
        """Return new complete lines of its log, except the error that it ends with."""
        with self.log_file.open('rb') as log:
            log.seek(self._read_to)
            complete, separator, _ = log.read().rpartition(b'\n')
        self._read_to += len(complete) + len(separator)
        lines = complete.decode(errors='replace').splitlines()
        # A node prints its error on stderr, and then logs it.
        return [line for line in lines if not line.startswith((ERROR_PREFIX, '[FATAL]'))]


@contextmanager
def foreground_node(
    spec: NodeSpec, arguments: Sequence[str] = (), *, grace_s: float = 5.0
) -> Iterator[ForegroundNode]:
    """Run a node during the block, and end it within `grace_s` seconds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='osmabench_node_')))
        with signals_held():
            process = ForegroundNode(
                spec.name,
                [*spec.command_line(folder), *arguments],
                folder / f'{spec.name}.log',
                {**os.environ, **transport_environment(), 'PYTHONUNBUFFERED': '1'},
            )
            stack.callback(process.stop, grace_s)
        yield process


FINISH_S = 600.0
"""For what waits to be written on a slow disk, and for the index."""
PERIOD_S = 0.5

Show = Callable[[RecordingReport], None]


def record(
    directory: Path,
    settings: RecordingSettings,
    *,
    duration_s: float = 0.0,
    progress: Show,
    log: Callable[[str], None],
) -> RecordingReport:
    """Record until Ctrl-C or for `duration_s`; RunError if it fails; what was written is kept."""
    check_folder(directory)
    deadline_s = time.monotonic() + duration_s if duration_s else None
    with foreground_node(
        recorder_node(directory, settings), ['-p', 'autostart:=true'], grace_s=FINISH_S
    ) as recorder:
        try:
            while recorder.poll() is None and (
                deadline_s is None or time.monotonic() < deadline_s
            ):
                time.sleep(PERIOD_S)
                for line in recorder.new_lines():
                    log(line)
                _show(directory, progress)
        except (KeyboardInterrupt, SystemExit):
            log('finishing the bag')  # Ctrl-C is how a recording ends
        recorder.stop(FINISH_S)
        if recorder.poll() != 0:
            raise RunError(f'recording failed: {recorder.reason()}')
    return read_report(directory)


def _show(directory: Path, progress: Show) -> None:
    try:
        progress(read_report(directory))
    except SequenceError:
        return  # not written yet


def replay(
    settings: PlaybackSettings,
    *,
    remap: Sequence[str] = (),
    progress: Progress,
    log: Callable[[str], None],
) -> int:
    """Play a bag to its end, or until Ctrl-C; return how many messages were played."""
    # The player and who watches it must speak through the same transports.
    os.environ.update(transport_environment())
    arguments = ['-p', 'autostart:=true', '--log-level', 'warn']
    arguments += [item for rule in remap for item in ('-r', rule)]
    node = NodeSpec(BAG_PLAYER, 'bag_player_node', settings)
    with (
        foreground_node(node, arguments) as player,
        command_node('osmabench_replay') as (listener, executor),
    ):
        watch, steps, over = _Watch(listener, progress), 0, False
        stepper = MatchedClient(listener, StepRun, STEP_RUN, BAG_PLAYER)
        while not over:
            over = player.poll() is not None
            _spin(executor, LOOK_S)
            for line in player.new_lines():
                log(line)
            if settings.paused and not over:
                steps += _enter_pressed()
                if steps and stepper.ready():
                    stepper.call(StepRun.Request(frames=steps))
                    steps = 0
        if player.poll() != 0:
            raise RunError(f'playing failed: {player.reason()}')
        return watch.played


LOOK_S = 0.1


def _spin(executor: Executor, seconds: float) -> None:
    deadline_s = time.monotonic() + seconds
    while (left_s := deadline_s - time.monotonic()) > 0:
        executor.spin_once(timeout_sec=left_s)


def _enter_pressed() -> bool:
    if not sys.stdin.isatty() or not select([sys.stdin], [], [], 0.0)[0]:
        return False
    return bool(sys.stdin.readline())


class _Watch:
    """Shows the state of the player."""

    def __init__(self, node: Node, progress: Progress) -> None:
        self.played = 0
        self._progress = progress
        topic, latched = f'{BAG_PLAYER}/state', latched_profile()
        create_checked_subscription(node, RunState, topic, self._show, latched)

    def _show(self, state: RunState) -> None:
        self.played, total = int(state.frames_published), state.frames_total
        if total:
            paused = ' (paused)' if state.state == state.STATE_PAUSED else ''
            position = state.message.partition(';')[0]
            text = f'{position}, {self.played} of {total} messages{paused}'
            self._progress(text, self.played / total)
