"""Rows of the benchmark of the metrics: times, bounds of the hardware, growth."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Timing:
    """How long something took, and how long the processors worked at it."""

    wall_s: float
    processor_s: float

    def scaled(self, factor: float) -> Timing:
        """Return the timing of so many times the work."""
        return Timing(self.wall_s * factor, self.processor_s * factor)


@dataclass(frozen=True)
class Row:
    """A line of the result."""

    case: str
    variant: str
    amount: int
    unit: str
    device: str
    ours: Timing
    published: Timing | None = None
    measured_on: str = ''
    matching_s: float | None = None
    peak_gib: float | None = None
    bound_s: float | None = None
    bound: str = ''

    @property
    def size(self) -> str:
        """How much was worked on, in words."""
        return f'{self.amount:,} {self.unit}'

    @property
    def ratio(self) -> float | None:
        """How many times faster than the published way by the clock on the wall."""
        return None if self.published is None else self.published.wall_s / self.ours.wall_s

    @property
    def work_ratio(self) -> float | None:
        """The same in time of processors, which other programs disturb less."""
        if self.published is None or self.device != 'cpu':
            return None
        return self.published.processor_s / self.ours.processor_s


def timed(call: Callable[[], object], repeats: int = 1) -> Timing:
    """Return the least times of some calls."""
    timings = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        call()
        timings.append((time.perf_counter() - wall, time.process_time() - processor))
    walls, processors = zip(*timings, strict=True)
    return Timing(min(walls), max(min(processors), 1e-6))


def table_of(rows: Iterable[Row]) -> Table:
    """Lay the rows out; a row of CUDA also shows how much faster it is than that of the CPU."""
    rows = list(rows)
    on_cpu = {(row.case, row.variant, row.amount): row for row in rows if row.device == 'cpu'}
    table = Table(
        *('case', 'size', 'device', 'ours s', 'published s', 'measured on', 'faster'),
        *('processor s', 'less work', 'matching s', 'peak GiB', 'bound s', 'bound', 'to CPU'),
        title=f'metrics on {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}',
    )
    for row in rows:
        beside = on_cpu.get((row.case, row.variant, row.amount)) if row.device != 'cpu' else None
        table.add_row(
            f'{row.case} {row.variant}'.strip(),
            row.size,
            row.device,
            _text(row.ours.wall_s),
            _text(row.published and row.published.wall_s),
            row.measured_on and f'{row.measured_on}, scaled',
            _text(row.ratio, 'x'),
            _text(row.ours.processor_s),
            _text(row.work_ratio, 'x'),
            _text(row.matching_s),
            _text(row.peak_gib),
            _text(row.bound_s),
            row.bound,
            _text(beside and beside.ours.wall_s / row.ours.wall_s, 'x'),
        )
    return table


def growth_of(rows: Iterable[Row]) -> list[str]:
    """Say of every case that ran at several sizes how its cost grew next to its size.

    Processor time is what is compared on the CPU: other programs disturb it less.
    """
    series: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        series[row.case, row.variant, row.device].append(row)
    lines = []
    for (case, variant, device), rows_of_case in series.items():
        by_amount = {row.amount: row for row in rows_of_case}
        found = [by_amount[amount] for amount in sorted(by_amount)]
        if found[0].amount == found[-1].amount:
            continue
        costs = [row.ours.processor_s if device == 'cpu' else row.ours.wall_s for row in found]
        each = ', '.join(
            f'{cost / row.amount * 1e6:.3g} at {row.amount:,}'
            for cost, row in zip(costs, found, strict=True)
        )
        more, dearer = found[-1].amount / found[0].amount, costs[-1] / costs[0]
        lines.append(
            f'{f"{case} {variant}".strip()} ({device}), s a million: {each}; '
            f'{more:.3g}x the size costs {dearer:.3g}x'
        )
    return lines


def _text(figure: float | None, unit: str = '') -> str:
    return '' if figure is None else f'{figure:.3g}{unit}'
