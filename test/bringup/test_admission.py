"""Which runs may begin while others run."""

import pytest
from support.world.runs import plans_of, small_config

from osmabench_ros.bringup import isolation
from osmabench_ros.bringup.runner import dispatch
from osmabench_ros.bringup.runner.dispatch import (
    GIB,
    Capacity,
    Demand,
    admit,
    capacity_here,
    estimate_demand,
    is_alone,
    jobs_here,
)
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.plan import config_digest

MACHINE = Capacity(8.0, 16 * GIB, ('0', '1'))


WHOLE = Demand(8.0, 16 * GIB)
EIGHTH = Demand(1.0, 2 * GIB)


def admit_all(demands):
    """Return the granted requests if nothing ends."""
    running = []
    for demand in demands:
        grant = admit(demand, running, MACHINE)
        if grant is not None:
            running.append(grant)
    return running


def plan_of(tmp_path, mapper, **changes):
    config = parse_config(small_config(mappers=[mapper], **changes), 'test')
    (plan,) = plans_of(config, tmp_path)
    return plan


@pytest.mark.parametrize(
    ('demand', 'at_once'),
    [
        (EIGHTH, 8),
        (Demand(8.0 / 3, 16 * GIB / 3), 3),
        (Demand(4.0, 2 * GIB), 2),
        (Demand(1.0, 5 * GIB), 3),
        (Demand(1.0, GIB, 1.0), 2),
        (Demand(1.0, GIB, 2.0), 1),
        (Demand(1.0, GIB, 0.5), 4),
        (Demand(1.0, GIB, 0.4), 4),
        (WHOLE, 1),
    ],
)
def test_no_more_than_there_is_is_granted(demand, at_once):
    assert len(admit_all([demand] * 20)) == at_once


def test_each_run_has_whole_gpus_or_a_part_of_one():
    gpus = [item.gpus for item in admit_all([Demand(1.0, GIB, n) for n in (1.0, 0.5, 0.5, 0.0)])]
    assert gpus == [('0',), ('1',), ('1',), ()]


def test_a_run_needs_what_its_mapper_declares(tmp_path):
    resources = {'cpus': 2, 'gpus': 0.5, 'memory_gib': 3}
    plan = plan_of(tmp_path, {'name': 'oracle', 'resources': resources})
    assert estimate_demand(plan, EIGHTH, WHOLE) == Demand(2.0, 3 * GIB, 0.5)
    # One that needs more than there is begins when nothing else runs.
    assert estimate_demand(plan, EIGHTH, Demand(1.0, GIB)) == Demand(1.0, GIB, 0.5)
    assert estimate_demand(plan_of(tmp_path, {'name': 'oracle'}), EIGHTH, WHOLE) == EIGHTH


def test_nothing_runs_while_a_realtime_run_is_measured_unless_allowed(tmp_path):
    unpaced = {'name': 'theirs', 'command': ['true'], 'acks': False}
    realtime = {'mode': 'realtime'}
    for plan in (
        plan_of(tmp_path, unpaced),
        plan_of(tmp_path, {'name': 'oracle'}, pacing=realtime),
    ):
        assert is_alone(plan)
        demand = estimate_demand(plan, EIGHTH, WHOLE)
        assert len(admit_all([demand, EIGHTH])) == len(admit_all([EIGHTH, demand])) == 1
    together = plan_of(tmp_path, {'name': 'oracle'}, pacing={**realtime, 'side_by_side': True})
    assert not is_alone(together)


def test_resources_change_no_result_and_so_no_digest():
    plain = parse_config(small_config(), 'test')
    mappers = [{'name': 'oracle', 'resources': {'cpus': 4}}]
    other = parse_config(small_config(mappers=mappers), 'test')
    assert config_digest(other) == config_digest(plain)


def test_more_gpus_than_there_are_are_refused_by_name():
    config = parse_config(
        small_config(mappers=[{'name': 'oracle', 'resources': {'gpus': 3}}]), 'test'
    )
    with_three = Capacity(1.0, GIB, ('0', '1', '2'))
    with_three.check(config)
    with pytest.raises(ConfigError, match='mapper "oracle": resources.gpus is 3, and 2 GPUs'):
        MACHINE.check(config)


def test_the_limits_of_a_container_count(tmp_path, monkeypatch):
    monkeypatch.setattr(dispatch, 'CGROUP', tmp_path)
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
    monkeypatch, cpus, memory_gib, shared_mib, jobs
):
    shared = None if shared_mib is None else shared_mib * 2**20
    monkeypatch.setattr(isolation, 'free_bytes', lambda: shared)
    assert jobs_here(Capacity(cpus, memory_gib * GIB)) == jobs
