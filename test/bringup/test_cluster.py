"""The same matrix on a real cluster of Ray: whatever its nodes go through, the same results."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fault_runs import COMMAND, failure, half_written, read_until, start, success
from support.libraries import needs
from support.ray_nodes import Nodes, ray_cluster
from support.waiting import wait_until
from support.world.runs import PreparedScenes, foreign, repeatable, small_config

from osmabench_ros.bringup.runner import cluster_task
from osmabench_ros.bringup.runner.cluster import Cluster, OnCluster
from osmabench_ros.bringup.runner.cluster_nodes import connected
from osmabench_ros.bringup.runner.side_by_side import WorkNews, WorkWarning
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.prepare.preparation import Preparation

pytestmark = [
    pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(900), needs('ray'),
]  # fmt: skip

CONFIG = small_config(
    conditions=['baseline', 'nominal'],
    mappers=[foreign('on_order')],
    pacing={'ack_timeout_s': 300.0},
)


@pytest.fixture(scope='module')
def nodes() -> Iterator[Nodes]:
    with ray_cluster() as found:
        found.add('a')
        yield found


@pytest.fixture(scope='module')
def expected(
    prepared: PreparedScenes, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """What the matrix leaves that is run without a cluster."""
    folder = tmp_path_factory.mktemp('local')
    prepared.put_into(folder / 'runs', CONFIG)
    success(start(folder, CONFIG))
    return repeatable(folder / 'runs' / 'small')


def begin(tmp_path: Path, nodes: Nodes, *options: str) -> subprocess.Popen[str]:
    command: tuple[Any, ...] = (*COMMAND, '--cluster', nodes.address, *options)
    # A node has its own environment, and this one is that of no node.
    return start(tmp_path, CONFIG, command=command, TEST_ORDER='upset')


def differences(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    names = sorted(found.keys() | expected.keys())
    return [name for name in names if found.get(name) != expected.get(name)]


@pytest.mark.full
def test_ctrl_c_ends_tasks_at_work_and_those_that_wait(
    tmp_path: Path, nodes: Nodes, prepared: PreparedScenes
) -> None:
    nodes.holds_up('a').touch()
    prepared.put_into(tmp_path / 'runs', CONFIG)
    command = begin(tmp_path, nodes)
    wait_until(lambda: nodes.is_held_up('a'), 240)
    started = nodes.processes_of_tasks('a')
    assert len(started) > 4, 'the nodes of a run and its mapper'
    command.send_signal(signal.SIGINT)
    failure(tmp_path, command, code=130)
    wait_until(lambda: nodes.is_idle('a'))
    wait_until(lambda: not any(process.is_running() for process in started))


@pytest.mark.full
def test_what_nodes_and_the_shared_folder_go_through_costs_tries_and_no_result(
    tmp_path: Path, nodes: Nodes, expected: dict[str, bytes]
) -> None:
    kept, runs, away = tmp_path / 'kept', tmp_path / 'runs', tmp_path / 'away'
    nodes.add('b')
    for name in 'ab':
        nodes.holds_up(name).touch()
    command = begin(tmp_path, nodes, '--upload', kept.as_uri())
    wait_until(lambda: nodes.is_held_up('a') and nodes.is_held_up('b'), 240)
    nodes.kill_worker('b')
    text = read_until(command, 'is tried again, 2 of 3')
    wait_until(lambda: nodes.is_held_up('b'))
    with nodes.with_a_small_disk('small'):
        # It alone is free for the run of the node that dies.
        nodes.kill('a')
        text += read_until(command, 'is tried again, 3 of 3: node')
        runs.rename(away)
        nodes.holds_up('b').unlink()
        text += read_until(command, 'waiting for the shared folder')
        away.rename(runs)
        text += command.stdout.read()
    assert command.wait() == 0, text
    assert text.count('is tried again') == 3
    assert 'No space left on device' in text
    assert differences(repeatable(runs / 'small'), expected) == []
    assert half_written(tmp_path) == []
    # A finished run is uploaded whole.
    run = 'apartment.seed_3.baseline.foreign_on_order.opengl.3'
    copy = repeatable(kept / 'small' / run)
    assert b'"report.json"' in copy.pop('uploaded.json')
    assert differences(copy, repeatable(runs / 'small' / run)) == []


@pytest.mark.full
def test_a_node_with_other_sources_is_refused(
    tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ray lets tasks import from the folder that the command was started in, before all others.
    monkeypatch.chdir(nodes.place('other'))
    copy = tmp_path / 'osmabench_ros'
    shutil.copytree(Path(cluster_task.__file__).parents[2], copy)
    (copy / 'of_another_version.py').touch()
    nodes.add('other', PYTHONPATH=str(tmp_path))
    said = failure(tmp_path, begin(tmp_path, nodes))
    nodes.kill('other')
    assert f'{cluster_task.software()}; install the same everywhere' in said


def test_what_tasks_say_is_shown_and_workers_that_always_die_are_given_up(
    tmp_path: Path, nodes: Nodes, capfd: pytest.CaptureFixture[str]
) -> None:
    tries = tmp_path / 'tries'

    def dies(_order: object, news: Any, name: str) -> None:
        print('printed far away', flush=True)
        news.add.remote(name, WorkNews('at frame 3', 0.5))
        news.add.remote(name, WorkWarning('a far warning'))
        tries.open('a').write(f'{name} ')
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGKILL)

    class Dying(OnCluster):
        task = staticmethod(dies)

    preparation, shown = Preparation(), []
    plans = preparation.plans(parse_config(CONFIG, 'test'), tmp_path / 'small')
    cluster = Cluster(address=nodes.address, tries=2)
    with connected(nodes.address) as ray, pytest.warns(OsmabenchWarning) as warned:
        reports = Dying(
            ray, plans, preparation, cluster, tmp_path, lambda text, _: shown.append(text)
        ).run()
    assert tries.read_text().split() == ['scene-0.1', 'scene-0.2']
    assert ['given up after 2 tries' in item.error for item in reports] == [True, True]
    said = [str(item.message) for item in warned]
    assert sum('is tried again, 2 of 2: WorkerCrashedError' in item for item in said) == 1
    assert 'a far warning' in said
    assert any(item.endswith('at frame 3') for item in shown)
    assert 'printed far away' in capfd.readouterr().out
