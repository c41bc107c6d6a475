"""The back end of `--jobs`: worker processes on this machine.

DDS and signals have one environment and one thread in a process, so each worker is a process. It
keeps the host of its nodes from one run to the next, and each of its runs has its own ROS domain.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType

from osmabench_ros.base.processes import ENDING, signals_held
from osmabench_ros.bringup.runner import dispatch
from osmabench_ros.bringup.runner.dispatch import Message, Resources, Result, Task
from osmabench_ros.bringup.runner.node_processes import ServingProcess

MODULE = 'osmabench_ros.bringup.runner.workers'
NEWS_EVERY_S = 0.1


class Worker(ServingProcess):
    """A process that carries out one order after another."""

    def receive(self) -> Iterator[Message]:
        """Yield its messages since the last call; if it has died, that as the result."""
        try:
            while self.channel.poll():
                yield self.channel.recv()
        except (EOFError, OSError):
            self.wait(dispatch.END_S)
            reason = self.reason()
            self.stop()  # and its processes
            yield Result(error=f'{self.name} {reason}', again=True)


class Workers:
    """Begins workers as they are needed, each for one task at a time."""

    tries = 1

    def __init__(self, jobs: int, whole: Resources, folder: Path) -> None:
        self.slots = jobs
        self._whole = whole
        self._folder = folder
        self._share = Resources(whole.cpus / jobs, whole.memory_bytes / jobs)
        self._started: list[Worker] = []
        self._working: dict[Worker, tuple[Task, Resources]] = {}

    @property
    def full(self) -> bool:
        """Whether as many tasks are under way as were asked for."""
        return len(self._working) >= self.slots

    def begin(self, task: Task) -> bool:
        """Begin a task if the processors, memory and GPUs that it needs are free."""
        plan, running = task.plan, [given for _, given in self._working.values()]
        needed = dispatch.estimate_demand(plan, self._share, self._whole)
        demand = self._share if task.prepares else needed
        given = dispatch.admit(demand, running, self._whole)
        if given is None:
            return False
        idle = (item for item in self._started if item not in self._working)
        worker = next((item for item in idle if item.poll() is None), None) or self._start()
        self._working[worker] = task, given
        at_once = 1 if dispatch.is_alone(plan) else self.slots
        with suppress(OSError):  # it has just died, and `poll` finds that out
            worker.channel.send((plan, task.prepares, at_once, given.gpu_names))
        return True

    def _start(self) -> Worker:
        number = len(self._started) + 1
        log_file = self._folder / f'worker_{number}.log'
        with signals_held():
            self._started.append(Worker(f'worker {number}', MODULE, log_file, os.environ))
        return self._started[-1]

    def poll(self) -> Iterator[tuple[Task, Message]]:
        """Wait for messages, and yield them."""
        wait([worker.channel for worker in self._working], dispatch.LOOK_EVERY_S)
        for worker, (task, _) in list(self._working.items()):
            for message in worker.receive():
                yield task, message
                if isinstance(message, Result):
                    del self._working[worker]
                    break  # it may have died since, which costs no run

    def close(self) -> None:
        """End all workers; a later command goes on with a run that is cut off."""
        for worker in self._started:
            if worker in self._working:
                worker.interrupt()
            else:
                worker.channel.close()
        for worker in self._started:
            worker.wait(dispatch.END_S)
            worker.stop()


@contextmanager
def use_workers(jobs: int, whole: Resources) -> Iterator[Workers]:
    """Yield the back end for up to `jobs` tasks at once, and end it."""
    with (
        tempfile.TemporaryDirectory(prefix='osmabench_jobs_') as folder,
        closing(Workers(jobs, whole, Path(folder))) as workers,
    ):
        yield workers


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # A second signal must not cut the clean-up short.
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Serve the command at the file descriptor that the argument names."""
    for number in ENDING:
        signal.signal(number, _interrupt)
    try:
        with (
            Connection(int(sys.argv[1])) as channel,
            suppress(EOFError, BrokenPipeError, ConnectionResetError),
        ):
            progress = dispatch.report_to(channel.send, NEWS_EVERY_S)
            while True:
                channel.send(dispatch.carry_out(*channel.recv(), progress=progress))
    except KeyboardInterrupt:
        return dispatch.INTERRUPTED
    return 0


if __name__ == '__main__':
    # Objects on the channel must be of the module that the command knows, not of __main__.
    raise SystemExit(import_module(MODULE).main())
