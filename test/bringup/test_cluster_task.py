"""Parts of runs on a cluster, without one."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from support.benchmark_scripts import benchmark_script
from support.world.runs import small_config

from osmabench_ros.base.files import sha256_of
from osmabench_ros.base.owned_folder import DRAFT_PREFIX, claim_folder
from osmabench_ros.base.progress import silent
from osmabench_ros.bringup.runner.side_by_side import WorkOrder
from osmabench_ros.bringup.spec.isolation import private_domain
from osmabench_ros.errors import ConfigError, MissingDependencyError, RunError
from osmabench_ros.language.gemini import KEY_VARIABLES
from osmabench_ros.language.openai import KEY_VARIABLE
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.prepare.preparation import Preparation

pytestmark = pytest.mark.ros

ANOTHER_DOMAIN = """
from osmabench_ros.bringup.spec import isolation
isolation.FIRST_DOMAIN = isolation.LAST_DOMAIN = {domain}
with isolation.private_domain():
    pass
"""

KILLED_AT_WORK = """
import os, signal, sys
from pathlib import Path
from osmabench_ros.base.owned_folder import draft_in
with draft_in(Path(sys.argv[1])) as folder:
    (folder / 'map').touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / 'run'
    (folder / 'map').mkdir(parents=True)
    (folder / 'report.json').write_text('{}')
    (folder / 'map' / 'cloud.ply').write_bytes(b'\0' * 1000)
    return folder


def test_an_upload_is_whole_once_its_digests_are_there(run: Path) -> None:
    fsspec = pytest.importorskip('fsspec')
    from osmabench_ros.bringup.runner.cluster_task import UPLOADED, upload

    memory = fsspec.filesystem('memory')
    upload(run, 'memory://bucket/small/run')
    found = json.loads(memory.cat_file(f'/bucket/small/run/{UPLOADED}'))
    files = [run / 'map' / 'cloud.ply', run / 'report.json']
    assert found == {item.relative_to(run).as_posix(): sha256_of(item) for item in files}
    assert memory.cat_file('/bucket/small/run/map/cloud.ply') == bytes(1000)
    # One that is whole is left alone; one that was cut off, or is of other files, is repeated.
    memory.rm('/bucket/small/run/report.json')
    upload(run, 'memory://bucket/small/run')
    assert not memory.exists('/bucket/small/run/report.json')
    memory.rm(f'/bucket/small/run/{UPLOADED}')
    upload(run, 'memory://bucket/small/run')
    assert memory.exists('/bucket/small/run/report.json')


@pytest.mark.parametrize(
    ('url', 'reason'),
    [
        ('s3://me:hush@bucket/runs', 'credentials from their environment'),
        ('https://host/runs?token=hush', 'credentials from their environment'),
        ('nowhere://bucket', 'nowhere'),
    ],
)
def test_an_upload_that_holds_a_secret_or_leads_nowhere_is_refused(url: str, reason: str) -> None:
    pytest.importorskip('fsspec')
    from osmabench_ros.bringup.runner.cluster_task import check_upload

    with pytest.raises(ConfigError, match=reason) as error:
        check_upload(url)
    assert 'hush' not in str(error.value)


def test_a_delivery_appears_whole_and_makes_no_folder_above_it(run: Path, tmp_path: Path) -> None:
    from osmabench_ros.bringup.runner.cluster_task import deliver

    with pytest.raises(OSError, match='incoming'):
        deliver(run, tmp_path / 'incoming' / 'run-0.1')
    assert not (tmp_path / 'incoming').exists()
    target = tmp_path / 'incoming' / 'run-0.1'
    (tmp_path / 'incoming' / 'run-0.1.partial').mkdir(parents=True)
    deliver(run, target)
    assert sha256_of(target) == sha256_of(run)
    assert [item.name for item in target.parent.iterdir()] == ['run-0.1']


def test_a_shared_folder_is_waited_for_and_a_full_disk_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from osmabench_ros.bringup.runner import cluster_task

    patiently = cluster_task.patiently

    failures = [OSError(5, 'Input/output error'), RunError('stale')]
    said: list[str] = []

    def action() -> str:
        if failures:
            raise failures.pop()
        return 'done'

    assert patiently(action, lambda text, _: said.append(text)) == 'done'
    assert ['stale' in said[0], 'Input/output error' in said[1], len(said)] == [True, True, 2]
    failures[:] = [RunError('again'), OSError(28, os.strerror(28))]
    with pytest.raises(OSError, match='No space left'):
        patiently(action, lambda *_: None)
    monkeypatch.setattr(cluster_task, 'PATIENCE_S', 0.0)
    with pytest.raises(RunError, match='again'):
        patiently(action, lambda *_: None)


