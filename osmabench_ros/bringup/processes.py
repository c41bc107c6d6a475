"""Processes that do not outlive the runner, with a log each."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from osmabench_ros.base.files import create_file
from osmabench_ros.bringup.gpu_memory import GpuMemory
from osmabench_ros.bringup.shared_memory import SegmentsInUse
from osmabench_ros.errors import RunError
from osmabench_ros.ros.lifecycle import ERROR_PREFIX

KILL_GROUP_UNLESS_TOLD = 'read -r _ || kill -s KILL -- "-$0"'
"""A script that waits for a line, and kills a process group if its input ends without one."""
TAIL_LINES = 5
SEGMENTS_PERIOD_S = 1.0


class ManagedProcess:
    """A child process in a session of its own, whose stdout and stderr go to a log.

    The environment is the complete one of the child; raises RunError if it cannot be started.
    """

    def __init__(
        self, name: str, command: Sequence[str], log_file: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.log_file = log_file
        self.peak_memory_bytes = 0
        self.peak_gpu_memory_bytes: int | None = None
        self._gpu = GpuMemory()
        self._segments, self._segments_noted_s = SegmentsInUse(), 0.0
        with create_file(log_file) as log:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - the user's own configuration
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=dict(environment),
                    start_new_session=True,
                )
            except OSError as error:
                raise RunError(
                    f'cannot start {name} ({command[0]}): {error.strerror}; check its command'
                ) from error
        self._guard = _guard(self._process.pid)

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def stopped(self) -> bool:
        """Whether it, or one that it started, was stopped by a signal and does not go on."""
        with contextlib.suppress(psutil.Error):
            return any(item.status() == psutil.STATUS_STOPPED for item in self._family())
        return False

    def poll(self) -> int | None:
        """Return the exit code, None while it runs; samples memory on the way."""
        code = self._process.poll()
        if code is None:
            with contextlib.suppress(psutil.Error):
                family = self._family()
                memory = sum(process.memory_info().rss for process in family)
                self.peak_memory_bytes = max(self.peak_memory_bytes, memory)
                self._note_segments(family)
                on_gpu = self._gpu.used_by([process.pid for process in family])
                if on_gpu is not None:
                    self.peak_gpu_memory_bytes = max(self.peak_gpu_memory_bytes or 0, on_gpu)
        return code

    def reason(self) -> str:
        """Return why it ended: its own error, else the signal or code and the end of its log."""
        lines = self.log_file.read_text(errors='replace').splitlines()
        told = [line for line in lines if line.startswith(ERROR_PREFIX)]
        if told:
            return told[-1].removeprefix(ERROR_PREFIX)
        code = self._process.poll()
        how = (
            f'was killed by {signal.Signals(-code).name}' if code and code < 0 else f'exit {code}'
        )
        tail = '\n    '.join(lines[-TAIL_LINES:])
        return f'{how}; end of {self.log_file}:\n    {tail}'

    def stop(self, grace_s: float = 5.0) -> None:
        """Ask the process to end, then make its whole session end."""
        group = self._process.pid
        # A method of somebody else may have put children into sessions of their own.
        family = self._family()
        self._segments.note(process.pid for process in family)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)
                os.killpg(group, signal.SIGCONT)
            deadline = time.monotonic() + grace_s
            while time.monotonic() < deadline:
                if self._process.poll() is not None and not _group_alive(group):
                    break
                time.sleep(0.02)
            else:
                continue
            break
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if self._guard.poll() is None:
            self._guard.communicate(b'\n')
        self._segments.remove_left()

    def _note_segments(self, family: Sequence[psutil.Process]) -> None:
        if (now_s := time.monotonic()) - self._segments_noted_s > SEGMENTS_PERIOD_S:
            self._segments.note(process.pid for process in family)
            self._segments_noted_s = now_s

    def _family(self) -> list[psutil.Process]:
        """Return the process and all its descendants that are alive."""
        try:
            own = psutil.Process(self._process.pid)
            return [own, *own.children(recursive=True)]
        except psutil.Error:
            return []


def _guard(group: int) -> subprocess.Popen[bytes]:
    """Start what kills a process group if this process is killed and cannot do it itself.

    Linux signals the death of a parent to its children alone, and a mapper may be a script that
    starts others. A pipe ends for whatever reason its writer does.
    """
    return subprocess.Popen(  # noqa: S603 - a constant script
        ['/bin/sh', '-c', KILL_GROUP_UNLESS_TOLD, str(group)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
