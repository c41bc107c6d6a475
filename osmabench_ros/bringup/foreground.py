"""One node beside a stack that is already running, for as long as a command lasts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from osmabench_ros.base.held_signals import signals_held
from osmabench_ros.bringup.isolation import transport_environment
from osmabench_ros.bringup.node_spec import NodeSpec
from osmabench_ros.bringup.processes import ManagedProcess
from osmabench_ros.ros.lifecycle import ERROR_PREFIX

LogLine = Callable[[str], None]
"""Gets a line that the node logs."""


class ForegroundNode:
    """A node in a process of its own, in the ROS domain of this shell."""

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
        """Return complete lines of its log that were not returned before, save its `reason`."""
        with self._process.log_file.open('rb') as log:
            log.seek(self._read_to)
            complete, separator, _ = log.read().rpartition(b'\n')
        self._read_to += len(complete) + len(separator)
        lines = complete.decode(errors='replace').splitlines() if complete else []
        return [line for line in lines if not self._tells_reason(line)]

    def _tells_reason(self, line: str) -> bool:
        # A node tells it on stderr, and then to its logger.
        if line.startswith(ERROR_PREFIX):
            self._reason = line.removeprefix(ERROR_PREFIX)
            return True
        return bool(self._reason) and line.startswith('[FATAL]') and line.endswith(self._reason)


@contextmanager
def foreground_node(
    spec: NodeSpec, arguments: Sequence[str] = (), *, grace_s: float = 5.0
) -> Iterator[ForegroundNode]:
    """Yield a node that runs and ends with the block, within `grace_s` seconds.

    Further ROS arguments, such as remappings, go to its command line.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='osmabench_node_')))
        parameter_file = folder / f'{spec.name}.yaml'
        parameter_file.write_text(yaml.safe_dump(spec.parameter_document()))
        with signals_held():
            process = ManagedProcess(
                spec.name,
                [*spec.command_line(str(parameter_file)), *arguments],
                folder / f'{spec.name}.log',
                {**os.environ, **transport_environment(), 'PYTHONUNBUFFERED': '1'},
            )
            stack.callback(process.stop, grace_s)
        yield ForegroundNode(process)