def test_what_a_run_asks_of_ray_is_what_a_node_can_give() -> None:
    from osmabench_ros.bringup.runner.admission import Demand
    from osmabench_ros.bringup.runner.cluster import OnCluster

    resources = ({'CPU': 8.0, 'memory': 2**34}, {'CPU': 4.0, 'GPU': 2.0, 'memory': 2**33})
    nodes = {str(number): {'Resources': item} for number, item in enumerate(resources)}
    cluster = SimpleNamespace(_nodes=nodes, _faulty=set())
    plan = SimpleNamespace(mapper=SimpleNamespace(name='mine'))

    def place(demand: Demand) -> tuple[float, float]:
        found = OnCluster._place(cluster, plan, demand)
        return found['num_cpus'], found['num_gpus']

    assert place(Demand()) == (1.0, 0.0)
    assert place(Demand(cpus=16)) == (8.0, 0.0)
    assert place(Demand(alone=True)) == (8.0, 0.0)
    assert place(Demand(cpus=16, gpus=1.5)) == (4.0, 2)
    with pytest.raises(ConfigError, match='resources.gpus is 3'):
        place(Demand(gpus=3))


def test_domains_differ_even_where_folders_of_locks_do(tmp_path: Path) -> None:
    with private_domain() as domain:
        done = subprocess.run(
            [sys.executable, '-c', ANOTHER_DOMAIN.format(domain=domain)],
            env={**os.environ, 'TMPDIR': str(tmp_path)},
            capture_output=True,
            text=True,
        )
    assert f'all ROS domains from {domain} to {domain} are in use' in done.stderr


def test_an_address_of_ray_client_is_refused() -> None:
    from osmabench_ros.bringup.runner.cluster import Cluster

    with pytest.raises(ConfigError, match='give auto or HOST:PORT'):
        Cluster(address='ray://head:10001').check()


def test_without_ray_or_its_cluster_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('ray')
    from osmabench_ros.bringup.runner.cluster_nodes import connected

    with pytest.raises(RunError, match='refused; ray status'), connected('127.0.0.1:1'):
        pass
    monkeypatch.setitem(sys.modules, 'ray', None)
    with (
        pytest.raises(MissingDependencyError, match='pip install .*ray'),
        connected('auto'),
    ):
        pass


def test_the_next_task_of_a_node_removes_what_a_killed_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from osmabench_ros.bringup.runner.cluster_task import ClusterOrder, carry_out, software

    disk, root = tmp_path / 'disk', tmp_path / 'small'
    of_the_user = disk / f'{DRAFT_PREFIX}mine'
    of_the_user.mkdir(parents=True)
    killed = subprocess.run([sys.executable, '-c', KILLED_AT_WORK, str(disk)])
    assert killed.returncode == -signal.SIGKILL
    assert len(list(disk.iterdir())) == 2
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, 'tempdir', str(disk))
    monkeypatch.setattr(warnings, 'showwarning', warnings.showwarning)
    claim_folder(root)
    [plan] = Preparation().plans(parse_config(small_config(), 'test'), root)
    order = ClusterOrder(
        WorkOrder(plan), tmp_path / 'delivery', tmp_path, software(), {'a file': 'other'}, 1.0
    )
    assert 'a file differs' in carry_out(order, lambda _item: None).fault
    assert list(disk.iterdir()) == [of_the_user]


def test_orders_to_nodes_hold_no_key_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip('ray')
    from osmabench_ros.bringup.runner.cluster import Cluster, OnCluster

    for name in (KEY_VARIABLE, *KEY_VARIABLES, 'AWS_SECRET_ACCESS_KEY'):
        monkeypatch.setenv(name, 'hush-me')
    data = small_config(
        suites=[{'name': 'hypo3d', 'options': {'answerer': 'graph:openai:m'}}],
    )
    preparation = Preparation()
    plans = preparation.plans(parse_config(data, 'test'), tmp_path / 'small')
    node = {'NodeID': 'a', 'Alive': True, 'Resources': {'CPU': 4.0, 'memory': 2.0**34}}
    fake = MagicMock(**{'nodes.return_value': [node]})
    cluster = Cluster(address='auto', upload='memory://bucket')
    runs = OnCluster(fake, plans, preparation, cluster, tmp_path, silent)
    runs._submit()  # the preparation
    plans[0].shared_directory.mkdir(parents=True)
    OnCluster(fake, plans, preparation, cluster, tmp_path, silent)._submit()
    asked = fake.remote.return_value.return_value.options.return_value.remote
    sent = [call.args[0] for call in asked.call_args_list if call.args]
    assert [order.work.prepares for order in sent] == [True, False]
    pickled = b''.join(ray.cloudpickle.dumps(order) for order in sent)
    assert b'graph:openai:m' in pickled
    assert b'hush-me' not in pickled


def test_the_simulation_agrees_with_sums_that_can_be_done_by_hand() -> None:
    pytest.importorskip('ray')
    script = benchmark_script('cluster')
    still = script.World()
    assert script.foretell([3.0, 1.0, 1.0, 1.0], 2, still).makespan_s == 3.0
    assert script.foretell([1.0] * 10, 5, script.World(overhead_s=0.5)).makespan_s == 3.0
    # A driver that takes a second a task keeps one of two slots idle.
    slow = script.foretell([1.0] * 10, 2, script.World(driver_s=1.0))
    assert slow.makespan_s == pytest.approx(11.0, abs=1.0)
    failing = script.World(mtbf_s=10.0, repair_s=5.0)
    found = script.foretell([5.0] * 4000, 100, failing)
    # A run of 5 is cut off by a failure every 10 with probability 1 - exp(-1/2).
    assert found.lost_runs / 4000 == pytest.approx(0.6487, rel=0.05)  # exp(1/2) - 1
