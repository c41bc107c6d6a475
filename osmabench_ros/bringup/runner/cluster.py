"""The runs of a matrix as tasks of Ray, which decides where and when; one writer of results."""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from osmabench_ros.base.files import atomic_directory
from osmabench_ros.base.owned_folder import Existing, draft_in
from osmabench_ros.base.processes import signals_held
from osmabench_ros.base.progress import Progress
from osmabench_ros.base.strict import Strict
from osmabench_ros.bringup.runner.admission import RUN_BYTES, Demand, demand_of
from osmabench_ros.bringup.runner.cluster_nodes import (
    cause,
    check_nodes,
    connected,
    working_nodes,
)
from osmabench_ros.bringup.runner.cluster_task import (
    ClusterOrder,
    TaskOutcome,
    carry_out,
    check_upload,
    inputs_of,
    patiently,
    software,
)
from osmabench_ros.bringup.runner.one_run import failed
from osmabench_ros.bringup.runner.side_by_side import (
    END_S,
    LOOK_EVERY_S,
    MatrixTask,
    WorkDone,
    WorkNews,
    WorkOrder,
    WorkWarning,
    lined_up,
)
from osmabench_ros.errors import ConfigError, OsmabenchWarning, RunError
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.results.report_model import RunReport

SHOWN = 12
"""Runs under way that have a line in the terminal."""
NODE_ID = 'ray.io/node-id'
"""A label that Ray gives every node."""


class Cluster(Strict):
    """Where the runs of a matrix go, and how often each is tried."""

    address: str
    tries: int = Field(3, ge=1, le=100)
    upload: str = ''

    def check(self) -> None:
        """Raise ConfigError for an address or an upload that cannot work."""
        if '://' in self.address:
            raise ConfigError(
                f'--cluster {self.address}: give auto or HOST:PORT, on a machine of the cluster '
                'that sees --out; Ray Jobs starts a command there'
            )
        if self.upload:
            check_upload(self.upload)


class _News:
    """An actor: the news of tasks since the last look, of each the latest, and their warnings."""

    def __init__(self) -> None:
        self._latest: dict[str, WorkNews] = {}
        self._warnings: list[str] = []

    def add(self, name: str, item: WorkNews | WorkWarning) -> None:
        if isinstance(item, WorkNews):
            self._latest[name] = item
        else:
            self._warnings.append(item.text)

    def taken(self) -> tuple[dict[str, WorkNews], list[str]]:
        found = self._latest, self._warnings
        self._latest, self._warnings = {}, []
        return found


def _remote_task(order: ClusterOrder, news: Any, name: str) -> tuple[str, TaskOutcome]:
    """Carry out an order in a process of Ray; return the node too."""
    import ray

    # Ray blocks it, and nodes that inherit that would wait for SIGTERM.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    node = ray.get_runtime_context().get_node_id()
    return node, carry_out(order, lambda item: news.add.remote(name, item))


@dataclass(frozen=True)
class _Try:
    task: MatrixTask
    number: int = 1

    @property
    def name(self) -> str:
        kind = 'scene' if self.task.prepares else 'run'
        return f'{kind}-{self.task.number}.{self.number}'


@contextmanager
def run_on_cluster(
    plans: Sequence[RunPlan], preparation: Preparation, cluster: Cluster, progress: Progress
) -> Iterator[list[RunReport]]:
    """Run runs on the nodes of a cluster; gives their reports, as `run_side_by_side` does.

    A try that a node fails, or dies in, is repeated elsewhere, `cluster.tries` times in all.
    Raises MissingDependencyError without Ray, RunError if the cluster cannot be reached or one of
    its nodes has another version of this package or does not see the folder of results.
    """
    cluster.check()
    with ExitStack() as stack:
        ray = stack.enter_context(connected(cluster.address))
        check_nodes(ray, plans[0].root, progress)
        incoming = stack.enter_context(draft_in(plans[0].root))
        runs = OnCluster(ray, plans, preparation, cluster, incoming, progress)
        stack.callback(runs.end)
        yield runs.run()


