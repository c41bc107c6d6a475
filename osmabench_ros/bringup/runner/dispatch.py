"""The one dispatcher: hands the runs of a matrix to a back end, and collects their reports.

A back end is the worker processes of `--jobs`, or the nodes of a Ray cluster. This module
decides the next task, by the resources of runs and machine, and the retries, and writes every
line and warning to the terminal.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import psutil

from osmabench_ros.base.log import send_warnings
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup import isolation
from osmabench_ros.bringup.runner.node_processes import NodeProcesses, visible_gpus
from osmabench_ros.bringup.runner.one_run import failed, run_one, without_figures
from osmabench_ros.errors import ConfigError, OsmabenchError, warn
from osmabench_ros.runs.config import MatrixConfig, PacingMode
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.report_model import RunReport

# How long a back end waits for messages.
LOOK_EVERY_S = 0.5
# Seconds that workers have to stop their nodes after an interrupt.
END_S = 30.0
# The exit code after Ctrl-C.
INTERRUPTED = 130
# Runs under way that have a line in the terminal.
MAX_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Task:
    """A run by its place in the report, or the preparation of its scene; `tried` counts from 1."""

    plan: RunPlan
    number: int
    prepares: bool = False
    tried: int = 1

    @property
    def name(self) -> str:
        """A name of this try."""
        return f'{"scene" if self.prepares else "run"}-{self.number}.{self.tried}'


@dataclass(frozen=True)
class News:
    """How far a task is."""

    text: str
    fraction: float


@dataclass(frozen=True)
class Notice:
    """A warning to the user."""

    text: str


@dataclass(frozen=True)
class Result:
    """The report of a run, without its metrics, or an error; for a prepared scene neither.

    `again`: the machine failed, not the task, so that another try may succeed.
    """

    report: RunReport | None = None
    error: str = ''
    again: bool = False


Message = News | Notice | Result


class BackEnd(Protocol):
    """Carries out tasks somewhere; `slots` is how many at once, `tries` how often each."""

    slots: int
    tries: int

    @property
    def full(self) -> bool:
        """Whether no task can begin now."""

    def begin(self, task: Task) -> bool:
        """Begin a task, or return False if its resources are not free."""

    def poll(self) -> Iterable[tuple[Task, Message]]:
        """Wait a moment, and return the messages of tasks, the result of each last."""


GIB = 2**30
# Memory of a run of a bundled mapper, unless it says otherwise.
RUN_BYTES = 2 * GIB

# Where Linux shows a container its limits.
CGROUP = Path('/sys/fs/cgroup')

# Sums of fractions are rounded.
_FULL = 1 + 1e-9


@dataclass(frozen=True)
class Resources:
    """Processors, memory and GPUs of the machine, or that a run needs or was given.

    `gpu_names` are as CUDA_VISIBLE_DEVICES takes them; a run that was given some sees only those.
    """

    cpus: float
    memory_bytes: float
    gpus: float = 0.0
    gpu_names: tuple[str, ...] = ()


def check_gpus(config: MatrixConfig, here: Resources) -> None:
    """Raise ConfigError if a mapper needs more GPUs than there are."""
    for mapper in config.mappers:
        wanted = mapper.resources.gpus
        if wanted > here.gpus:
            problem = f'resources.gpus is {wanted:g}, and {here.gpus:g} GPUs are known here'
            remedy = 'lower it, install nvidia-ml-py, or set CUDA_VISIBLE_DEVICES'
            raise ConfigError(f'mapper "{mapper.name}": {problem}; {remedy}')


def is_alone(plan: RunPlan) -> bool:
    """Return whether a run measures realtime, so that no other may run meanwhile."""
    return plan.pacing is PacingMode.REALTIME and not plan.config.pacing.side_by_side


def estimate_demand(plan: RunPlan, usual: Resources, whole: Resources) -> Resources:
    """Return the resources of a run: as declared, else as usual, never more than the `whole`.

    A realtime run needs all processors.
    """
    declared = plan.mapper.resources
    cpus = whole.cpus if is_alone(plan) else declared.cpus or usual.cpus
    memory = (declared.memory_gib or 0.0) * GIB or usual.memory_bytes
    return Resources(min(cpus, whole.cpus), min(memory, whole.memory_bytes), declared.gpus)


def admit(demand: Resources, running: Sequence[Resources], whole: Resources) -> Resources | None:
    """Return the resources that a run is given if they are free, else None."""
    taken = [demand, *running]
    count = math.ceil(demand.gpus)
    free = [
        name
        for name in whole.gpu_names
        if sum(item.gpus / len(item.gpu_names) for item in running if name in item.gpu_names)
        + demand.gpus / max(count, 1)
        <= _FULL
    ]
    fits = (
        len(free) >= count
        and sum(item.cpus for item in taken) <= whole.cpus * _FULL
        and sum(item.memory_bytes for item in taken) <= whole.memory_bytes * _FULL
    )
    return replace(demand, gpu_names=tuple(free[:count])) if fits else None


def find_resources() -> Resources:
    """Return what this process may use of the machine now."""
    cpus = float(len(os.sched_getaffinity(0)))
    memory = psutil.virtual_memory().available
    # A container without limits has "max" there, or no such file.
    with suppress(OSError, ValueError):
        quota, period = (CGROUP / 'cpu.max').read_text().split()
        cpus = min(cpus, int(quota) / int(period))
    with suppress(OSError, ValueError):
        limit, used = (int((CGROUP / f'memory.{name}').read_text()) for name in ('max', 'current'))
        memory = min(memory, max(limit - used, 0))
    gpu_names = visible_gpus()
    return Resources(cpus, memory, len(gpu_names), gpu_names)


def jobs_here(whole: Resources) -> int:
    """Return how many runs that declare nothing the machine takes at once."""
    shared = isolation.free_bytes()
    limits = [whole.cpus, whole.memory_bytes / RUN_BYTES]
    if shared is not None:
        of_process = isolation.SMALLEST_SEGMENT_BYTES + isolation.PORT_BYTES
        limits.append(shared / (isolation.PROCESSES * of_process))
    return max(1, math.floor(min(limits)))


def line_up(plans: Sequence[RunPlan], slots: int) -> list[Task]:
    """Return the runs, realtime ones last, and the preparations that they wait for ahead."""
    runs = [Task(plan, number) for number, plan in enumerate(plans)]
    folders = dict.fromkeys(plan.shared_directory for plan in plans)
    scenes = {folder: number for number, folder in enumerate(folders)}
    missing = {
        task.plan.shared_directory: replace(task, prepares=True)
        for task in reversed(runs)
        if not (task.plan.shared_directory.exists() or task.plan.report_file.exists())
    }

    def rank(task: Task) -> tuple[bool, int, bool]:
        scene = scenes[task.plan.shared_directory]
        if task.prepares:
            # Early enough that no slot waits for a scene.
            return False, scene - (slots - 1), False
        return is_alone(task.plan), scene, True

    return sorted([*missing.values(), *runs], key=rank)


class Dispatcher:
    """The tasks that wait, the news of those under way, and the reports of finished runs."""

    def __init__(self, plans: Sequence[RunPlan], back_end: BackEnd, progress: Progress) -> None:
        self._back_end = back_end
        self._progress = progress
        self._count = len(plans)
        self._waiting = line_up(plans, back_end.slots)
        self._unprepared = {task.plan.shared_directory for task in self._waiting if task.prepares}
        self._news: dict[Task, News] = {}
        self._reports: dict[int, RunReport] = {}

    def run(self) -> list[RunReport]:
        """Return the reports of all runs, without metrics; a run that fails stops no other."""
        while len(self._reports) < self._count:
            self._begin()
            for task, message in self._back_end.poll():
                self._take(task, message)
            self._show()
        return [self._reports[number] for number in range(self._count)]

    def _begin(self) -> None:
        for task in list(self._waiting):
            if self._back_end.full:
                return
            ready = task.prepares or task.plan.shared_directory not in self._unprepared
            if ready and self._back_end.begin(task):
                self._waiting.remove(task)

    def _take(self, task: Task, message: Message) -> None:
        if isinstance(message, News):
            self._news[task] = message
        elif isinstance(message, Notice):
            warn(message.text)
        else:
            self._news.pop(task, None)
            self._retry_or_finish(task, message)

    def _retry_or_finish(self, task: Task, result: Result) -> None:
        tries, error = self._back_end.tries, result.error
        if result.again and task.tried < tries:
            warn(f'{self._label(task)} is tried again, {task.tried + 1} of {tries}: {error}')
            self._waiting.insert(0, replace(task, tried=task.tried + 1))
            return
        if result.again and tries > 1:
            error = f'given up after {tries} tries; the last: {error}'
        if not task.prepares:
            self._reports[task.number] = result.report or failed(task.plan, error)
            return
        self._unprepared.discard(task.plan.shared_directory)
        for item in list(self._waiting) if error else ():
            if item.plan.shared_directory == task.plan.shared_directory:
                self._waiting.remove(item)
                self._reports[item.number] = failed(item.plan, error)

    def _label(self, task: Task) -> str:
        if task.prepares:
            return f'[scene] {task.plan.identity.scene_key}'
        return f'[{task.number + 1}/{self._count}] {task.plan.identity.run_id}'

    def _show(self) -> None:
        """Show the news of tasks, a line each."""
        known = sorted(self._news.items(), key=lambda item: item[0].number)
        lines = [f'{self._label(task)}: {news.text}' for task, news in known[:MAX_SHOWN]]
        if len(known) > MAX_SHOWN:
            lines.append(f'and {len(known) - MAX_SHOWN} more under way')
        under_way = sum(news.fraction for task, news in known if not task.prepares)
        self._progress('\n'.join(lines), (len(self._reports) + under_way) / self._count)


@lru_cache(maxsize=1)
def keep_loaded() -> tuple[Preparation, NodeProcesses]:
    """Return the scenes and the node host that a process keeps between tasks."""
    return Preparation(), NodeProcesses()


def carry_out(
    plan: RunPlan,
    prepares: bool,
    runs_at_once: int,
    gpus: Sequence[str] = (),
    *,
    progress: Progress,
) -> Result:
    """Make a run, or what runs of a scene share; an error of the task is part of the result.

    Without `gpus` it sees all.
    """
    preparation, nodes = keep_loaded()
    with isolation.environment({'CUDA_VISIBLE_DEVICES': ','.join(gpus)} if gpus else {}):
        if not prepares:
            report = run_one(plan, preparation, nodes, progress, runs_at_once=runs_at_once)
            return Result(without_figures(report))
        try:
            preparation.prepare(plan, progress)
        except (OsmabenchError, OSError) as error:
            return Result(error=str(error))
        return Result()


def report_to(send: Callable[[News | Notice], object], period_s: float) -> Progress:
    """Send the warnings of this process, and return a progress that sends not too often.

    Warnings of other packages go to the log.
    """
    last_text, last_s = '', 0.0

    def report(text: str, fraction: float) -> None:
        nonlocal last_text, last_s
        now_s = time.monotonic()
        if text != last_text or now_s - last_s > period_s:
            last_text, last_s = text, now_s
            send(News(text, fraction))

    send_warnings(lambda text: send(Notice(text)))
    return report
