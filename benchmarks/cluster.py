"""Overhead of a task on a cluster, and the fraction of time in which nodes idle.

    python benchmarks/cluster.py
    python benchmarks/cluster.py --tasks 10000

Tasks of known length go through the scheduler of `osmabench run --cluster` to nodes of Ray on this
machine. Then fewer tasks, of which some last long and some kill their worker, go the same way.
"""

import math
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import typer
from measuring import console

from osmabench_ros.base.progress import silent
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.report_model import RunReport, Status


class Measured(NamedTuple):
    """Of tasks of known length: the time until all are done, and what went into it."""

    makespan_s: float
    worked_s: float
    slots: int
    driver_s: float
    """Of processor time, in the command."""
    lost: int

    def idle_s(self) -> float:
        """Return the time of all slots in which none slept for a task that was done."""
        return self.makespan_s * self.slots - self.worked_s

    def verdict(self, tasks: int) -> str:
        """Return what a task costs and how long nodes idle."""
        return (
            f'{tasks:,} tasks of {self.worked_s / tasks:.3f} s on {self.slots} slots took '
            f'{self.makespan_s:.1f} s: {self.idle_s() / tasks * 1000:.1f} ms of a slot a task '
            f'next to its length, idle {self.idle_s() / self.makespan_s / self.slots:.1%}, '
            f'{self.driver_s / tasks * 1000:.1f} ms of processor in the command'
        )


def through_ray(
    nodes: Sequence[int], lengths_s: Sequence[float], mtbf_s: float = math.inf
) -> Measured:
    """Send tasks that sleep to a cluster of this machine, `nodes` with so many processors each.

    Tasks kill their worker at random, every `mtbf_s` of its time.
    """
    os.environ.update(RAY_USAGE_STATS_ENABLED='0', RAY_worker_niceness='0')
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='ray', dir='/tmp')))
        os.environ['RAY_TMPDIR'] = str(folder)
        (folder / 'ray').mkdir()
        from ray.cluster_utils import Cluster as RayCluster

        from osmabench_ros.bringup.runner.cluster import Cluster, RayBackEnd, connect
        from osmabench_ros.bringup.runner.dispatch import Dispatcher, Result

        def sleeping(fails: bool) -> type[RayBackEnd]:
            def sleeps(order: Any, _queue: Any, name: str) -> Result:
                number, number_of_try = map(int, name.removeprefix('run-').split('.'))
                random = np.random.default_rng((number, number_of_try))
                if fails and (until_s := random.exponential(mtbf_s)) < lengths_s[number]:
                    time.sleep(until_s)
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(lengths_s[number])
                run_id = order.plan.identity.run_id
                return Result(RunReport(run_id=run_id, status=Status.COMPLETE))

            return type('Sleeping', (RayBackEnd,), {'task': staticmethod(sleeps)})

        data: dict[str, Any] = {
            'name': 'sleeping',
            'mappers': [{'name': 'oracle'}],
            'seeds': {'method': list(range(len(lengths_s)))},
        }
        preparation, root = Preparation(), folder / 'sleeping'
        plans = preparation.plans(parse_config(data, 'sleeping'), root)
        plans[0].shared_directory.mkdir(parents=True)
        small = {'object_store_memory': 80 * 2**20, 'memory': 2**40}
        head = {'num_cpus': 0, 'include_dashboard': False, **small}
        ray_cluster = RayCluster(initialize_head=True, head_node_args=head)
        stack.callback(ray_cluster.shutdown)
        for processors in nodes:
            ray_cluster.add_node(num_cpus=processors, **small)
        ray = stack.enter_context(connect(ray_cluster.address))
        cluster = Cluster(ray_cluster.address, tries=100)

        def run(count: int, fails: bool) -> tuple[float, list[RunReport]]:
            start_s = time.monotonic()
            back_end = sleeping(fails)(ray, cluster, plans[:count], preparation)
            reports = Dispatcher(plans[:count], back_end, silent).run()
            return time.monotonic() - start_s, reports

        run(sum(nodes), fails=False)  # Workers start.
        with catch_warnings(record=True) as warned:
            simplefilter('always', OsmabenchWarning)
            before_s = time.process_time()
            makespan_s, reports = run(len(plans), math.isfinite(mtbf_s))
            driver_s = time.process_time() - before_s
        if any(item.status is not Status.COMPLETE for item in reports):
            raise SystemExit(f'a task failed: {next(filter(None, (x.error for x in reports)))}')
        lost = sum(issubclass(item.category, OsmabenchWarning) for item in warned)
    return Measured(makespan_s, float(sum(lengths_s)), sum(nodes), driver_s, lost)


def main(tasks: int = 400) -> None:
    """Measure tasks on four nodes, then others that die."""
    nodes, random = (2, 2, 2, 2), np.random.default_rng(2)
    console.print(through_ray(nodes, random.uniform(0.1, 0.3, tasks)).verdict(tasks))
    mtbf_s, lengths_s = 20.0, np.where(random.random(200) < 0.05, 4.0, 1.0)
    found = through_ray(nodes, lengths_s, mtbf_s)
    console.print(
        f'{len(lengths_s)} tasks of 1 s, one in twenty of 4 s, a worker killed every {mtbf_s:.0f} '
        f's: {found.makespan_s:.1f} s with {found.lost} tries lost'
    )


if __name__ == '__main__':
    typer.run(main)
