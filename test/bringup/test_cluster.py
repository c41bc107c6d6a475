"""The same matrix on a real cluster of Ray: whatever its nodes go through, the same results."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from support.fault_runs import COMMAND, failure, half_written, start, success
from support.libraries import needs
from support.ray_nodes import ray_cluster
from support.waiting import read_until, wait_until
from support.world.runs import foreign, matrix_config, repeatable, small_config

from osmabench_ros.base.files import claim_folder
from osmabench_ros.errors import ConfigError, MissingDependencyError, OsmabenchWarning, RunError
from osmabench_ros.language.gemini import GeminiModel
from osmabench_ros.language.openai import OpenAIModel
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.preparation import Preparation

pytest.importorskip('rclpy')

from osmabench_ros.bringup.runner import cluster
from osmabench_ros.bringup.runner.cluster import Cluster, RayBackEnd, RemoteOrder, connect
from osmabench_ros.bringup.runner.dispatch import Dispatcher, News, Notice, Task

pytestmark = [pytest.mark.ros, pytest.mark.timeout(900), needs('ray')]

CONFIG = small_config(
    conditions=['baseline', 'nominal'],
    mappers=[foreign('on_order')],
    pacing={'ack_timeout_s': 300.0},
)


@pytest.fixture(scope='module')
def nodes():
    with ray_cluster() as found:
        found.add('a')
        yield found


@pytest.fixture(scope='module')
def expected(prepared, tmp_path_factory):
    """Return the files of the matrix as it is run without a cluster."""
    folder = tmp_path_factory.mktemp('local')
    prepared.put_into(folder / 'runs', CONFIG)
    success(start(folder, CONFIG))
    return repeatable(folder / 'runs' / 'small')


def begin(tmp_path, nodes, *options):
    # A node has its own environment, which differs from this one.
    command = (*COMMAND, '--cluster', nodes.address, *options)
    return start(tmp_path, CONFIG, command=command, TEST_ORDER='upset')


def differences(found, expected):
    names = sorted(found.keys() | expected.keys())
    return [name for name in names if found.get(name) != expected.get(name)]


@pytest.mark.gl
@pytest.mark.slow
@pytest.mark.full
def test_ctrl_c_ends_tasks_at_work_and_those_that_wait(tmp_path, nodes, prepared):
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


@pytest.mark.gl
@pytest.mark.slow
@pytest.mark.full
def test_workers_and_nodes_that_die_cost_tries_and_no_result(tmp_path, nodes, expected):
    nodes.add('b')
    for name in 'ab':
        nodes.holds_up(name).touch()
    kept = tmp_path / 'kept'
    command = begin(tmp_path, nodes, '--upload', kept.as_uri())
    wait_until(lambda: nodes.is_held_up('a') and nodes.is_held_up('b'), 240)
    nodes.kill_worker('b')
    text = read_until(command, 'is tried again, 2 of 3: WorkerCrashedError')
    wait_until(lambda: nodes.is_held_up('b'))
    nodes.kill('a')
    text += read_until(command, 'is tried again, 2 of 3')
    nodes.holds_up('b').unlink()
    nodes.holds_up('a').unlink()
    text += command.stdout.read()
    assert command.wait() == 0, text
    assert text.count('is tried again') == 2
    assert differences(repeatable(tmp_path / 'runs' / 'small'), expected) == []
    assert half_written(tmp_path) == []
    runs = {path.parent.name for path in (tmp_path / 'runs' / 'small').glob('*/report.json')}
    assert {path.parent.name for path in kept.glob('small/*/uploaded.json')} == runs
    nodes.add('a')
    nodes.kill('b')


@pytest.mark.gl
@pytest.mark.slow
@pytest.mark.full
def test_a_node_with_other_sources_ends_the_command(tmp_path, nodes, prepared, monkeypatch):
    # Ray lets tasks import from the folder that the command was started in, before all others.
    monkeypatch.chdir(nodes.place('other'))
    copy = tmp_path / 'osmabench_ros'
    shutil.copytree(Path(cluster.__file__).parents[2], copy)
    (copy / 'of_another_version.py').touch()
    nodes.add('other', PYTHONPATH=str(tmp_path))
    nodes.kill('a')
    prepared.put_into(tmp_path / 'runs', CONFIG)
    text = failure(tmp_path, begin(tmp_path, nodes), code=1)
    nodes.add('a')
    nodes.kill('other')
    assert f'{cluster.describe_software()}; install the same' in text


@pytest.mark.slow
def test_messages_of_tasks_are_shown_and_workers_that_always_die_are_given_up(
    tmp_path, nodes, capfd
):
    tries = tmp_path / 'tries'

    def dies(_order, queue, name):
        print('printed far away', flush=True)
        queue.put((name, News('at frame 3', 0.5)))
        queue.put((name, Notice('a far warning')))
        tries.open('a').write(f'{name} ')
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGKILL)

    class Dying(RayBackEnd):
        task = staticmethod(dies)

    preparation, shown = Preparation(), []
    plans = preparation.plans(parse_config(CONFIG, 'test'), tmp_path / 'small')
    with connect(nodes.address) as ray:
        back_end = Dying(ray, Cluster(nodes.address, tries=2), plans, preparation)
        dispatcher = Dispatcher(plans, back_end, lambda text, _: shown.append(text))
        with pytest.warns(OsmabenchWarning) as warned:
            reports = dispatcher.run()
    assert tries.read_text().split() == ['scene-0.1', 'scene-0.2']
    assert ['given up after 2 tries' in item.error for item in reports] == [True, True]
    said = [str(item.message) for item in warned]
    assert sum('is tried again, 2 of 2: WorkerCrashedError' in item for item in said) == 1
    assert 'a far warning' in said
    assert any(item.endswith('at frame 3') for item in shown)
    assert 'printed far away' in capfd.readouterr().out


def plan_small(tmp_path, **changes):
    preparation = Preparation()
    root = tmp_path / 'small'
    return preparation.plans(matrix_config(**small_config(**changes)), root), preparation


def back_end_of(plans, preparation, **resources):
    """Return a back end for nodes with these resources, and the calls that it makes of Ray."""
    node = {'Alive': True}
    nodes = [{**node, 'NodeID': name, 'Resources': item} for name, item in resources.items()]
    calls = MagicMock(**{'nodes.return_value': nodes, 'exceptions.RayError': RuntimeError})
    return RayBackEnd(calls, Cluster('auto'), plans, preparation), calls


BIG, WITH_GPUS = {'CPU': 8.0, 'memory': 2.0**34}, {'CPU': 4.0, 'GPU': 2.0, 'memory': 2.0**33}


def test_a_run_asks_of_ray_no_more_than_a_node_has(tmp_path):
    def place(**mapper):
        plans, preparation = plan_small(tmp_path, mappers=[{'name': 'oracle'} | mapper])
        back_end, _ = back_end_of(plans, preparation, a=BIG, b=WITH_GPUS)
        found = back_end.choose_resources(Task(plans[0], 0))
        return found['num_cpus'], found['num_gpus']

    assert place() == (1.0, 0.0)
    assert place(resources={'cpus': 16}) == (8.0, 0.0)
    assert place(name='theirs', command=['true'], acks=False)[0] == 8.0
    assert place(resources={'cpus': 16, 'gpus': 1.5}) == (4.0, 2)
    with pytest.raises(ConfigError, match='resources.gpus is 3'):
        place(resources={'gpus': 3})


def test_a_node_that_differs_ends_the_command(tmp_path):
    plans, preparation = plan_small(tmp_path)
    back_end, calls = back_end_of(plans, preparation, a=BIG, b=BIG)
    assert back_end.begin(Task(plans[0], 0))
    [ref] = back_end._at_ray
    calls.wait.return_value = ([ref], [])
    error = RuntimeError('a long traceback')
    error.cause = RunError('node b: it has another version')
    calls.get.side_effect = error
    with pytest.raises(RunError, match='node b: it has another version'):
        list(back_end.poll())


def test_a_node_that_differs_from_the_command_says_in_what(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [plan], preparation = plan_small(tmp_path)
    inputs, software = cluster.hash_inputs(plan, preparation), cluster.describe_software()

    def check(inputs, software):
        RemoteOrder(plan, False, 1.0, inputs, tmp_path, software).check()

    with pytest.raises(RunError, match=f'it has {software}, and the command older; install'):
        check(inputs, 'older')
    with pytest.raises(RunError, match='does not see .*small; choose an --out that all share'):
        check(inputs, software)
    claim_folder(plan.root)
    check(inputs, software)
    with pytest.raises(RunError, match=r'^a file differs from the command; copy it'):
        check({**inputs, 'a file': 'other'}, software)


def test_orders_to_nodes_hold_no_key_of_the_environment(tmp_path, monkeypatch):
    import ray

    keys = *OpenAIModel.key_variables, *GeminiModel.key_variables
    for name in (*keys, 'AWS_SECRET_ACCESS_KEY'):
        monkeypatch.setenv(name, 'hush-me')
    suites = [{'name': 'hypo3d', 'options': {'answerer': 'graph:openai:m'}}]
    plans, preparation = plan_small(tmp_path, suites=suites)
    back_end, calls = back_end_of(plans, preparation, a=BIG)
    for prepares in (True, False):
        back_end.begin(Task(plans[0], 0, prepares))
    asked = calls.remote.return_value.return_value.options.return_value.remote
    sent = [call.args[0] for call in asked.call_args_list if len(call.args) > 1]
    assert [order.prepares for order in sent] == [True, False]
    pickled = b''.join(ray.cloudpickle.dumps(order) for order in sent)
    assert b'graph:openai:m' in pickled
    assert b'hush-me' not in pickled


def test_without_ray_or_its_cluster_the_remedy_is_told(monkeypatch):
    with pytest.raises(ConfigError, match='give auto or HOST:PORT'), connect('ray://head:10001'):
        pass
    with pytest.raises(RunError, match='refused; ray status'), connect('127.0.0.1:1'):
        pass
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(MissingDependencyError, match='pip install .*ray'), connect('auto'):
        pass
