"""Child processes that end with their parent.

Watchdogs take their time from `AttentiveClock`; `signals_held` keeps signals out of a block.
"""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from osmabench_ros.errors import RunError, errors_as

LONGEST_S = 0.5


class AttentiveClock:
    """Steady seconds, of which at most `LONGEST_S` count from one reading to the next.

    A process that was stopped received nothing meanwhile: that is not others' silence.
    """

    def __init__(self, steady_s: Callable[[], float] = time.monotonic) -> None:
        self._steady_s = steady_s
        self._read_s = steady_s()
        self._now_s = 0.0

    def now_s(self) -> float:
        """Return the seconds counted since the clock was made."""
        read_s = self._steady_s()
        self._now_s += min(read_s - self._read_s, LONGEST_S)
        self._read_s = read_s
        return self._now_s


# Free space of a disk on which a process could not write why it ended.
FULL_BELOW_BYTES = 2**20

ENDING = (signal.SIGINT, signal.SIGTERM)
# A script that becomes a program after a line, and ends if its input ends without one.
START_WHEN_GUARDED = 'read -r _ && exec "$@" </dev/null'
# A script that waits for a line, and kills a process group if its input ends without one.
KILL_GROUP_UNLESS_RELEASED = 'read -r _ || kill -s KILL -- "-$0"'


class SupervisedProcess:
    """A child process in its own session, killed with this one, that logs to a file."""

    ENDING_ORDER = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    # Of the log, in an error.
    tail_lines = 15
    # Memory, of the process and of its known descendants.
    sample_every_s = 0.1
    # To look for new descendants is to read the state of every process of the machine.
    descendants_every_s = 0.0

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_file: Path,
        environment: Mapping[str, str],
        directory: Path | None = None,
        *,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.log_file = log_file
        self.peak_memory_bytes = 0
        # Resident, of the process and all that it started, when it was last polled.
        self.memory_bytes = 0
        self._process = self._start(command, environment, directory, pass_fds)
        self._sampled_s = self._descended_s = 0.0
        self._members = [self._process]
        self._guard = _guard(self._process.pid)
        self._release()

    def _start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path | None,
        pass_fds: Sequence[int],
    ) -> psutil.Process:
        place = '' if directory is None else f' in {directory}'
        what = f'cannot start {self.name} ("{command[0]}"{place})'
        remedy = 'check its command'
        program = command[0] if os.sep not in command[0] else Path(directory or '', command[0])
        if shutil.which(program, path=environment.get('PATH')) is None:
            raise RunError(f'{what}: it is not a program; {remedy}')
        with self.log_file.open('ab') as log, errors_as(RunError, what, OSError, remedy=remedy):
            process = psutil.Popen(
                ['/bin/sh', '-c', START_WHEN_GUARDED, 'sh', *command],
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
                pass_fds=pass_fds,
            )
        self._gate = process.stdin
        return process

    def _release(self) -> None:
        """Let the process begin, as it ends with this one now."""
        with contextlib.suppress(OSError), self._gate as gate:
            gate.write(b'\n')

    @property
    def pid(self) -> int:
        """Number of the process."""
        return int(self._process.pid)

    @property
    def stopped(self) -> bool:
        """Whether it, or a process that it started, is stopped by a signal."""
        with contextlib.suppress(psutil.Error):
            return any(item.status() == psutil.STATUS_STOPPED for item in self.family())
        return False

    def family(self) -> list[psutil.Process]:
        """Return the process and its known descendants that still run."""
        running = [item for item in self._members if item.is_running()]
        # The process itself knows all others; orphans were seen while it ran.
        own = running[:1] if running and running[0].pid == self.pid else running
        found = {item.pid: item for item in running}
        for item in own:
            with contextlib.suppress(psutil.Error):
                found |= {child.pid: child for child in item.children(recursive=True)}
        self._members = list(found.values())
        return self._members

    def poll(self) -> int | None:
        """Return the exit code, None while it runs; samples memory too."""
        code = self.wait(0.0)
        now_s = time.monotonic()
        if code is None and now_s - self._sampled_s >= self.sample_every_s:
            self._sampled_s = now_s
            if now_s - self._descended_s >= self.descendants_every_s:
                self._descended_s = now_s
                self.family()
            self._sample(self._members)
        return code

    def _sample(self, family: Sequence[psutil.Process]) -> None:
        self.memory_bytes = 0
        for member in family:
            with contextlib.suppress(psutil.Error):
                self.memory_bytes += member.memory_info().rss
        self.peak_memory_bytes = max(self.peak_memory_bytes, self.memory_bytes)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end, at most some seconds; return the exit code, None while it runs."""
        try:
            # Unknown where this process ignores SIGCHLD.
            return int(self._process.wait(timeout_s) or 0)
        except psutil.TimeoutExpired:
            return None

    def reason(self) -> str:
        """Return the signal or exit code that it ended with, and the end of its log."""
        code = self.poll()
        ended = f'ended with code {code}'
        how = f'was killed by {signal.Signals(-code).name}' if code and code < 0 else ended
        return f'{how}; {self.log_end()}'

    def log_end(self) -> str:
        """Return the last lines of its log, and the path of the log."""
        lines = self.log_file.read_text('utf-8', 'replace').splitlines()[-self.tail_lines :]
        with contextlib.suppress(OSError):  # the folder was removed
            if shutil.disk_usage(self.log_file.parent).free < FULL_BELOW_BYTES:
                lines.append(f'No space left on device: {self.log_file.parent}; free disk space')
        return '\n    '.join((f'end of {self.log_file}:', *lines))

    def interrupt(self) -> None:
        """Send it and its descendants the signal of Ctrl-C, and do not wait."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGINT)

    def stop(self, grace_s: float = 5.0, numbers: Sequence[int] = ENDING_ORDER) -> None:
        """Ask the process to end, then end its session and all its descendants."""
        with contextlib.suppress(psutil.Error):
            end_processes([*self.family(), *self._orphans()], grace_s, numbers)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._guard.poll() is None:
            self._guard.communicate(b'\n')

    def _orphans(self) -> Iterator[psutil.Process]:
        """Yield the processes of its session, which may have been left by their parents."""
        for process in psutil.process_iter():
            with contextlib.suppress(OSError):
                if os.getsid(process.pid) == self.pid:
                    yield process


def end_processes(
    processes: Sequence[psutil.Process],
    grace_s: float,
    numbers: Sequence[int] = (signal.SIGINT, signal.SIGKILL),
) -> None:
    """Send processes one signal after the other until they end, waiting after each."""
    alive = [process for process in set(processes) if process.is_running()]
    for number in numbers:
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
                process.resume()
        _, alive = psutil.wait_procs(alive, timeout=grace_s)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until after the block, so that no started process is lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    previous = {number: signal.getsignal(number) for number in ENDING}
    ours = [number for number, handler in previous.items() if callable(handler)]
    for number in ours:
        signal.signal(number, lambda number, _frame: arrived.append(number))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, previous[number])
        if arrived:
            signal.raise_signal(arrived[0])


def _guard(group: int) -> subprocess.Popen[bytes]:
    """Start a guard that kills a process group if this process is killed.

    Linux signals the death of a parent only to its children, and a mapper may be a script that
    starts others. A pipe ends for whatever reason its writer does.
    """
    return subprocess.Popen(  # noqa: S603 - a constant script
        ['/bin/sh', '-c', KILL_GROUP_UNLESS_RELEASED, str(group)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Look for no cycles: among a million records there are none, and looking takes a sixth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
