"""Processes that host nodes of several runs: what they save, and that nothing leaks by them."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from support import TESTS
from support.prepared_scenes import PreparedScenes
from support.small_config import foreign, repeatable, small_config
from support.waiting import wait_until

from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.bringup.runner.node_processes import HostProcess, NodeProcesses
from osmabench_ros.bringup.spec.isolation import SegmentsInUse
from osmabench_ros.errors import RequirementError


@dataclass(frozen=True)
class Scripted:
    """What the runner knows of a node, for test/scripted_node.py."""

    words: tuple[str, ...]
    name: str = 'node'
    module: str = 'support.scripted_node'
    method: str = ''
    hosted: bool = True

    def arguments(self, _folder: Path) -> list[str]:
        return list(self.words)


class Runs:
    """Runs of one scripted node, one after another."""

    def __init__(self, folder: Path, runs_each: int = 10) -> None:
        self.nodes = NodeProcesses(runs_each)
        self.count = 0
        self._folder = folder

    def run(self, *words: str, method: str = '', **environment: str) -> tuple[HostProcess, str]:
        """Run to the end; return the process and the log of the run."""
        self.count += 1
        folder = self._folder / f'run_{self.count}'
        claim_folder(folder)
        variables = {
            **os.environ,
            'PYTHONPATH': str(TESTS),
            'PYTHONUNBUFFERED': '1',
            'OSMABENCH_RUN': folder.name,
            'ROS_DOMAIN_ID': str(self.count),
            **environment,
        }
        process = self.nodes.start(Scripted(words, method=method), folder, variables)
        log = folder / 'node.log'
        if 'wait' in words:
            wait_until(lambda: 'waiting' in log.read_text())
        else:
            wait_until(lambda: process.poll() is not None)
        processes = {'node': process}
        self.nodes.end(processes)
        for item in processes.values():
            item.stop()
        return process, log.read_text()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    found = Runs(tmp_path)
    yield found
    found.nodes.close()


def test_a_second_run_finds_the_process_as_the_first_did(runs: Runs) -> None:
    first, said = runs.run('0')
    second, again = runs.run('0')
    assert second is first
    assert f'process {first.pid} hosts node 1 in {Path.cwd()}' in said
    assert f'process {first.pid} hosts node 2 in {Path.cwd()}' in again
    for number, text in ((1, said), (2, again)):
        assert (
            f"{{'OSMABENCH_RUN': 'run_{number}', 'ROS_DOMAIN_ID': '{number}', "
            "'LEFT_BEHIND': None}"
        ) in text
        assert text.count('UserWarning: said in every run') == 1


def test_a_node_that_waits_is_ended_and_its_process_goes_on(runs: Runs) -> None:
    first, said = runs.run('0', 'wait')
    assert 'interrupted' in said
    second, _ = runs.run('0', 'wait')
    assert second is first
    assert second.poll() == 0


@pytest.mark.parametrize('words', [('1',), ('0', 'thread'), ('0', 'abort'), ('0', 'raise')])
def test_after_a_failure_or_with_a_thread_left_the_next_process_is_new(
    runs: Runs, words: tuple[str, ...]
) -> None:
    first, _ = runs.run(*words)
    second, said = runs.run('0')
    assert second.pid != first.pid
    assert 'hosts node 1' in said
    assert not psutil.pid_exists(first.pid)


def test_why_a_node_ended_is_said_as_of_a_process_of_its_own(runs: Runs) -> None:
    failed, _ = runs.run('3')
    assert failed.reason().startswith('ended with code 3; end of ')
    killed, _ = runs.run('0', 'abort')
    assert killed.reason().startswith('was killed by SIGABRT')
    raised, said = runs.run('0', 'raise')
    assert raised.reason().startswith('ended with code 1')
    assert 'ValueError: not foreseen' in said


def test_a_verdict_is_no_failure(runs: Runs) -> None:
    first, _ = runs.run(str(RequirementError.exit_code))
    assert first.poll() == RequirementError.exit_code
    second, _ = runs.run('0')
    assert second is first


def test_a_process_is_replaced_after_its_runs_and_where_its_start_differs(tmp_path: Path) -> None:
    runs = Runs(tmp_path, runs_each=2)
    try:
        pids = [runs.run('0')[0].pid for _ in range(4)]
        assert pids[0] == pids[1] != pids[2] == pids[3]
        assert not psutil.pid_exists(pids[0])
        plain, _ = runs.run('0')
        other_gpu, _ = runs.run('0', CUDA_VISIBLE_DEVICES='1')
        other_method, _ = runs.run('0', method='appearance')
        again, _ = runs.run('0')
        assert len({plain.pid, other_gpu.pid, other_method.pid}) == 3
        assert again.pid == plain.pid
    finally:
        runs.nodes.close()
    assert not any(map(psutil.pid_exists, (plain.pid, other_gpu.pid, other_method.pid)))


def test_a_process_that_died_while_it_waited_is_replaced(runs: Runs) -> None:
    first, _ = runs.run('0')
    os.kill(first.pid, signal.SIGKILL)
    first.wait(60.0)
    second, said = runs.run('0')
    assert second.pid != first.pid
    assert 'hosts node 1' in said


def test_peak_memory_is_that_of_the_run_alone(runs: Runs) -> None:
    large, _ = runs.run('0', 'memory')
    taken = large.peak_memory_bytes
    small, _ = runs.run('0', 'wait')
    assert small is large
    assert taken > small.peak_memory_bytes + (200 << 20)


def matrix(
    out: Path, runs_each: int, prepared: PreparedScenes, nodes: NodeProcesses | None = None
) -> Path:
    from osmabench_ros.base.progress import silent
    from osmabench_ros.bringup.runner.matrix_runner import run_matrix
    from osmabench_ros.runs.config import parse_config

    config = small_config(
        conditions=['baseline', 'nominal'],
        mappers=[{'name': 'appearance'}, foreign('none')],
        suites=[{'name': 'map_geometry'}, {'name': 'exact_questions'}],
        recording={'enabled': True},
        node_processes={'runs_each': runs_each},
    )
    prepared.put_into(out, {**config, 'node_processes': {}})
    report = run_matrix(parse_config(config, 'test'), out, nodes=nodes, progress=silent)
    assert [item.status.value for item in report.runs] == ['complete'] * 4, report
    return out / 'small'


@pytest.mark.full
@pytest.mark.ros
@pytest.mark.gl
@pytest.mark.slow
def test_warm_nodes_give_the_same_bytes_as_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: PreparedScenes
) -> None:
    started: list[tuple[str, int]] = []
    left: list[str] = []
    begin, end = HostProcess.begin, NodeProcesses.end

    def noted_begin(self: HostProcess, run: object) -> bool:
        started.append((self.name, self.pid))
        return begin(self, run)

    def noted_end(self: NodeProcesses, processes: dict) -> None:
        end(self, processes)
        segments = SegmentsInUse()
        segments.note(item.pid for _, item in self._idle)
        left.extend(map(str, segments.lock_files))

    monkeypatch.setattr(HostProcess, 'begin', noted_begin)
    monkeypatch.setattr(NodeProcesses, 'end', noted_end)
    new = matrix(tmp_path / 'new', 1, prepared)
    assert len(set(started)) == len(started) == 2 * 5 + 2 * 4
    started.clear()
    with closing(NodeProcesses(20)) as nodes:
        warm = matrix(tmp_path / 'warm', 20, prepared, nodes)
        hosts = {pid for _, pid in started}
        assert all(map(psutil.pid_exists, hosts)), 'the next matrix finds them'
    assert not any(map(psutil.pid_exists, hosts))
    kinds = {name: len({pid for other, pid in started if other == name}) for name, _ in started}
    # A foreign mapper is none of ours.
    assert kinds == {
        'mapper': 1, 'map_recorder': 1, 'bag_recorder': 1, 'evaluator': 1, 'simulator_bridge': 1,
    }  # fmt: skip
    assert left == [], 'a process that waits takes part in no ROS domain'
    expected, found = without_bags(new), without_bags(warm)
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []
    for log in warm.glob('*/logs/map_recorder.log'):
        assert log.read_text().count('wrote ') == 1
        assert f'{log.parents[1].name}/map' in log.read_text()


def without_bags(root: Path) -> dict[str, bytes]:
    """Return what must be the same, which receive times in bags are not."""
    found = repeatable(root)
    return {name: data for name, data in found.items() if '/bag/' not in name}
