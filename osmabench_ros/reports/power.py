"""How small a difference a matrix could show, by the spread that was observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from osmabench_ros.metrics.power import (
    root_mean_square,
    smallest_difference,
    units_needed,
)
from osmabench_ros.reports.cells import ABSENT, Cell, scaled_cell
from osmabench_ros.reports.comparison import ComparisonView, Contrast
from osmabench_ros.reports.report_run import Run, distinct
from osmabench_ros.runs.expected_power import DIFFERENCES, expected_power


@dataclass(frozen=True)
class PowerRow:
    """A figure between conditions or mappers: spread, what can be shown, units that it takes."""

    figure: str
    between: str
    units: str
    spread: Cell
    shown: Cell
    shown_with_twice: Cell
    needed: tuple[Cell, ...]


@dataclass(frozen=True)
class PowerView:
    """Rows where a spread was observed; else sentences about an assumed one."""

    rows: tuple[PowerRow, ...]
    expected: tuple[str, ...]
    differences: tuple[float, ...] = DIFFERENCES


def power_view(runs: Sequence[Run], comparison: ComparisonView) -> PowerView:
    """Return what the matrix can show, of every figure that is compared over three units."""
    rows = [
        row
        for between, contrasts in (
            ('conditions', comparison.conditions),
            ('mappers', comparison.mappers),
        )
        for figure in distinct(item.figure for item in contrasts)
        if (row := _row(figure, between, [x for x in contrasts if x.figure == figure]))
    ]
    expected = () if rows else expected_power(run.plan.identity for run in runs)
    return PowerView(tuple(rows), tuple(expected))


def _row(figure: str, between: str, contrasts: Sequence[Contrast]) -> PowerRow | None:
    observed = [(item.comparison.spread, item) for item in contrasts]
    spreads = [(spread, item) for spread, item in observed if spread is not None]
    if not spreads:
        return None
    units = max(spread.units for spread, _ in spreads)
    total = root_mean_square([spread.total for spread, _ in spreads])
    twice = root_mean_square([spread.with_more_inside(2) for spread, _ in spreads])
    shown = smallest_difference(units, total)
    if not math.isfinite(shown) or total == 0:
        return None
    over = next(item.units for spread, item in spreads if spread.units == units)
    needed = tuple(Cell(str(units_needed(points / 100, total))) for points in DIFFERENCES)
    with_twice = smallest_difference(units, twice)
    return PowerRow(
        figure, between, over, _points(total), _points(shown), _points(with_twice), needed
    )


def _points(value: float) -> Cell:
    return scaled_cell(value, 100, 1) if math.isfinite(value) else ABSENT
