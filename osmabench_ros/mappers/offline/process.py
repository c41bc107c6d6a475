"""Runs the command of a mapping method within limits of time and memory."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.processes import SupervisedProcess
from osmabench_ros.errors import RunError

_POLL_S = 0.1
_TERMINATE_S = 5.0


@dataclass(frozen=True)
class Limits:
    """What a method may use: wall time of its commands and memory of its processes, in sum."""

    time_s: float
    memory_bytes: int


@dataclass(frozen=True)
class ProcessUsage:
    """What a method used: wall time, and the sampled peak of its processes' resident memory."""

    wall_s: float
    peak_memory_bytes: int


def run_limited(
    commands: Sequence[Sequence[str]],
    directory: Path,
    environment: Mapping[str, str],
    log: Path,
    limits: Limits,
) -> ProcessUsage:
    """Run commands in turn, without a shell, within limits, all output to a log; or RunError."""
    start = time.monotonic()
    peak = 0
    log.parent.mkdir(parents=True, exist_ok=True)
    for command in commands:
        with log.open('a') as stream:
            stream.write(f'$ {" ".join(command)}\n')
        process = SupervisedProcess(
            'the method', command, log, {**os.environ, **environment}, directory
        )
        try:
            _watch(process, start + limits.time_s, limits.memory_bytes)
        finally:
            process.stop(_TERMINATE_S, (signal.SIGTERM, signal.SIGKILL))
            peak = max(peak, process.peak_memory_bytes)
        if process.poll() != 0:
            raise RunError(f'"{command[0]}" {process.reason()}')
    return ProcessUsage(time.monotonic() - start, peak)


def _watch(process: SupervisedProcess, deadline_s: float, memory_bytes: int) -> None:
    """Wait for the end; RunError at a limit."""
    while process.poll() is None:
        if process.memory_bytes > memory_bytes:
            raise RunError(
                f'the method used {process.memory_bytes / 2**30:.2f} GiB of memory, '
                f'{memory_bytes / 2**30:.2f} GiB are allowed; it was ended, {process.log_end()}'
            )
        if time.monotonic() > deadline_s:
            raise RunError(
                f'the method ran longer than allowed and was ended, {process.log_end()}'
            )
        process.wait(_POLL_S)
