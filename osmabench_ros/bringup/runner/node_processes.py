"""Starts the processes of the nodes of runs; our own nodes are forked from a host."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Pipe
from pathlib import Path

import psutil

from osmabench_ros.base.processes import SupervisedProcess, signals_held
from osmabench_ros.bringup.runner.node_host import NodeOrder
from osmabench_ros.bringup.runner.processes import ManagedProcess
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.errors import RunError

HOST_MODULE = 'osmabench_ros.bringup.runner.node_host'
IMPORT_TIMEOUT_S = 120.0
END_S = 5.0

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
"""Options of prctl(2)."""


class HostProcess(SupervisedProcess):
    """The process that forks a new process for each node."""

    def __init__(self, log_file: Path, environment: Mapping[str, str]) -> None:
        self._channel, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            command = [sys.executable, '-m', HOST_MODULE, str(handle)]
            super().__init__('node host', command, log_file, environment, pass_fds=[handle])

    def fork(self, order: NodeOrder) -> psutil.Process:
        """Start the process of a node; RunError if the host cannot."""
        with suppress(EOFError, OSError, psutil.Error), _adoption():
            self._channel.send(order)
            if self._channel.poll(IMPORT_TIMEOUT_S):
                return psutil.Process(self._channel.recv())
        self.close()
        raise RunError(f'the node host {self.reason()}')

    def release(self) -> None:
        """Let the process of a node begin, as it is guarded now."""
        with suppress(OSError):  # the host has died, and the process with it
            self._channel.send(None)

    def close(self) -> None:
        """End it, which it does by itself when no order can come any more."""
        self._channel.close()
        self.wait(END_S)
        self.stop()


@contextmanager
def _adoption() -> Iterator[None]:
    """Be the parent of orphans among the descendants that are left during the block."""
    prctl, before = ctypes.CDLL(None).prctl, ctypes.c_int()
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, before.value)


class HostedProcess(ManagedProcess):
    """The process of a node of ours."""

    descendants_every_s = 2.0

    def __init__(
        self,
        nodes: NodeProcesses,
        spec: NodeSpec,
        folder: Path,
        log_file: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._nodes, self._module = nodes, spec.module
        super().__init__(spec.name, spec.arguments(folder), log_file, environment)

    def _start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path | None,
        pass_fds: Sequence[int],
    ) -> psutil.Process:
        del pass_fds
        variables, place = dict(environment), directory or Path.cwd()
        return self._nodes.fork(
            NodeOrder(self.name, self._module, tuple(command), variables, place, self.log_file)
        )

    def _release(self) -> None:
        self._nodes.release()


class NodeProcesses:
    """Starts the processes of runs, one run after another, and keeps the host in between.

    The host has the environment of the first node. Each node gets the one that it is given, but
    the linker and Python read some variables at their start, such as LD_PRELOAD, from the host.
    """

    def __init__(self) -> None:
        self._host: HostProcess | None = None

    def start(
        self, spec: NodeSpec, folder: Path, environment: Mapping[str, str]
    ) -> ManagedProcess:
        """Start a node with its plan and log in a folder."""
        log_file = folder / f'{spec.name}.log'
        with signals_held():
            if spec.ours:
                return HostedProcess(self, spec, folder, log_file, environment)
            return ManagedProcess(spec.name, spec.command_line(folder), log_file, environment)

    def fork(self, order: NodeOrder) -> psutil.Process:
        """Start a process that waits until it is released."""
        if self._host is not None:
            with suppress(RunError):  # it has died since
                return self._host.fork(order)
        self._host = HostProcess(order.log_file, order.environment)
        return self._host.fork(order)

    def release(self) -> None:
        """Let the process that was started last begin."""
        if self._host is not None:
            self._host.release()

    def close(self) -> None:
        """End the host."""
        if self._host is not None:
            self._host.close()
            self._host = None