class OnCluster:
    """The tasks that wait, those that Ray has, and the reports of those that are done."""

    task = staticmethod(_remote_task)

    def __init__(
        self,
        ray: Any,
        plans: Sequence[RunPlan],
        preparation: Preparation,
        cluster: Cluster,
        incoming: Path,
        progress: Progress,
    ) -> None:
        self._ray, self._cluster, self._progress = ray, cluster, progress
        self._preparation, self._incoming, self._count = preparation, incoming, len(plans)
        self._nodes = working_nodes(ray)
        self._faulty: set[str] = set()
        for plan in {plan.mapper.name: plan for plan in plans}.values():
            self._place(plan, demand_of(plan))
        self._ready: deque[_Try] = deque()
        self._blocked: dict[Path, list[_Try]] = defaultdict(list)
        tasks = lined_up(plans, self._slots())
        unprepared = {task.plan.shared_directory for task in tasks if task.prepares}
        for task in tasks:
            waits = not task.prepares and task.plan.shared_directory in unprepared
            (self._blocked[task.plan.shared_directory] if waits else self._ready).append(
                _Try(task)
            )
        self._at_ray: dict[Any, _Try] = {}
        self._reports: dict[int, RunReport] = {}
        self._latest: dict[str, WorkNews] = {}
        self._heard_s = 0.0
        self._remote = ray.remote(max_retries=0)(self.task)
        self._news = ray.remote(num_cpus=0)(_News).options(
            label_selector={NODE_ID: ray.get_runtime_context().get_node_id()}
        ).remote()  # fmt: skip

    def run(self) -> list[RunReport]:
        """Run all; return the reports by number."""
        while len(self._reports) < self._count:
            self._submit()
            with signals_held():  # inside of Ray an exception of a handler is lost
                ready, rest = self._ray.wait(list(self._at_ray), timeout=LOOK_EVERY_S)
                ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0] if rest else []
            for ref in ready:
                self._take(self._at_ray.pop(ref), ref)
            self._hear()
        return [self._reports[number] for number in range(self._count)]

    def _slots(self) -> int:
        return int(sum(math.ceil(item['Resources']['CPU']) for item in self._nodes.values()))

    def _submit(self) -> None:
        """Keep Ray busy, with no more than it can begin soon: a task that waits takes memory."""
        while self._ready and len(self._at_ray) < 2 * self._slots() + 2:
            item = self._ready.popleft()
            plan = item.task.plan
            demand = Demand() if item.task.prepares else demand_of(plan)
            place = self._place(plan, demand)
            order = ClusterOrder(
                WorkOrder(plan, item.task.prepares),
                self._incoming / item.name,
                Path.cwd(),
                software(),
                inputs_of(plan, self._preparation),
                place['num_cpus'],
                self._upload_of(item.task),
            )
            with signals_held():
                ref = self._remote.options(**place).remote(order, self._news, item.name)
                self._at_ray[ref] = item

    def _upload_of(self, task: MatrixTask) -> str:
        if task.prepares or not self._cluster.upload:
            return ''
        url, plan = self._cluster.upload.rstrip('/'), task.plan
        return f'{url}/{plan.root.name}/{plan.identity.run_id}'

    def _place(self, plan: RunPlan, demand: Demand) -> dict[str, Any]:
        """Return what a task asks of Ray: at most a whole node; one that is alone, no less."""
        have = [item['Resources'] for item in self._nodes.values()]
        fitting = [item for item in have if item.get('GPU', 0.0) >= demand.gpus]
        if not fitting:
            raise ConfigError(
                f'mapper "{plan.mapper.name}": resources.gpus is {demand.gpus:g}, and no node of '
                'the cluster has as many; lower it, or start such a node'
            )
        largest = max(fitting, key=lambda item: (item['CPU'], item.get('memory', 0)))
        whole = float(largest['CPU'])
        place: dict[str, Any] = {
            'num_cpus': whole if demand.alone else min(demand.cpus or 1.0, whole),
            'num_gpus': demand.gpus if demand.gpus <= 1 else math.ceil(demand.gpus),
            'memory': int(min(demand.memory_bytes or RUN_BYTES, largest.get('memory', 0))),
        }
        if self._faulty:
            place['label_selector'] = {NODE_ID: f'!in({",".join(sorted(self._faulty))})'}
        return place

    def _take(self, item: _Try, ref: Any) -> None:
        self._latest.pop(item.name, None)
        try:
            node, delivery = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._again(item, cause(error))
            return
        if delivery.fault:
            self._avoid(node)
            self._again(item, f'{self._address(node)}: {delivery.fault}')
            return
        if delivery.delivered:
            try:
                patiently(lambda: self._adopt(item), self._progress)
            except (OSError, RunError) as error:
                self._again(item, str(error))
                return
        self._finish(item.task, delivery.done)

    def _address(self, node: str) -> str:
        known = self._nodes.get(node)
        return f'node {known["NodeManagerAddress"] if known else node}'

    def _avoid(self, node: str) -> None:
        """Send nothing more to a node that failed, unless all did."""
        self._nodes = working_nodes(self._ray) or self._nodes
        self._faulty.add(node)
        if self._nodes.keys() <= self._faulty:
            self._faulty.clear()

    def _again(self, item: _Try, fault: str) -> None:
        label, tries = item.task.label(self._count), self._cluster.tries
        self._nodes = working_nodes(self._ray) or self._nodes
        if item.number < tries:
            text = f'{label} is tried again, {item.number + 1} of {tries}: {fault}'
            warnings.warn(text, OsmabenchWarning, stacklevel=2)
            self._ready.appendleft(replace(item, number=item.number + 1))
            return
        error = f'given up after {tries} tries; the last: {fault}'
        if item.task.prepares:
            self._finish(item.task, WorkDone(error=error))
        else:
            self._finish(item.task, WorkDone(failed(item.task.plan, error)))

    def _adopt(self, item: _Try) -> None:
        """Move the files that were delivered to their place."""
        plan, delivered = item.task.plan, self._incoming / item.name
        place = plan.shared_directory if item.task.prepares else plan.directory
        delivered.stat()  # or a folder of results that is out of reach would be made anew
        with atomic_directory(place, Existing.MOVE_ASIDE) as draft:
            for path in delivered.iterdir():
                path.rename(draft / path.name)

    def _finish(self, task: MatrixTask, done: WorkDone) -> None:
        if not task.prepares:
            self._reports[task.number] = done.report or failed(task.plan, done.error)
            return
        for item in self._blocked.pop(task.plan.shared_directory, ()):
            if done.error:
                self._reports[item.task.number] = failed(item.task.plan, done.error)
            else:
                self._ready.append(item)

    def _hear(self) -> None:
        """Show the news of tasks, from time to time."""
        if time.monotonic() - self._heard_s < LOOK_EVERY_S:
            return
        self._heard_s = time.monotonic()
        with signals_held(), suppress(self._ray.exceptions.RayError):
            latest, texts = self._ray.get(self._news.taken.remote(), timeout=LOOK_EVERY_S)
            self._latest |= latest
            for text in texts:
                warnings.warn(text, OsmabenchWarning, stacklevel=2)
        known = [item for item in self._at_ray.values() if item.name in self._latest]
        lines = [
            f'{item.task.label(self._count)}: {self._latest[item.name].text}'
            for item in known[:SHOWN]
        ]
        if len(known) > SHOWN:
            lines.append(f'and {len(known) - SHOWN} more under way')
        under_way = sum(
            self._latest[item.name].fraction for item in known if not item.task.prepares
        )
        self._progress('\n'.join(lines), (len(self._reports) + under_way) / self._count)

    def end(self) -> None:
        """Cancel all tasks, and wait until their nodes have ended; results stay as they are."""
        left = list(self._at_ray)
        for force in (False, True):
            for ref in left:
                self._ray.cancel(ref, force=force)
            if left:
                _, left = self._ray.wait(left, num_returns=len(left), timeout=END_S)
