"""When runs side by side begin and end, with workers that only say what they would do."""

from collections import Counter
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest
from support.world.runs import small_config

from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.base.progress import silent
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import RunPlan, plan_runs
from osmabench_ros.runs.results.report_model import RunReport, Status

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.bringup.runner import side_by_side
from osmabench_ros.bringup.runner.admission import Capacity
from osmabench_ros.bringup.runner.side_by_side import WorkDone, WorkOrder, WorkWarning

GIB = 2**30


class Workers:
    """Makes workers that need some looks for an order; notes what is under way together."""

    def __init__(self) -> None:
        self.under_way: list[tuple[str, ...]] = []
        self.orders: list[WorkOrder] = []
        self.unpreparable = self.deadly = ''
        self.peak_memory_bytes = GIB
        self.ended = 0
        self.beside_retired: list[list[str]] = []
        self._running: dict[object, str] = {}

    def __call__(self, *_arguments: Any) -> 'Worker':
        return Worker(self)

    def begin(self, worker: object, order: WorkOrder) -> None:
        self.orders.append(order)
        kind = 'prepare' if order.prepares else order.plan.mapper.name
        self._running[worker] = f'{kind} {order.plan.scene.seed}'
        self.under_way.append(tuple(sorted(self._running.values())))

    def finish(self, worker: object) -> str:
        return self._running.pop(worker)

    def retire(self) -> None:
        self.beside_retired.append(list(self._running.values()))


class Worker:
    def __init__(self, workers: Workers) -> None:
        self.channel, self._theirs = Pipe()
        self._workers, self._looks, self._order = workers, 0, None
        self.peak_memory_bytes = 0
        self._dead = False

    def poll(self) -> int | None:
        if self._theirs.poll():
            self._order, self._looks = self._theirs.recv(), 0
            self._workers.begin(self, self._order)
            self._theirs.send('so that nobody waits')
        return -9 if self._dead else None

    def news(self) -> list[object]:
        if self.channel.poll():
            self.channel.recv()
        self._looks += 1
        if self._order is None or self._looks < 3:
            self._theirs.send('again')
            return []
        order, self._order = self._order, None
        name = self._workers.finish(self)
        self.peak_memory_bytes = self._workers.peak_memory_bytes
        if name == self._workers.deadly:
            self._dead = True
            return [WorkDone(error='worker 1 was killed by SIGKILL')]
        if order.prepares:
            return [WorkDone(error='no path' if name == self._workers.unpreparable else '')]
        report = RunReport(run_id=order.plan.identity.run_id, status=Status.COMPLETE)
        return [WorkWarning('mind this'), WorkDone(report)]

    def stop(self) -> None:
        self._workers.ended += 1

    def retire(self) -> None:
        self._workers.retire()

    def wait(self, _timeout_s: float) -> None:
        pass


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    found = Workers()
    monkeypatch.setattr(side_by_side, 'Worker', found)
    return found


def planned(root: Path, mappers: list[dict[str, Any]]) -> list[RunPlan]:
    claim_folder(root)
    scenes = [{'reference': 'apartment', 'seed': seed} for seed in (3, 4)]
    config = parse_config(small_config(scenes=scenes, mappers=mappers), 'test')
    keys = {item: SceneKey('apartment', f'seed_{item.seed}', item.seed) for item in config.scenes}
    return plan_runs(config, keys, root)


def run(plans: list[RunPlan], jobs: int, memory_gib: float = 64.0) -> list[RunReport]:
    capacity = Capacity(16.0, round(memory_gib * GIB))
    with (
        pytest.warns(OsmabenchWarning, match='mind this'),
        side_by_side.run_side_by_side(plans, jobs, capacity, silent) as reports,
    ):
        return reports


UNPACED = {'name': 'unpaced', 'command': ['true'], 'acks': False}


def test_reports_are_in_the_order_of_the_plans_and_realtime_runs_were_alone(
    workers: Workers, tmp_path: Path
) -> None:
    plans = planned(tmp_path / 'small', [UNPACED, {'name': 'oracle'}, {'name': 'appearance'}])
    reports = run(plans, 3)
    assert [item.run_id for item in reports] == [plan.identity.run_id for plan in plans]
    assert max(map(len, workers.under_way)) == 3
    assert all(len(names) == 1 for names in workers.under_way if 'unpaced' in ''.join(names))
    at_once = {item.plan.mapper.name: item.runs_at_once for item in workers.orders}
    assert at_once == {'unpaced': 1, 'oracle': 3, 'appearance': 3}
    done = Counter(item.plan.identity.scene_key.seed for item in workers.orders if item.prepares)
    assert done == {3: 1, 4: 1}
    assert workers.ended == 3
    # Who has no more work ends beside the last run, and nobody before.
    assert ['unpaced 4'] in workers.beside_retired
    assert all(names in ([], ['unpaced 4']) for names in workers.beside_retired)


def test_a_scene_that_cannot_be_prepared_fails_its_runs_and_no_other(
    workers: Workers, tmp_path: Path
) -> None:
    workers.unpreparable = 'prepare 3'
    plans = planned(tmp_path / 'small', [{'name': 'oracle'}, {'name': 'appearance'}])
    reports = run(plans, 2)
    assert [item.status for item in reports] == [Status.FAILED] * 2 + [Status.COMPLETE] * 2
    assert [item.error for item in reports] == ['no path', 'no path', '', '']
    assert (plans[0].directory / 'failure.json').exists()


def test_a_worker_that_dies_fails_its_run_and_is_replaced(
    workers: Workers, tmp_path: Path
) -> None:
    workers.deadly = 'oracle 3'
    plans = planned(tmp_path / 'small', [{'name': 'oracle'}, {'name': 'appearance'}])
    reports = run(plans, 2)
    assert [bool(item.error) for item in reports] == [True, False, False, False]
    assert 'SIGKILL' in reports[0].error
    assert workers.ended == 3


def test_observed_memory_lets_fewer_runs_begin(workers: Workers, tmp_path: Path) -> None:
    workers.peak_memory_bytes = 5 * GIB
    plans = planned(
        tmp_path / 'small',
        [{'name': f'm{number}', 'implementation': 'oracle'} for number in range(4)],
    )
    run(plans, 4, memory_gib=8.0)
    of_scene_4 = [names for names in workers.under_way if all(' 4' in name for name in names)]
    assert max(map(len, workers.under_way)) == 4
    assert max(map(len, of_scene_4)) == 1
