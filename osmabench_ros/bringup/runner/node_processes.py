"""The processes of the nodes of runs; those of our own nodes serve several runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe
from pathlib import Path

from osmabench_ros.base.files import create_file
from osmabench_ros.base.processes import end_processes, signals_held
from osmabench_ros.bringup.runner.node_host import HostedEnd, HostedRun
from osmabench_ros.bringup.runner.processes import ManagedProcess
from osmabench_ros.bringup.spec.isolation import MESSAGE_VARIABLE, SEGMENT_VARIABLE
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.errors import RequirementError

RUN_VARIABLE = 'OSMABENCH_RUN'
OF_A_RUN = frozenset({RUN_VARIABLE, 'ROS_DOMAIN_ID', SEGMENT_VARIABLE, MESSAGE_VARIABLE})
"""Variables that a warm process takes on with a run; its shared memory keeps its size."""

VERDICTS = (0, RequirementError.exit_code)
"""Exit codes after which a process is as good as new."""

MOST_IDLE = 8
"""Warm processes that wait for a run, such as those of several mappers."""

GRACE_S = 5.0
ASK_EVERY_S = 0.5


class HostProcess(ManagedProcess):
    """A process of ours that takes one node after another; to a run it is like a new one."""

    descendants_every_s = 2.0

    def __init__(self, spec: NodeSpec, run: HostedRun) -> None:
        self._channel, theirs = Pipe()
        self.runs = 0
        self._end: HostedEnd | None = None
        with theirs:
            handle = theirs.fileno()
            command = [sys.executable, '-m', HOST_MODULE, spec.module, str(handle)]
            super().__init__(spec.name, command, run.log_file, run.environment, pass_fds=[handle])
        self.begin(run)

    def host(self, spec: NodeSpec, run: HostedRun) -> bool:
        """Begin another run; return False if the process has died meanwhile."""
        if super().poll() is not None:
            return False
        self.name, self.log_file = spec.name, run.log_file
        self.forget_peaks()
        return self.begin(run)

    def begin(self, run: HostedRun) -> bool:
        """Send the run to the process; false if it has ended."""
        self._end = None
        self.runs += 1
        with suppress(OSError):
            self._channel.send(run)
            return True
        return False

    def poll(self) -> int | None:
        """Return the exit code of the node, None while it runs; samples memory too."""
        code = super().poll()
        if self._end is None:
            with suppress(EOFError, OSError):
                if self._channel.poll():
                    self._end = self._channel.recv()
        return code if self._end is None else self._end.exit_code

    def ask_to_end(self) -> None:
        """Send the node what Ctrl-C sends, and do not wait."""
        if self._end is None:
            self.interrupt()

    def ended_clean(self) -> bool:
        """Wait for the node to end; return whether the process may host another."""
        start_s = asked_s = time.monotonic()
        while self.poll() is None:
            now_s = time.monotonic()
            if now_s - start_s > GRACE_S:
                return False
            if now_s - asked_s > ASK_EVERY_S:
                # A node that was just starting has not heard it.
                asked_s = now_s
                self.ask_to_end()
            time.sleep(0.01)
        if self._end is None or not self._end.clean or self._end.exit_code not in VERDICTS:
            return False
        # As at the end of a process of its own.
        end_processes([item for item in self.family() if item.pid != self.pid], GRACE_S)
        return True

    def retire(self) -> None:
        """Let it end by itself, if it hosts nothing."""
        self._channel.close()

    def stop(
        self, grace_s: float = GRACE_S, numbers: Sequence[int] = ManagedProcess.ENDING_ORDER
    ) -> None:
        """End it as any process of a run."""
        self.retire()
        super().stop(grace_s, numbers)


HOST_MODULE = 'osmabench_ros.bringup.runner.node_host'


class NodeProcesses:
    """Starts the processes of runs, and keeps those of our own nodes for the next runs.

    One is replaced by a new one after a failure, after `runs_each` runs, and where what is fixed
    at its start differs: the environment, or the method that it maps with. Programs of others are
    always new.
    """

    def __init__(self, runs_each: int) -> None:
        self._runs_each = runs_each
        self._idle: list[tuple[object, HostProcess]] = []
        self._keys: dict[HostProcess, object] = {}

    def start(
        self, spec: NodeSpec, folder: Path, environment: Mapping[str, str]
    ) -> ManagedProcess:
        """Start a node with its plan and log in a folder."""
        log_file = folder / f'{spec.name}.log'
        if not spec.hosted:
            command = spec.command_line(folder)
            with signals_held():
                return ManagedProcess(spec.name, command, log_file, environment)
        run = HostedRun(tuple(spec.arguments(folder)), environment, log_file)
        fixed = {name: text for name, text in environment.items() if name not in OF_A_RUN}
        key = (spec.module, spec.method, fixed)
        for process in [item for known, item in self._idle if known == key]:
            create_file(log_file).close()
            if process.host(spec, run):
                self._idle.remove((key, process))
                return process
            self._drop(process)
        with signals_held():
            process = HostProcess(spec, run)
        self._keys[process] = key
        return process

    def end(self, processes: dict[str, ManagedProcess]) -> None:
        """End the nodes of a run that went well; takes out of `processes` what is kept."""
        hosts = {
            name: item
            for name, item in processes.items()
            if isinstance(item, HostProcess) and item.runs < self._runs_each
        }
        for item in hosts.values():
            item.ask_to_end()
        for name, item in hosts.items():
            if item.ended_clean():
                self._idle.append((self._keys[item], item))
                del processes[name]
        while len(self._idle) > MOST_IDLE:
            self._drop(self._idle[0][1])

    def close(self) -> None:
        """End the processes that wait."""
        for _, item in self._idle:
            item.retire()
        for _, item in self._idle:
            item.wait(GRACE_S)
        while self._idle:
            self._drop(self._idle[-1][1])

    def _drop(self, process: HostProcess) -> None:
        self._idle = [item for item in self._idle if item[1] is not process]
        del self._keys[process]
        process.stop()
