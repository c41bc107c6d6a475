"""The worker process: started, asked, watched, and never left behind."""

import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from osmabench_ros.errors import MissingDependencyError, SimulationError
from osmabench_ros.simulation.habitat.worker.channel import (
    ChannelClosed,
    ChannelTimeout,
    receive,
    send,
)
from osmabench_ros.simulation.habitat.worker.main import FOLDER_PREFIX
from osmabench_ros.simulation.simulator import Ownership

START_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 10.0
LOG_TAIL_LINES = 15

# They point into this interpreter's libraries, which the worker's cannot use.
FOREIGN_VARIABLES = ('PYTHONPATH', 'PYTHONHOME', 'VIRTUAL_ENV')

_BOOT = (
    'import sys; sys.path.insert(0, sys.argv[1]); from worker.main import main; sys.path.pop(0); '
    'main(*map(int, sys.argv[2:]))'
)


class WorkerProcess:
    """A worker and the pipes to it, in an empty folder; belongs to the thread that made it."""

    def __init__(self, python: str, frame_bytes: int) -> None:
        self._ownership = Ownership('HabitatSimulator')
        self.folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
        self._log = self.folder / 'worker.log'
        self.frame_descriptor = _make_memory(frame_bytes)
        request_read, self._request = os.pipe()
        self._reply, reply_write = os.pipe()
        try:
            self._process = self._start(python, (request_read, reply_write))
        except OSError as error:
            for descriptor in (self._request, self._reply, self.frame_descriptor):
                os.close(descriptor)
            shutil.rmtree(self.folder, ignore_errors=True)
            raise MissingDependencyError(
                f'the interpreter "{python}" (habitat_python) cannot be run: {error.strerror}; '
                'see docs/habitat.md'
            ) from error
        finally:
            os.close(request_read)
            os.close(reply_write)
        descriptors = (self._request, self._reply, self.frame_descriptor)
        self._end = weakref.finalize(self, _end, self._process, descriptors, self.folder)
        self._number = 0
        self.versions = self._read_versions(python)

    def _start(self, python: str, ends: tuple[int, int]) -> subprocess.Popen[bytes]:
        passed = (*ends, self.frame_descriptor)
        command = [python, '-c', _BOOT, str(Path(__file__).parent), *map(str, passed)]
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
        environment.setdefault('HABITAT_SIM_LOG', 'quiet')
        with self._log.open('wb') as log:
            return subprocess.Popen(  # noqa: S603, the user names the interpreter
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=environment,
                pass_fds=passed,
            )

    def _read_versions(self, python: str) -> dict[str, str]:
        try:
            versions: dict[str, str] = self.call('hello', START_TIMEOUT_S)
        except SimulationError as error:
            self.kill()
            raise MissingDependencyError(
                f'the interpreter "{python}" (habitat_python) cannot run Habitat-Sim: {error} '
                'Install habitat-sim there as docs/habitat.md says'
            ) from error
        return versions

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    @property
    def closed(self) -> bool:
        """Whether the worker has been ended."""
        return self._ownership.closed

    def log(self) -> str:
        """Return the output of the worker so far."""
        try:
            return self._log.read_text(encoding='utf-8', errors='replace')
        except OSError:
            return ''

    def call(self, command: str, timeout_s: float, **arguments: Any) -> Any:
        """Send the worker a command and wait; SimulationError if it refuses, dies or is late."""
        self._ownership.check()
        self._number += 1
        message = {'number': self._number, 'command': command, 'arguments': arguments}
        try:
            send(self._request, message)
            reply = receive(self._reply, timeout_s)
        except ChannelTimeout:
            raise self._make_fault(
                f'did not answer "{command}" within {timeout_s:g} s and was ended'
            ) from None
        except ChannelClosed:
            raise self._make_fault(f'died during "{command}" ({self._exit_reason()})') from None
        if 'error' in reply:
            raise SimulationError(f'Habitat-Sim, {command}: {reply["error"]}')
        return reply['result']

    def close(self) -> None:
        """Let the worker free its scene and end; ends it by force if it does not."""
        if not self.closed:
            try:
                self.call('close', CLOSE_TIMEOUT_S)
                self._process.wait(CLOSE_TIMEOUT_S)
            except (SimulationError, subprocess.TimeoutExpired):
                pass  # it was asked to end, and is killed below
            self.kill()

    def kill(self) -> None:
        """End the worker at once and free everything."""
        self._end()
        self._ownership.closed = True

    def _make_fault(self, what: str) -> SimulationError:
        tail = '\n'.join(self.log().splitlines()[-LOG_TAIL_LINES:])
        self.kill()
        said = f'It printed last:\n{tail}' if tail else 'It printed nothing.'
        return SimulationError(f'the Habitat-Sim worker {what}. {said}')

    def _exit_reason(self) -> str:
        try:
            code = self._process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return 'it closed its pipe'
        return f'signal {-code}' if code < 0 else f'exit code {code}'


def _end(process: subprocess.Popen[bytes], descriptors: Sequence[int], folder: Path) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for descriptor in descriptors:
        os.close(descriptor)
    shutil.rmtree(folder, ignore_errors=True)


def _make_memory(size: int) -> int:
    """Return the descriptor of memory without a name, so that no crash can leave it behind."""
    if hasattr(os, 'memfd_create'):
        descriptor = os.memfd_create('osmabench_frames')
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor
