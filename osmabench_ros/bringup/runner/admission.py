"""Which runs may begin while others are under way, by the resources of runs and machine."""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from osmabench_ros.bringup.runner.node_processes import visible_gpus
from osmabench_ros.bringup.spec import isolation
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import MatrixConfig, PacingMode
from osmabench_ros.runs.plan import RunPlan

GIB = 2**30
RUN_BYTES = 2 * GIB
"""Memory of a run of a bundled mapper, unless it says otherwise."""

CGROUP = Path('/sys/fs/cgroup')
"""Where Linux shows a container its limits."""

_FULL = 1 + 1e-9
"""Sums of fractions are rounded."""


@dataclass(frozen=True)
class Demand:
    """The processors, memory and GPUs that a run needs, or that there are."""

    cpus: float
    memory_bytes: float
    gpus: float = 0.0


@dataclass(frozen=True)
class Capacity:
    """Resources of the machine; GPUs by the names that CUDA_VISIBLE_DEVICES takes."""

    cpus: float
    memory_bytes: float
    gpus: tuple[str, ...] = ()

    def check(self, config: MatrixConfig) -> None:
        """Raise ConfigError if a mapper needs more GPUs than there are."""
        for mapper in config.mappers:
            wanted, here = mapper.resources.gpus, len(self.gpus)
            if wanted > here:
                problem = f'resources.gpus is {wanted:g}, and {here} GPUs are known here'
                remedy = 'lower it, install nvidia-ml-py, or set CUDA_VISIBLE_DEVICES'
                raise ConfigError(f'mapper "{mapper.name}": {problem}; {remedy}')


@dataclass(frozen=True)
class Grant:
    """The resources of a run that may begin; it sees these GPUs only."""

    demand: Demand
    gpus: tuple[str, ...] = ()


def is_alone(plan: RunPlan) -> bool:
    """Return whether a run measures realtime, so that no other may run meanwhile."""
    return plan.pacing is PacingMode.REALTIME and not plan.config.pacing.side_by_side


def estimate_demand(plan: RunPlan, usual: Demand, whole: Demand) -> Demand:
    """Return the resources of a run: as declared, else as usual, never more than the `whole`.

    A realtime run needs all processors.
    """
    declared = plan.mapper.resources
    cpus = whole.cpus if is_alone(plan) else declared.cpus or usual.cpus
    memory = (declared.memory_gib or 0.0) * GIB or usual.memory_bytes
    return Demand(min(cpus, whole.cpus), min(memory, whole.memory_bytes), declared.gpus)


def admit(demand: Demand, running: Sequence[Grant], capacity: Capacity) -> Grant | None:
    """Return the resources of a run if they are free, else None."""
    taken = [demand, *(item.demand for item in running)]
    count = math.ceil(demand.gpus)
    free = [
        name
        for name in capacity.gpus
        if sum(item.demand.gpus / len(item.gpus) for item in running if name in item.gpus)
        + demand.gpus / max(count, 1)
        <= _FULL
    ]
    fits = (
        len(free) >= count
        and sum(item.cpus for item in taken) <= capacity.cpus * _FULL
        and sum(item.memory_bytes for item in taken) <= capacity.memory_bytes * _FULL
    )
    return Grant(demand, tuple(free[:count])) if fits else None


def capacity_here() -> Capacity:
    """Return what this process may use of the machine now."""
    cpus = float(len(os.sched_getaffinity(0)))
    memory = psutil.virtual_memory().available
    # A container without limits has "max" there, or no such file.
    with suppress(OSError, ValueError):
        quota, period = (CGROUP / 'cpu.max').read_text().split()
        cpus = min(cpus, int(quota) / int(period))
    with suppress(OSError, ValueError):
        limit, used = (int((CGROUP / f'memory.{name}').read_text()) for name in ('max', 'current'))
        memory = min(memory, max(limit - used, 0))
    return Capacity(cpus, memory, visible_gpus())


def jobs_here(capacity: Capacity) -> int:
    """Return how many runs that declare nothing the machine takes at once."""
    shared = isolation.free_bytes()
    limits = [capacity.cpus, capacity.memory_bytes / RUN_BYTES]
    if shared is not None:
        of_process = isolation.SMALLEST_SEGMENT_BYTES + isolation.PORT_BYTES
        limits.append(shared / (isolation.PROCESSES * of_process))
    return max(1, math.floor(min(limits)))
