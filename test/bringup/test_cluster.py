"""The same matrix on a real cluster of Ray: whatever its nodes go through, the same results."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_runs import COMMAND, failure, half_written, start, success, wait_for
from prepared_scenes import PreparedScenes
from small_config import foreign, repeatable, small_config

pytest.importorskip('ray', reason='the extra "cluster" is not installed')

from ray_nodes import Nodes, ray_cluster

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(900)]

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


def test_a_node_whose_disk_is_full_costs_a_try_and_no_result(
    tmp_path: Path, nodes: Nodes, expected: dict[str, bytes]
) -> None:
    kept = tmp_path / 'kept'
    with nodes.with_a_small_disk('small'):
        text = success(begin(tmp_path, nodes, '--upload', kept.as_uri()), 600)
    assert 'is tried again, 2 of 3: node' in text
    assert 'No space left on device' in text
    assert differences(repeatable(tmp_path / 'runs' / 'small'), expected) == []
    assert half_written(tmp_path) == []
    # A finished run is uploaded whole.
    run = 'apartment.seed_3.baseline.foreign_on_order.opengl.3'
    copy = repeatable(kept / 'small' / run)
    assert b'"report.json"' in copy.pop('uploaded.json')
    assert differences(copy, repeatable(tmp_path / 'runs' / 'small' / run)) == []


def test_ctrl_c_ends_the_tasks_on_all_nodes(
    tmp_path: Path, nodes: Nodes, prepared: PreparedScenes
) -> None:
    nodes.add('b')
    for name in 'ab':
        nodes.holds_up(name).touch()
    prepared.put_into(tmp_path / 'runs', CONFIG)
    command = begin(tmp_path, nodes)
    wait_for(lambda: nodes.is_held_up('a') and nodes.is_held_up('b'), 240)
    busy = [item for name in 'ab' for item in nodes.processes(name)]
    command.send_signal(signal.SIGINT)
    failure(tmp_path, command, code=130)
    wait_for(lambda: not any(item.is_running() for item in busy))
