"""Which runs are let in beside each other."""

from pathlib import Path
from typing import Any

import pytest
from support.world.runs import small_config

from osmabench_ros.bringup.runner import admission
from osmabench_ros.bringup.runner.admission import (
    GIB,
    Capacity,
    Demand,
    Grant,
    admitted,
    capacity_here,
    demand_of,
    jobs_here,
)
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import RunPlan, config_digest, plan_runs

MACHINE = Capacity(8.0, 16 * GIB, ('0', '1'))


def admit_all(demands: list[Demand], jobs: int, capacity: Capacity = MACHINE) -> list[Grant]:
    """Return what is granted when nothing ends."""
    running: list[Grant] = []
    for demand in demands:
        grant = admitted(demand, running, capacity, jobs)
        if grant is not None:
            running.append(grant)
    return running


def plan_of(tmp_path: Path, mapper: dict[str, Any], **changes: Any) -> RunPlan:
    config = parse_config(small_config(mappers=[mapper], **changes), 'test')
    (plan,) = plan_runs(config, {config.scenes[0]: SceneKey('d', 's', 3)}, tmp_path)
    return plan


def test_what_declares_nothing_takes_an_equal_share() -> None:
    for jobs in (1, 3, 8):
        assert len(admit_all([Demand()] * 20, jobs)) == jobs


@pytest.mark.parametrize(
    ('demand', 'at_once'),
    [
        (Demand(cpus=4.0), 2),
        (Demand(memory_bytes=5 * GIB), 3),
        (Demand(gpus=1.0), 2),
        (Demand(gpus=2.0), 1),
        (Demand(gpus=0.5), 4),
        (Demand(cpus=1.0, gpus=0.4), 4),
        (Demand(alone=True), 1),
        (Demand(memory_bytes=99 * GIB), 1),
    ],
)
def test_what_is_declared_is_never_exceeded_by_two(demand: Demand, at_once: int) -> None:
    assert len(admit_all([demand] * 20, 8)) == at_once


def test_each_run_has_gpus_of_its_own_or_a_part_of_one() -> None:
    whole, half, other_half, none = (
        item.gpus
        for item in admit_all([Demand(gpus=1.0), Demand(gpus=0.5), Demand(gpus=0.5), Demand()], 8)
    )
    assert (whole, half, other_half, none) == (('0',), ('1',), ('1',), ())


def test_nothing_begins_beside_a_run_that_must_be_alone() -> None:
    assert len(admit_all([Demand(alone=True), Demand()], 8)) == 1
    assert len(admit_all([Demand(), Demand(alone=True)], 8)) == 1


def test_a_run_needs_what_its_mapper_declares_and_what_was_observed(tmp_path: Path) -> None:
    resources = {'cpus': 2, 'gpus': 0.5, 'memory_gib': 3}
    plan = plan_of(tmp_path, {'name': 'oracle', 'resources': resources})
    assert demand_of(plan) == Demand(2.0, 3 * GIB, 0.5)
    assert demand_of(plan, observed_bytes=GIB).memory_bytes == 3 * GIB
    assert demand_of(plan, observed_bytes=7 * GIB).memory_bytes == 7 * GIB
    assert demand_of(plan_of(tmp_path, {'name': 'oracle'})) == Demand()


def test_realtime_runs_are_alone_unless_told_otherwise(tmp_path: Path) -> None:
    unpaced = {'name': 'theirs', 'command': ['true'], 'acks': False}
    realtime = {'mode': 'realtime'}
    assert demand_of(plan_of(tmp_path, unpaced)).alone
    assert demand_of(plan_of(tmp_path, {'name': 'oracle'}, pacing=realtime)).alone
    together = {**realtime, 'side_by_side': True}
    assert not demand_of(plan_of(tmp_path, {'name': 'oracle'}, pacing=together)).alone


def test_resources_change_no_result_and_so_no_digest() -> None:
    plain = parse_config(small_config(), 'test')
    mappers = [{'name': 'oracle', 'resources': {'cpus': 4}}]
    other = parse_config(small_config(mappers=mappers), 'test')
    assert config_digest(other) == config_digest(plain)


def test_more_gpus_than_there_are_are_refused_by_name() -> None:
    config = parse_config(
        small_config(mappers=[{'name': 'oracle', 'resources': {'gpus': 3}}]), 'test'
    )
    with_three = Capacity(1.0, GIB, ('0', '1', '2'))
    with_three.check(config)
    with pytest.raises(ConfigError, match='mapper "oracle": resources.gpus is 3, and 2 GPUs'):
        MACHINE.check(config)


def test_the_limits_of_a_container_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, 'CGROUP', tmp_path)
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '3, GPU-7')
    free = capacity_here()
    assert free.gpus == ('3', 'GPU-7')
    (tmp_path / 'cpu.max').write_text('max 100000\n')
    (tmp_path / 'memory.max').write_text('max\n')
    (tmp_path / 'memory.current').write_text(f'{GIB}\n')
    assert capacity_here().cpus == free.cpus
    (tmp_path / 'cpu.max').write_text('50000 100000\n')
    (tmp_path / 'memory.max').write_text(f'{GIB + 2**20}\n')
    limited = capacity_here()
    assert (limited.cpus, limited.memory_bytes) == (0.5, 2**20)


@pytest.mark.parametrize(
    ('cpus', 'memory_gib', 'shared_mib', 'jobs'),
    [(8, 64, None, 8), (8, 5, None, 2), (0.5, 1, None, 1), (64, 512, 64, 5), (8, 64, 65536, 8)],
)
def test_as_many_jobs_as_cores_memory_and_shared_memory_allow(
    monkeypatch: pytest.MonkeyPatch, cpus: float, memory_gib: int, shared_mib: int, jobs: int
) -> None:
    shared = None if shared_mib is None else shared_mib * 2**20
    monkeypatch.setattr(admission, 'free_bytes', lambda: shared)
    assert jobs_here(Capacity(cpus, memory_gib * GIB)) == jobs
