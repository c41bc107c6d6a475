"""Which runs may begin while others run."""

import pytest
from support.world.runs import matrix_config, plans_of, small_config

from osmabench_ros.bringup import isolation
from osmabench_ros.bringup.runner import dispatch
from osmabench_ros.bringup.runner.dispatch import (
    GIB,
    Resources,
    check_gpus,
    estimate_demand,
    find_resources,
    jobs_here,
)
from osmabench_ros.errors import ConfigError

MACHINE = Resources(8.0, 16 * GIB, 2, ('0', '1'))


WHOLE = Resources(8.0, 16 * GIB)
EIGHTH = Resources(1.0, 2 * GIB)


def admit_all(demands):
    """Return the granted requests if nothing ends."""
    running = []
    for demand in demands:
        grant = dispatch.admit(demand, running, MACHINE)
        if grant is not None:
            running.append(grant)
    return running


def plan_of(tmp_path, mapper, **changes):
    config = matrix_config(**small_config(mappers=[mapper], **changes))
    (plan,) = plans_of(config, tmp_path)
    return plan


@pytest.mark.parametrize(
    ('demand', 'at_once'),
    [
        (EIGHTH, 8),
        (Resources(8.0 / 3, 16 * GIB / 3), 3),
        (Resources(4.0, 2 * GIB), 2),
        (Resources(1.0, 5 * GIB), 3),
        (Resources(1.0, GIB, 1.0), 2),
        (Resources(1.0, GIB, 2.0), 1),
        (Resources(1.0, GIB, 0.5), 4),
        (Resources(1.0, GIB, 0.4), 4),
        (WHOLE, 1),
    ],
)
def test_no_more_than_there_is_is_granted(demand, at_once):
    assert len(admit_all([demand] * 20)) == at_once


def test_each_run_has_whole_gpus_or_a_part_of_one():
    wanted = [Resources(1.0, GIB, number) for number in (1.0, 0.5, 0.5, 0.0)]
    assert [item.gpu_names for item in admit_all(wanted)] == [('0',), ('1',), ('1',), ()]


def test_a_run_needs_what_its_mapper_declares(tmp_path):
    resources = {'cpus': 2, 'gpus': 0.5, 'memory_gib': 3}
    plan = plan_of(tmp_path, {'name': 'oracle', 'resources': resources})
    assert estimate_demand(plan, EIGHTH, WHOLE) == Resources(2.0, 3 * GIB, 0.5)
    # One that needs more than there is begins when nothing else runs.
    assert estimate_demand(plan, EIGHTH, Resources(1.0, GIB)) == Resources(1.0, GIB, 0.5)
    assert estimate_demand(plan_of(tmp_path, {'name': 'oracle'}), EIGHTH, WHOLE) == EIGHTH


def test_nothing_runs_while_a_realtime_run_is_measured_unless_allowed(tmp_path):
    unpaced = {'name': 'theirs', 'command': ['true'], 'acks': False}
    realtime = {'mode': 'realtime'}
    for plan in (
        plan_of(tmp_path, unpaced),
        plan_of(tmp_path, {'name': 'oracle'}, pacing=realtime),
    ):
        assert dispatch.is_alone(plan)
        demand = estimate_demand(plan, EIGHTH, WHOLE)
        assert len(admit_all([demand, EIGHTH])) == len(admit_all([EIGHTH, demand])) == 1
    together = plan_of(tmp_path, {'name': 'oracle'}, pacing={**realtime, 'side_by_side': True})
    assert not dispatch.is_alone(together)


def test_more_gpus_than_there_are_are_refused_by_name():
    config = matrix_config(**small_config(mappers=[{'name': 'oracle', 'resources': {'gpus': 3}}]))
    check_gpus(config, Resources(1.0, GIB, 3))
    with pytest.raises(ConfigError, match='mapper "oracle": resources.gpus is 3, and 2 GPUs'):
        check_gpus(config, MACHINE)


def test_the_limits_of_a_container_count(tmp_path, monkeypatch):
    monkeypatch.setattr(dispatch, 'CGROUP', tmp_path)
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '3, GPU-7')
    free = find_resources()
    assert free.gpu_names == ('3', 'GPU-7')
    (tmp_path / 'cpu.max').write_text('max 100000\n')
    (tmp_path / 'memory.max').write_text('max\n')
    (tmp_path / 'memory.current').write_text(f'{GIB}\n')
    assert find_resources().cpus == free.cpus
    (tmp_path / 'cpu.max').write_text('50000 100000\n')
    (tmp_path / 'memory.max').write_text(f'{GIB + 2**20}\n')
    limited = find_resources()
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
    assert jobs_here(Resources(cpus, memory_gib * GIB)) == jobs
