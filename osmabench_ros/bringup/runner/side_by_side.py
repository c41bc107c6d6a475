"""Runs side by side: workers, each with a run at a time in a ROS domain of its own.

DDS and signals have one environment and one thread in a process, so each worker is a process; it
keeps the host of its nodes from one run to the next.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import FrameType
from typing import TextIO

from osmabench_ros.base.processes import SupervisedProcess, signals_held
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.runner.admission import Capacity, Demand, Grant, admitted, demand_of
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.runner.one_run import failed, run_one, without_figures
from osmabench_ros.bringup.spec.isolation import environment
from osmabench_ros.errors import OsmabenchError, OsmabenchWarning
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.results.report_model import RunReport

LOOK_EVERY_S = 0.5
END_S = 30.0
"""For the nodes of a run that is cut off, one grace period after the other."""
WORKER_MODULE = 'osmabench_ros.bringup.runner.side_by_side'


class Worker(SupervisedProcess):
    """A process that takes one piece of work after another."""

    sample_every_s = 1.0

    def __init__(self, number: int, folder: Path) -> None:
        self.channel, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            super().__init__(
                f'worker {number}',
                [sys.executable, '-m', WORKER_MODULE, str(handle)],
                folder / f'worker_{number}.log',
                os.environ,
                pass_fds=[handle],
            )

    def news(self) -> list[WorkNews | WorkWarning | WorkDone]:
        """Return its messages since the last call; if it has died, that its work failed so."""
        found = []
        try:
            while self.channel.poll():
                found.append(self.channel.recv())
        except (EOFError, OSError):
            self.wait(END_S)
            found.append(WorkDone(error=f'{self.name} {self.reason()}'))
        return found

    def retire(self) -> None:
        """Let it end by itself, if it has no work."""
        self.channel.close()


@dataclass(frozen=True)
class WorkOrder:
    """A run, or with `prepares` only what all runs of its scene share.

    Without `gpus` a run sees those that the shell shows it.
    """

    plan: RunPlan
    prepares: bool = False
    runs_at_once: int = 1
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkNews:
    """How far a worker is."""

    text: str
    fraction: float


@dataclass(frozen=True)
class WorkWarning:
    """A warning to the user."""

    text: str


@dataclass(frozen=True)
class WorkDone:
    """The report of a run without figures, or why a preparation failed; empty if it went well."""

    report: RunReport | None = None
    error: str = ''


@dataclass(frozen=True)
class MatrixTask:
    """A run by its place in the report, or the preparation of its scene."""

    plan: RunPlan
    number: int
    prepares: bool = False

    def label(self, count: int) -> str:
        """Return what it is called among the `count` runs of its matrix."""
        if self.prepares:
            return f'[scene] {self.plan.identity.scene_key}'
        return f'[{self.number + 1}/{count}] {self.plan.identity.run_id}'


@dataclass
class _Work:
    """A task under way."""

    task: MatrixTask
    grant: Grant
    text: str = 'starting'
    fraction: float = 0.0


def lined_up(plans: Sequence[RunPlan], jobs: int) -> list[MatrixTask]:
    """Return the runs, those that must be alone last, and what they wait for ahead of them."""
    runs = [MatrixTask(plan, number) for number, plan in enumerate(plans)]
    scenes = {item: n for n, item in enumerate(dict.fromkeys(x.shared_directory for x in plans))}
    missing = {
        task.plan.shared_directory: replace(task, prepares=True)
        for task in reversed(runs)
        if not (task.plan.shared_directory.exists() or task.plan.report_file.exists())
    }

    def place(task: MatrixTask) -> tuple[bool, int, bool]:
        scene = scenes[task.plan.shared_directory]
        if task.prepares:
            return False, scene - (jobs - 1), False
        return demand_of(task.plan).alone, scene, True

    return sorted([*missing.values(), *runs], key=place)


@contextmanager
def run_side_by_side(
    plans: Sequence[RunPlan], jobs: int, capacity: Capacity, progress: Progress
) -> Iterator[list[RunReport]]:
    """Run runs, up to `jobs` at once; a run that fails stops no other.

    What the runs of a scene share is made once, as a step of its own. Gives the reports in the
    order of the plans, without figures; those of runs that must be alone are made last. The
    workers end while the block goes on.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='osmabench_jobs_')))
        runs = _SideBySide(plans, jobs, capacity, folder, progress)
        stack.callback(runs.end)
        yield runs.run()


