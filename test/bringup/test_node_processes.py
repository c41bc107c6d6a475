"""Nodes that a host forks: each is like a process that was started for it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from support import TESTS
from support.scripted_node import ScriptedNode
from support.waiting import is_alive, wait_until
from support.world.runs import repeatable, run_small, small_config

from osmabench_ros.base.files import claim_folder
from osmabench_ros.bringup.isolation import FOLDER, SEGMENT_LOCK, make_isolated_environment
from osmabench_ros.bringup.runner import node_processes
from osmabench_ros.bringup.runner.node_processes import HOST_MODULE, ManagedProcess, NodeProcesses
from osmabench_ros.errors import RequirementError, RunError

pytestmark = pytest.mark.ros
RUNNER = """
import os, sys, time
from pathlib import Path
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from support.scripted_node import ScriptedNode
NodeProcesses().start(ScriptedNode(words=('0', 'wait')), Path(sys.argv[1]), os.environ)
print('started', flush=True)
time.sleep(600)
"""
KILLED_RUNNER = """
import os, sys
from pathlib import Path
from osmabench_ros.base import processes
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.definition import NodeSpec
from support.scripted_node import ScriptedNode
guard, hosted = processes._guard, sys.argv[2] == '1'

def killed(pid):
    print(pid, flush=True)
    if not hosted or killed.before:
        os.kill(os.getpid(), 9)
    killed.before = True
    return guard(pid)

killed.before, processes._guard = False, killed
spec = ScriptedNode(words=('0', 'wait')) if hosted else NodeSpec('n', command=('sleep', '600'))
NodeProcesses().start(spec, Path(sys.argv[1]), os.environ)
"""
IMPORTS = """
import time
from importlib import import_module
from osmabench_ros.bringup.runner.node_host import PRELOADED_MODULES
for name in PRELOADED_MODULES:
    import_module(name)
