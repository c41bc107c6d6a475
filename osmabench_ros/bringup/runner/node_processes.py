"""The processes of the nodes of runs; our own nodes are forked from a host."""

from __future__ import annotations

import ctypes
import os
import shlex
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import psutil

from osmabench_ros.base.files import write_text
from osmabench_ros.base.log import LOG
from osmabench_ros.base.processes import SupervisedProcess, signals_held
from osmabench_ros.bringup.definition import NodeSpec
from osmabench_ros.bringup.isolation import find_segment_locks, remove_if_dead
from osmabench_ros.bringup.runner.node_host import NodeOrder
from osmabench_ros.errors import RunError
from osmabench_ros.ros.node.lifecycle import ERROR_PREFIX

HOST_MODULE = 'osmabench_ros.bringup.runner.node_host'
IMPORT_TIMEOUT_S = 120.0
END_S = 5.0

# Options of prctl(2).
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37


def gpu_memory_bytes(pids: Collection[int]) -> int | None:
    """Return the bytes that processes hold on all GPUs together, None if unknown."""
    nvml = _driver()
    if nvml is None:
        return None
    try:
        used = [
            int(process.usedGpuMemory)
            for index in range(nvml.nvmlDeviceGetCount())
            for process in nvml.nvmlDeviceGetComputeRunningProcesses(
                nvml.nvmlDeviceGetHandleByIndex(index)
            )
            # The driver does not report the memory of every process.
            if process.pid in pids and process.usedGpuMemory is not None
        ]
    except nvml.NVMLError:
        return None
    return sum(used) if used else None


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs that programs may use, by the names that CUDA_VISIBLE_DEVICES takes."""
    chosen = os.environ.get('CUDA_VISIBLE_DEVICES')
    if chosen is not None:
        return tuple(filter(None, (item.strip() for item in chosen.split(','))))
    nvml = _driver()
    return () if nvml is None else tuple(map(str, range(nvml.nvmlDeviceGetCount())))


@lru_cache(maxsize=1)
def _driver() -> Any:
    """Return nvidia-ml-py, None where it or the driver is missing."""
    try:
        nvml = import_module('pynvml')
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


SEGMENTS_PERIOD_S = 1.0


class ManagedProcess(SupervisedProcess):
    """A process with a new log; samples its GPU memory and removes its segments."""

    tail_lines = 5
    sample_every_s = 0.2

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_file: Path,
        environment: Mapping[str, str],
    ) -> None:
        self.peak_gpu_memory_bytes: int | None = None
        self._segment_locks: set[Path] = set()
        self._segments_noted_s = 0.0
        write_text(log_file, '')
        super().__init__(name, command, log_file, environment)
        command_line = shlex.join(command)
        LOG.debug('started %s: process %d, log %s: %s', name, self.pid, log_file, command_line)

    def _sample(self, family: Sequence[psutil.Process]) -> None:
        super()._sample(family)
        if (now_s := time.monotonic()) - self._segments_noted_s > SEGMENTS_PERIOD_S:
            self._segment_locks |= find_segment_locks(family)
            self._segments_noted_s = now_s
        on_gpu = gpu_memory_bytes([process.pid for process in family])
        if on_gpu is not None:
            self.peak_gpu_memory_bytes = max(self.peak_gpu_memory_bytes or 0, on_gpu)

    def reason(self) -> str:
        """Return the error that it printed and its log, if any; else as for every process."""
        lines = self.log_file.read_text('utf-8', 'replace').splitlines()
        own = [line for line in lines if line.startswith(ERROR_PREFIX)]
        if not own:
            return super().reason()
        return f'{own[-1].removeprefix(ERROR_PREFIX)} (log: {self.log_file})'

    def stop(
        self, grace_s: float = 5.0, numbers: Sequence[int] = SupervisedProcess.ENDING_ORDER
    ) -> None:
        """End it and its descendants, and remove the shared memory that they leave."""
        self._segment_locks |= find_segment_locks(self.family())
        super().stop(grace_s, numbers)
        for lock_file in self._segment_locks:
            remove_if_dead(lock_file)


class ServingProcess(SupervisedProcess):
    """A process of a module of this package, which takes orders through its `channel`."""

    def __init__(
        self, name: str, module: str, log_file: Path, environment: Mapping[str, str]
    ) -> None:
        self.channel, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            command = [sys.executable, '-m', module, str(handle)]
            super().__init__(name, command, log_file, environment, pass_fds=[handle])


@contextmanager
def _adopt_orphans() -> Iterator[None]:
    """Be the parent of orphans among the descendants that are left during the block."""
    prctl = ctypes.CDLL(None).prctl
    before = ctypes.c_int()
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
        self._nodes, words = nodes, spec.arguments(folder)
        self._order = NodeOrder(
            spec.name, spec.module, tuple(words), dict(environment), Path.cwd(), log_file
        )
        super().__init__(spec.name, words, log_file, environment)

    def _start(self, *_command: object) -> psutil.Process:
        process, self._host = self._nodes.fork(self._order)
        return process

    def _release(self) -> None:
        with suppress(OSError):  # the host has died, and the process with it
            self._host.send(None)


class NodeProcesses:
    """Starts the processes of runs, one run after another, and keeps the host in between.

    The host has the environment of the first node. Each node gets the one that it is given, but
    the linker and Python read some variables at their start, such as LD_PRELOAD, from the host.
    """

    def __init__(self) -> None:
        self._host: ServingProcess | None = None

    def start(
        self, spec: NodeSpec, folder: Path, environment: Mapping[str, str]
    ) -> ManagedProcess:
        """Start a node with its plan and log in a folder."""
        log_file = folder / f'{spec.name}.log'
        with signals_held():
            if spec.ours:
                return HostedProcess(self, spec, folder, log_file, environment)
            return ManagedProcess(spec.name, spec.command_line(folder), log_file, environment)

    def fork(self, order: NodeOrder) -> tuple[psutil.Process, Connection]:
        """Start a process that waits for a word on the channel; RunError if the host cannot."""
        kept = self._host
        host = kept or ServingProcess('node host', HOST_MODULE, order.log_file, order.environment)
        self._host = host
        with suppress(EOFError, OSError, psutil.Error), _adopt_orphans():
            host.channel.send(order)
            if host.channel.poll(IMPORT_TIMEOUT_S):
                return psutil.Process(host.channel.recv()), host.channel
        self.close()
        if kept is not None:  # it has died since
            return self.fork(order)
        raise RunError(f'the node host {host.reason()}')

    def close(self) -> None:
        """End the host, which it does by itself when no order can come any more."""
        if self._host is not None:
            self._host.channel.close()
            self._host.wait(END_S)
            self._host.stop()
            self._host = None
