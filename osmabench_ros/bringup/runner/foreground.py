"""Records or plays a bag by a node in this process, in the ROS domain of this shell."""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Any

from osmabench_ros.base.contract import BAG_PLAYER, STEP_RUN
from osmabench_ros.base.files import check_folder
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.definition import NodeSpec, recorder_node
from osmabench_ros.bringup.isolation import transport_environment
from osmabench_ros.msg import RunState
from osmabench_ros.nodes.bag_player_node import BagPlayerNode
from osmabench_ros.nodes.bag_recorder_node import BagRecorderNode
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import INTERRUPTED, run_node
from osmabench_ros.ros.node.parameters import AUTOSTART
from osmabench_ros.ros.node.run_control import WrongStateError
from osmabench_ros.sequences.bags.playback import PlaybackSettings
from osmabench_ros.sequences.bags.recording_report import (
    RecordingReport,
    RecordingSettings,
    read_report,
)

FOLLOW_EVERY_S = 0.2
Show = Callable[[RecordingReport], None]


def record(
    directory: Path, settings: RecordingSettings, *, duration_s: float = 0.0, progress: Show
) -> RecordingReport:
    """Record until Ctrl-C or for `duration_s`; an error leaves the messages written before."""
    check_folder(directory)

    class Recorder(BagRecorderNode):
        def activate(self) -> None:
            super().activate()
            self.create_timer(FOLLOW_EVERY_S, lambda: progress(self.report()))
            if duration_s:
                self.create_timer(duration_s, self.finish)

    _run(Recorder, recorder_node(directory, settings))
    return read_report(directory)


def replay(settings: PlaybackSettings, *, remap: Sequence[str] = (), progress: Progress) -> int:
    """Play a bag to its end; return how many messages were played. Ctrl-C is a SystemExit."""
    states: list[RunState] = []

    class Player(BagPlayerNode):
        def activate(self) -> None:
            super().activate()
            if settings.paused and sys.stdin.isatty():
                self.create_timer(FOLLOW_EVERY_S, self._look_at_terminal)

        def _look_at_terminal(self) -> None:
            with suppress(WrongStateError):  # a service has started or ended it meanwhile
                if select([sys.stdin], [], [], 0.0)[0] and sys.stdin.readline():
                    self._control.step(1)
                    self.follow_command(STEP_RUN)

        def state_message(self) -> RunState:
            states[:] = [super().state_message()]
            _show(states[0], progress)
            return states[0]

    rules = [item for rule in remap for item in ('-r', rule)]
    node = NodeSpec(BAG_PLAYER, 'bag_player_node', settings)
    _run(Player, node, rules)
    if states[0].state != RunState.STATE_FINISHED:
        raise SystemExit(INTERRUPTED)
    return int(states[0].frames_published)


def _show(state: RunState, progress: Progress) -> None:
    paused = ' (paused)' if state.state == state.STATE_PAUSED else ''
    position = state.message.partition(';')[0]
    text = f'{position}, {state.frames_published} of {state.frames_total} messages{paused}'
    progress(text, state.frames_published / max(state.frames_total, 1))


def _run(kind: type[BenchmarkNode[Any]], spec: NodeSpec, rules: Sequence[str] = ()) -> None:
    """Run a node, and raise the error that it ends with."""
    errors: list[Exception] = []

    def fail(node: BenchmarkNode[Any], error: Exception) -> None:
        errors.append(error)
        node.finish(1)

    os.environ.update(transport_environment())
    with tempfile.TemporaryDirectory(prefix='osmabench_node_') as folder:
        given = ['-p', f'{AUTOSTART.name}:=true', '--log-level', 'warn', *rules]
        node = type(kind.__name__, (kind,), {'fail': fail})
        code = run_node(node, [*spec.arguments(Path(folder)), *given])
    if errors:
        raise errors[0]
    if code:
        raise SystemExit(code)