print('waiting', flush=True)
time.sleep(600)
"""


class Stage:
    """A host and the nodes that it has forked, each with its folder."""

    def __init__(self, folder):
        self.nodes = NodeProcesses()
        self._folder = folder
        self._others = set(hosts())
        self._started = []

    def start(self, *words, name='node', **environment):
        folder = self._folder / f'run_{len(self._started)}'
        claim_folder(folder)
        variables = {**os.environ, 'PYTHONPATH': str(TESTS), 'PYTHONUNBUFFERED': '1'}
        spec = ScriptedNode(name, words=words)
        process = self.nodes.start(spec, folder, {**variables, **environment})
        self._started.append(process)
        if 'wait' in words:
            wait_until(lambda: 'waiting' in process.log_file.read_text())
        return process

    def run(self, *words, **environment):
        """Run a node to its end; return it and its findings."""
        process = self.start(*words, **environment)
        wait_until(lambda: process.poll() is not None)
        return process, json.loads(process.log_file.read_text().splitlines()[0])

    def host(self):
        [found] = self.hosts()
        return found

    def hosts(self):
        """Return the hosts that began after this stage, not earlier ones of the session."""
        return [item for item in hosts() if item not in self._others]

    def close(self):
        for process in self._started:
            process.stop()
        self.nodes.close()


def is_host(process):
    return process.name().startswith('python') and HOST_MODULE in process.cmdline()


def hosts():
    return [item for item in psutil.Process().children() if is_host(item)]


@pytest.fixture
def stage(tmp_path):
    with closing(Stage(tmp_path)) as made:
        yield made


def test_a_node_finds_what_a_new_process_would(stage, tmp_path, monkeypatch):
    first, found = stage.run('0', ROS_DOMAIN_ID='7', ONLY_THE_FIRST='1')
    monkeypatch.chdir(tmp_path)
    second, again = stage.run('0', ROS_DOMAIN_ID='8')
    assert [first.pid, second.pid] == [found['pid'], again['pid']]
    assert first.pid != second.pid
    for item in (found, again):
        assert item['session'] == item['group'] == item['pid']
        assert (item['threads'], item['heavy']) == (1, [])
        assert item['program'].endswith('support/scripted_node.py')
        assert item['signals'] == [True, True]
        assert 'LEFT_BEHIND' not in item['environment']
    assert again['directory'] == str(tmp_path) != found['directory']
    assert found['environment'].pop('ONLY_THE_FIRST') == '1'
    assert found['environment'].pop('ROS_DOMAIN_ID') == '7'
    assert again['environment'].pop('ROS_DOMAIN_ID') == '8'
    assert again['environment'] == found['environment']
    assert not set(found['random']) & set(again['random'])
    for process in (first, second):
        assert process.log_file.read_text().count('UserWarning: said in every run') == 1


def test_the_host_takes_part_in_no_ros_domain_and_shares_no_heavy_import(stage):
    node = psutil.Process(stage.start('0', 'wait').pid)
    wait_until(lambda: node.ppid() == os.getpid())
    host = stage.host()
    assert host.net_connections() == []
    assert not [item.path for item in host.memory_maps() if 'libtorch' in item.path]


def test_the_end_of_a_node_is_told_as_of_any_process(stage):
    assert stage.run('0')[0].poll() == 0
    assert stage.run('0', 'abort')[0].reason().startswith('was killed by SIGABRT; end of ')
    verdict = RequirementError.exit_code
    assert stage.run(str(verdict))[0].reason().startswith(f'ended with code {verdict}; end of ')
    raised, _ = stage.run('0', 'raise')
    assert raised.poll() == 1
    assert 'ValueError: not foreseen' in raised.reason()


def test_ctrl_c_reaches_a_node_and_not_the_host(stage):
    process, other = stage.start('5', 'wait'), stage.start('0', 'wait')
    process.interrupt()
    wait_until(lambda: process.poll() is not None)
    assert process.poll() == 5
    assert 'interrupted' in process.log_file.read_text()
    assert other.poll() is None
    assert stage.host().is_running()


def test_nodes_outlive_a_host_that_dies_and_the_next_gets_a_new_one(stage):
    process, host = stage.start('6', 'wait'), stage.host()
    host.kill()
    wait_until(lambda: not is_alive(host.pid))
    assert stage.run('0')[0].poll() == 0
    assert stage.host().pid != host.pid
    assert process.poll() is None
    process.interrupt()
    wait_until(lambda: process.poll() == 6)


def test_a_killed_node_leaves_the_host_to_the_next(stage):
    process, host = stage.start('0', 'wait'), stage.host()
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: process.poll() == -signal.SIGKILL)
    assert stage.run('0')[0].poll() == 0
    assert stage.host() == host


def start_runner(script, folder, *words):
    claim_folder(folder)
    paths = os.pathsep.join([str(TESTS), os.environ.get('PYTHONPATH', '')])
    command = [sys.executable, '-c', script, str(folder), *words]
    environment = {**os.environ, 'PYTHONPATH': paths}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_host_and_nodes_end_with_a_runner_that_is_killed(tmp_path):
    runner = start_runner(RUNNER, tmp_path / 'run')
    assert runner.stdout.readline() == 'started\n'
    wait_until(lambda: 'waiting' in (tmp_path / 'run' / 'node.log').read_text())
    family = psutil.Process(runner.pid).children(recursive=True)
    assert sum(map(is_host, family)) == 1
    assert 'node' in [item.name() for item in family]
    runner.kill()
    runner.communicate()
    wait_until(lambda: not any(is_alive(item.pid) for item in family))


@pytest.mark.parametrize('hosted', [True, False])
def test_a_runner_killed_before_it_guards_a_process_leaves_none(hosted, tmp_path):
    runner = start_runner(KILLED_RUNNER, tmp_path / 'run', str(int(hosted)))
    started = [int(line) for line in runner.communicate()[0].split()]
    assert runner.returncode == -signal.SIGKILL
    assert len(started) == 1 + hosted
    wait_until(lambda: not any(map(is_alive, started)))


def test_a_host_that_cannot_start_is_told_with_its_log(stage, tmp_path):
    (tmp_path / 'numpy.py').write_text('raise ImportError("half installed")')
    reason = r'the node host ended with code 1; end of (.*\n)*.*half inst'
    with pytest.raises(RunError, match=reason):
        stage.start('0', PYTHONPATH=str(tmp_path))
    assert stage.hosts() == []


def test_memory_counts_as_of_a_new_process(stage, tmp_path):
    large, _ = stage.run('0', 'memory')
    forked = stage.start('0', 'wait')
    log = tmp_path / 'new.log'
    new = ManagedProcess('new', [sys.executable, '-c', IMPORTS], log, os.environ)
    wait_until(lambda: new.poll() is None and 'waiting' in log.read_text())
    for process in (forked, new):
        process.sample_every_s = 0.0
        process.poll()
    new.stop()
    # Pages of libraries that it has not touched yet do not count.
    assert 0.5 < forked.memory_bytes / new.memory_bytes < 1.1
    assert large.peak_memory_bytes > forked.peak_memory_bytes + (200 << 20)


@pytest.mark.full
@pytest.mark.gl
@pytest.mark.slow
def test_forked_nodes_give_the_same_bytes_as_new_ones(tmp_path, monkeypatch, prepared):
    config = small_config(
        mappers=[{'name': 'appearance'}],
        suites=[{'name': 'map_geometry'}, {'name': 'exact_questions'}],
        recording={'enabled': True},
    )
    programs = []
    before = hosts()
    start = ManagedProcess._start

    def noted(self, *arguments):
        programs.append(self.name)
        return start(self, *arguments)

    def start_anew(_nodes, spec, folder, environment):
        log_file = folder / f'{spec.name}.log'
        return ManagedProcess(spec.name, spec.command_line(folder), log_file, environment)

    monkeypatch.setattr(ManagedProcess, '_start', noted)
    found = []
    for folder, new_processes in ((tmp_path / 'forked', 0), (tmp_path / 'new', 5)):
        if new_processes:
            monkeypatch.setattr(NodeProcesses, 'start', start_anew)
        report = run_small(config, folder, prepared=prepared)
        assert [item.status.value for item in report.runs] == ['complete'], report
        # Times of receipt in a bag differ.
        files = repeatable(folder / 'small').items()
        found.append({name: data for name, data in files if '/bag/' not in name})
        assert len(programs) == new_processes
    assert found[0] == found[1] != {}
    for log in tmp_path.glob('*/small/*/logs/map_recorder.log'):
        assert log.read_text().count('wrote ') == 1
    assert hosts() == before


NODE = """
import rclpy
rclpy.init()
node = rclpy.create_node('holder')
print('ready', flush=True)
rclpy.spin(node)
"""


def started(name, folder, domain):
    log = folder / f'{name}.log'
    process = ManagedProcess(
        name, [sys.executable, '-c', NODE], log, make_isolated_environment(domain)
    )
    wait_until(lambda: 'ready' in log.read_text() or process.poll() is not None)
    assert process.poll() is None
    return process


def segments_of(process):
    links = [link.readlink() for link in Path(f'/proc/{process.pid}/fd').iterdir()]
    locks = [link for link in links if SEGMENT_LOCK.fullmatch(link.name)]
    return [*locks, *(FOLDER / lock.name.removesuffix('_el') for lock in locks)]


def test_a_killed_process_leaves_no_segment_and_others_keep_theirs(
    ros_domain, tmp_path, monkeypatch
):
    monkeypatch.setattr(node_processes, 'SEGMENTS_PERIOD_S', 0.0)
    killed, alive = (started(name, tmp_path, ros_domain) for name in ('killed', 'alive'))
    lost, kept = segments_of(killed), segments_of(alive)
    assert lost
    assert kept
    killed.poll()
    os.kill(killed.pid, signal.SIGKILL)
    wait_until(lambda: killed.poll() is not None)
    assert all(path.exists() for path in lost)
    killed.stop()
    assert not any(path.exists() for path in lost)
    assert all(path.exists() for path in kept)
    alive.stop()