class _SideBySide:
    """The tasks that wait, those under way, and the reports of those that are done."""

    def __init__(
        self,
        plans: Sequence[RunPlan],
        jobs: int,
        capacity: Capacity,
        folder: Path,
        progress: Progress,
    ) -> None:
        self._jobs, self._capacity, self._folder = jobs, capacity, folder
        self._progress = progress
        self._count = len(plans)
        self._waiting = lined_up(plans, jobs)
        self._unprepared = {task.plan.shared_directory for task in self._waiting if task.prepares}
        self._working: dict[Worker, _Work] = {}
        self._workers: list[Worker] = []
        self._started = 0
        self._reports: dict[int, RunReport] = {}
        self._observed_bytes: dict[str, int] = defaultdict(int)

    def run(self) -> list[RunReport]:
        """Run all; return the reports by number."""
        while len(self._reports) < self._count:
            self._begin()
            self._retire()
            wait([worker.channel for worker in self._working], LOOK_EVERY_S)
            for worker in list(self._working):
                worker.poll()
                for item in worker.news():
                    self._take(worker, item)
            self._show()
        self._retire()
        return [self._reports[number] for number in range(self._count)]

    def _begin(self) -> None:
        """Begin all tasks that may begin now, in their order."""
        for task in list(self._waiting):
            if not task.prepares and task.plan.shared_directory in self._unprepared:
                continue
            running = [work.grant for work in self._working.values()]
            grant = admitted(self._demand(task), running, self._capacity, self._jobs)
            if grant is not None:
                self._waiting.remove(task)
                self._assign(_Work(task, grant))

    def _demand(self, task: MatrixTask) -> Demand:
        if task.prepares:
            return Demand()
        return demand_of(task.plan, self._observed_bytes[task.plan.mapper.name])

    def _assign(self, work: _Work) -> None:
        idle = [item for item in self._workers if item not in self._working]
        worker = next((item for item in idle if item.poll() is None), None) or self._new_worker()
        self._working[worker] = work
        worker.peak_memory_bytes = 0
        task = work.task
        at_once = 1 if work.grant.alone else self._jobs
        with suppress(OSError):  # it has just died, which is found out as if it died at work
            worker.channel.send(WorkOrder(task.plan, task.prepares, at_once, work.grant.gpus))

    def _new_worker(self) -> Worker:
        self._started += 1
        with signals_held():
            worker = Worker(self._started, self._folder)
            self._workers.append(worker)
        return worker

    def _retire(self) -> None:
        """Let workers end for which there is no more work, beside those that go on."""
        for worker in self._workers:
            if not self._waiting and worker not in self._working:
                worker.retire()

    def _take(self, worker: Worker, item: WorkNews | WorkWarning | WorkDone) -> None:
        work = self._working.get(worker)
        if work is None:
            return
        if isinstance(item, WorkNews):
            work.text, work.fraction = item.text, item.fraction
        elif isinstance(item, WorkWarning):
            warnings.warn(item.text, OsmabenchWarning, stacklevel=2)
        else:
            self._finish(worker, work, item)

    def _finish(self, worker: Worker, work: _Work, done: WorkDone) -> None:
        del self._working[worker]
        if worker.poll() is not None:
            self._workers.remove(worker)
            worker.stop()  # and what it had started
        plan, name = work.task.plan, work.task.plan.mapper.name
        if work.task.prepares:
            self._prepared(plan, done.error)
            return
        self._observed_bytes[name] = max(self._observed_bytes[name], worker.peak_memory_bytes)
        self._reports[work.task.number] = done.report or failed(plan, done.error)

    def _prepared(self, plan: RunPlan, error: str) -> None:
        self._unprepared.discard(plan.shared_directory)
        if not error:
            return
        for task in list(self._waiting):
            if task.plan.shared_directory == plan.shared_directory:
                self._waiting.remove(task)
                self._reports[task.number] = failed(task.plan, error)

    def _show(self) -> None:
        """Show what every worker does, a line each."""
        works = sorted(self._working.values(), key=lambda item: item.task.number)
        lines = [f'{work.task.label(self._count)}: {work.text}' for work in works]
        under_way = sum(work.fraction for work in works if not work.task.prepares)
        self._progress('\n'.join(lines), (len(self._reports) + under_way) / self._count)

    def end(self) -> None:
        """End all workers; a run that is cut off can be gone on with."""
        for worker in self._working:
            worker.interrupt()
        self._waiting.clear()
        self._retire()
        for worker in self._workers:
            worker.wait(END_S)
            worker.stop()


NEWS_PERIOD_S = 0.1
INTERRUPTED = 130


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # What follows is the clean-up; a second signal must not cut it short.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


class Reporter:
    """Reports to the runner how far the work is, not too often, and what to warn of."""

    def __init__(
        self, send: Callable[[WorkNews | WorkWarning], object], period_s: float = NEWS_PERIOD_S
    ) -> None:
        self._send, self._period_s = send, period_s
        self._text, self._sent_s = '', 0.0

    def progress(self, text: str, fraction: float) -> None:
        """Send how far the work is."""
        now_s = time.monotonic()
        if text != self._text or now_s - self._sent_s > self._period_s:
            self._text, self._sent_s = text, now_s
            self._send(WorkNews(text, fraction))

    def warn(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Send a warning of ours; others go to the log, as `warnings.showwarning` does."""
        del file
        if issubclass(category, OsmabenchWarning):
            self._send(WorkWarning(str(message)))
        else:
            sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def carried_out(
    order: WorkOrder, preparation: Preparation, nodes: NodeProcesses, reporter: Reporter
) -> WorkDone:
    """Make a run, or what runs share; only an interrupt is raised, all else is in the result."""
    visible = {'CUDA_VISIBLE_DEVICES': ','.join(order.gpus)} if order.gpus else {}
    with environment(visible):
        if not order.prepares:
            report = run_one(
                order.plan, preparation, nodes, reporter.progress, runs_at_once=order.runs_at_once
            )
            return WorkDone(without_figures(report))
        try:
            preparation.prepare(order.plan, reporter.progress)
        except (OsmabenchError, OSError) as error:
            return WorkDone(error=str(error))
        return WorkDone()


def main() -> int:
    """Serve the runner at the file descriptor that the arguments name."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    preparation = Preparation()
    try:
        with Connection(int(sys.argv[1])) as channel, closing(NodeProcesses()) as nodes:
            reporter = Reporter(channel.send)
            warnings.showwarning = reporter.warn
            with suppress(EOFError, BrokenPipeError, ConnectionResetError):
                while True:
                    channel.send(carried_out(channel.recv(), preparation, nodes, reporter))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == '__main__':
    # What goes over the channel must be of the module that the runner knows, not of __main__.
    raise SystemExit(import_module(WORKER_MODULE).main())
