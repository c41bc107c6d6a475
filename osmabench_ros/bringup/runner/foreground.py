"""Runs one node beside a running stack, as long as a command lasts, such as a recorder."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from osmabench_ros.base.files import check_folder
from osmabench_ros.base.processes import signals_held
from osmabench_ros.bringup.runner.processes import ManagedProcess
from osmabench_ros.bringup.spec.isolation import transport_environment
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.bringup.spec.run_recording import recorder_node
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.ros.node.lifecycle import ERROR_PREFIX
from osmabench_ros.sequences.bags.recording_report import (
    RecordingReport,
    RecordingSettings,
    read_report,
)

LogLine = Callable[[str], None]
"""Gets a line that the node logs."""


class ForegroundNode:
    """A node in its own process, in the ROS domain of this shell."""

    def __init__(self, process: ManagedProcess) -> None:
        self._process = process
        self._read_to = 0
        self._reason = ''

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._process.poll()

    def reason(self) -> str:
        """Return why it ended."""
        return self._process.reason()

    def stop(self, grace_s: float) -> None:
        """Ask it to end, and wait."""
        self._process.stop(grace_s)

    def new_lines(self) -> list[str]:
        """Return new complete lines of its log, except its `reason`."""
        with self._process.log_file.open('rb') as log:
            log.seek(self._read_to)
            complete, separator, _ = log.read().rpartition(b'\n')
        self._read_to += len(complete) + len(separator)
        lines = complete.decode(errors='replace').splitlines() if complete else []
        return [line for line in lines if not self._is_reason(line)]

    def _is_reason(self, line: str) -> bool:
        # A node prints its error on stderr, and then logs it.
        if line.startswith(ERROR_PREFIX):
            self._reason = line.removeprefix(ERROR_PREFIX)
            return True
        return bool(self._reason) and line.startswith('[FATAL]') and line.endswith(self._reason)


@contextmanager
def foreground_node(
    spec: NodeSpec, arguments: Sequence[str] = (), *, grace_s: float = 5.0
) -> Iterator[ForegroundNode]:
    """Run a node during the block, and end it within `grace_s` seconds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='osmabench_node_')))
        with signals_held():
            process = ManagedProcess(
                spec.name,
                [*spec.command_line(folder), *arguments],
                folder / f'{spec.name}.log',
                {**os.environ, **transport_environment(), 'PYTHONUNBUFFERED': '1'},
            )
            stack.callback(process.stop, grace_s)
        yield ForegroundNode(process)


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
