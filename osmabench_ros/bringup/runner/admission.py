"""Which runs may begin beside those under way, by what they need and what the machine has."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from osmabench_ros.bringup.runner.processes import visible_gpus
from osmabench_ros.bringup.spec.isolation import (
    PORT_BYTES,
    PROCESSES,
    SMALLEST_SEGMENT_BYTES,
    free_bytes,
)
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import MatrixConfig, PacingMode
from osmabench_ros.runs.plan import RunPlan

GIB = 2**30
RUN_BYTES = 2 * GIB
"""What a run of a bundled mapper takes, unless it says otherwise."""

CGROUP = Path('/sys/fs/cgroup')
"""Where Linux shows a container its limits."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Demand:
    """What a run needs; None for an equal share. One that runs `alone` has nothing beside it."""

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: float = 0.0
    alone: bool = False


@dataclass(frozen=True)
class Capacity:
    """What the machine has for runs; GPUs by the names that CUDA_VISIBLE_DEVICES takes."""

    cpus: float
    memory_bytes: int
    gpus: tuple[str, ...] = ()

    def check(self, config: MatrixConfig) -> None:
        """Raise ConfigError if a mapper needs more GPUs than there are."""
        for mapper in config.mappers:
            if mapper.resources.gpus > len(self.gpus):
                raise ConfigError(
                    f'mapper "{mapper.name}": resources.gpus is {mapper.resources.gpus:g}, and '
                    f'{len(self.gpus)} GPUs are known here; lower it, install nvidia-ml-py, or '
                    'name the GPUs in CUDA_VISIBLE_DEVICES'
                )


@dataclass(frozen=True)
class Grant:
    """What an admitted run was given; only it may use the `gpus`, or its part of one."""

    cpus: float
    memory_bytes: float
    gpus: tuple[str, ...] = ()
    of_each_gpu: float = 0.0
    alone: bool = False


def demand_of(plan: RunPlan, observed_bytes: int = 0) -> Demand:
    """Return what a run needs, as declared, and at least the memory that was observed."""
    declared, pacing = plan.mapper.resources, plan.config.pacing
    memory = max(round((declared.memory_gib or 0.0) * GIB), observed_bytes)
    return Demand(
        declared.cpus,
        memory or None,
        declared.gpus,
        alone=plan.pacing is PacingMode.REALTIME and not pacing.side_by_side,
    )


def admitted(
    demand: Demand, running: Collection[Grant], capacity: Capacity, jobs: int
) -> Grant | None:
    """Return what a run is given if it may begin now, else None.

    One that needs more than there is begins when nothing else runs.
    """
    if len(running) >= jobs or (running and (demand.alone or any(item.alone for item in running))):
        return None
    gpus, part = _free_gpus(demand.gpus, running, capacity.gpus)
    if gpus is None:
        return None
    grant = Grant(
        capacity.cpus / jobs if demand.cpus is None else demand.cpus,
        capacity.memory_bytes / jobs if demand.memory_bytes is None else demand.memory_bytes,
        gpus,
        part,
        demand.alone,
    )
    taken = [*running, grant]
    fits = sum(item.cpus for item in taken) <= capacity.cpus * (1 + _ROUNDING) and sum(
        item.memory_bytes for item in taken
    ) <= capacity.memory_bytes * (1 + _ROUNDING)
    return grant if fits or not running else None


def _free_gpus(
    wanted: float, running: Collection[Grant], names: Sequence[str]
) -> tuple[tuple[str, ...] | None, float]:
    """Return GPUs with room, and the part that is taken of each; None if there are none."""
    if not wanted:
        return (), 0.0
    count = math.ceil(wanted)
    part = wanted / count
    used = {name: sum(item.of_each_gpu for item in running if name in item.gpus) for name in names}
    free = [name for name in names if used[name] + part <= 1 + _ROUNDING]
    return (tuple(free[:count]) if len(free) >= count else None), part


def capacity_here() -> Capacity:
    """Return what this process may use of the machine now."""
    cpus = float(len(os.sched_getaffinity(0)))
    memory = psutil.virtual_memory().available
    limits = Capacity(cpus, memory, visible_gpus())
    # A container without limits has "max" there, or no such file.
    with suppress(OSError, ValueError):
        quota, period = (CGROUP / 'cpu.max').read_text().split()
        limits = replace(limits, cpus=min(cpus, int(quota) / int(period)))
    with suppress(OSError, ValueError):
        limit, used = (int((CGROUP / f'memory.{name}').read_text()) for name in ('max', 'current'))
        limits = replace(limits, memory_bytes=min(memory, max(limit - used, 0)))
    return limits


def jobs_here(capacity: Capacity) -> int:
    """Return how many runs that declare nothing the machine takes at once."""
    shared = free_bytes()
    limits = [capacity.cpus, capacity.memory_bytes / RUN_BYTES]
    if shared is not None:
        limits.append(shared / (PROCESSES * (SMALLEST_SEGMENT_BYTES + PORT_BYTES)))
    return max(1, math.floor(min(limits)))
