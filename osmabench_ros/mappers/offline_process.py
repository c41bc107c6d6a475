"""Runs the command of a mapping method within limits of time and memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from osmabench_ros.errors import RunError

_POLL_S = 0.1
_TERMINATE_S = 5.0
_LOG_LINES = 15


@dataclass(frozen=True)
class Limits:
    """What a method may use: wall time of its commands and memory of its processes, in sum."""

    time_s: float
    memory_bytes: int


@dataclass(frozen=True)
class Usage:
    """What a method used: wall time, and the peak of its processes' resident memory together.

    Memory is sampled ten times a second.
    """

    wall_s: float
    peak_memory_bytes: int


def run_limited(
    commands: Sequence[Sequence[str]],
    directory: Path,
    environment: Mapping[str, str],
    log: Path,
    limits: Limits,
) -> Usage:
    """Run commands one after another, without a shell; all their output is appended to a log.

    `environment` is set beside that of this process. Raises RunError, with the end of the log, if
    a program cannot be started, fails, or exceeds a limit; it is then ended with its children.
    """
    start = time.monotonic()
    peak = 0
    log.parent.mkdir(parents=True, exist_ok=True)
    for command in commands:
        left = limits.time_s - (time.monotonic() - start)
        with log.open('ab') as stream:
            stream.write(f'$ {" ".join(command)}\n'.encode())
            stream.flush()
            family = _Family(_started(command, directory, environment, stream.fileno(), log))
            try:
                peak = max(peak, _watch(family, Limits(left, limits.memory_bytes), log))
            finally:
                family.end()
        if family.process.returncode != 0:
            raise RunError(
                f'"{command[0]}" ended with code {family.process.returncode}; the end of {log}:\n'
                f'{_tail(log)}'
            )
    return Usage(time.monotonic() - start, peak)


def _started(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], out: int, log: Path
) -> psutil.Popen:
    try:
        return psutil.Popen(
            list(command),
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise RunError(
            f'cannot start "{command[0]}" in {directory}: {error}; the log is {log}'
        ) from error


class _Family:
    """A process and everything it has started, also what it has left behind."""

    def __init__(self, process: psutil.Popen) -> None:
        self.process = process
        self._members: dict[int, psutil.Process] = {process.pid: process}

    def memory_bytes(self) -> int:
        """Return the resident memory of all members together."""
        self._look()
        total = 0
        for member in list(self._members.values()):
            try:
                total += member.memory_info().rss
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return total

    def end(self) -> None:
        """End what still runs: terminate first, kill later."""
        self._look()
        members = [member for member in self._members.values() if member.is_running()]
        for member in members:
            _signal(member, kill=False)
        _, alive = psutil.wait_procs(members, timeout=_TERMINATE_S)
        for member in alive:
            _signal(member, kill=True)
        psutil.wait_procs(alive, timeout=_TERMINATE_S)

    def _look(self) -> None:
        for member in list(self._members.values()):
            try:
                found = member.children(recursive=True)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            self._members |= {child.pid: child for child in found}


def _watch(family: _Family, limits: Limits, log: Path) -> int:
    """Wait for the end; return the peak of memory, raise at a limit."""
    deadline = time.monotonic() + limits.time_s
    peak = 0
    while True:
        used = family.memory_bytes()
        peak = max(peak, used)
        if used > limits.memory_bytes:
            raise RunError(
                f'the method used {used / 2**30:.2f} GiB of memory, '
                f'{limits.memory_bytes / 2**30:.2f} GiB are allowed; it was ended, '
                f'the end of {log}:\n{_tail(log)}'
            )
        left = deadline - time.monotonic()
        if left <= 0:
            raise RunError(
                f'the method ran longer than allowed and was ended, '
                f'the end of {log}:\n{_tail(log)}'
            )
        try:
            family.process.wait(min(_POLL_S, left))
        except psutil.TimeoutExpired:
            continue
        return peak


def _signal(process: psutil.Process, *, kill: bool) -> None:
    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return


def _tail(log: Path) -> str:
    lines = log.read_text('utf-8', 'replace').splitlines()
    return '\n'.join(f'  {line}' for line in lines[-_LOG_LINES:])
