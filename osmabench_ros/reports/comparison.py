"""Comparison of conditions and mappers by unit: tests, and how small a difference shows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from osmabench_ros.metrics.comparison import (
    DIFFERENCES,
    Comparison,
    compare_with_reference,
    expected_power,
    root_mean_square,
    smallest_difference,
    units_needed,
)
from osmabench_ros.metrics.statistics import SCENES, Interval
from osmabench_ros.reports.cells import ABSENT, Cell, scale_cell
from osmabench_ros.reports.content import PageContent, RunSection
from osmabench_ros.reports.headline import map_headlines
from osmabench_ros.reports.report_run import (
    Run,
    by_place,
    distinct,
    find_baseline_condition,
    select_headline_scores,
)

QUESTIONS = 'exact_questions'
OBJECTS_OF_SCENE = 'objects'
OBJECTS = 'object accuracy'
"""Mean over objects of the share of their visible surface that got its class."""

Units = Mapping[str, float] | Mapping[tuple[str, ...], float]
"""A figure by question or object of one scene, or by scene, path and repetition."""


@dataclass(frozen=True)
class Contrast:
    """A condition next to the reference condition of a mapper, or a mapper next to its own."""

    subject: str
    other: str
    reference: str
    figure: str
    comparison: Comparison

    @property
    def units(self) -> str:
        """Description of the resampled units, e.g. '61 objects of one scene'."""
        found = self.comparison.paired.difference
        if found.unit == SCENES:
            return f'{found.n} scene{"" if found.n == 1 else "s"}'
        return f'{found.n} {found.unit} of one scene'

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Difference in points, relative change in percent, effect sizes, adjusted p."""
        paired = self.comparison.paired
        return (
            _make_interval_cell(paired.difference),
            _make_interval_cell(self.comparison.robustness),
            _make_finite_cell(paired.effect_size, 2),
            # Of one pair it could be nothing but -1 or 1.
            _make_finite_cell(paired.rank_biserial, 2) if paired.difference.n > 1 else ABSENT,
            _make_finite_cell(self.comparison.adjusted_p, 4),
        )


@dataclass(frozen=True)
class ComparisonView:
    """The contrasts of a matrix: conditions of every mapper, mappers under every condition."""

    conditions: tuple[Contrast, ...]
    mappers: tuple[Contrast, ...]
    reference_condition: str
    reference_mapper: str


def build_comparison_view(
    runs: Sequence[Run], content: PageContent, *, without_modes: Collection[str] = ()
) -> ComparisonView:
    """Compare the runs of a matrix; over scenes, or within the scene if there is only one."""
    scored = [run for run in runs if not run.failed]
    mappers = distinct(run.mapper for run in runs)
    condition, mapper = find_baseline_condition(runs), mappers[0] if mappers else ''
    measured = list(_measure_runs(scored, content, without_modes))
    return ComparisonView(
        tuple(
            _list_contrasts(measured, distinct(run.mapper for run in scored), condition, axis=1)
        ),
        tuple(
            _list_contrasts(measured, distinct(run.condition for run in scored), mapper, axis=0)
        ),
        condition,
        mapper,
    )


@dataclass(frozen=True)
class _Measured:
    """One metric of all runs: by (mapper, condition), then by unit."""

    figure: str
    unit: str
    values: Mapping[tuple[str, str], Units]
    owners: Mapping[str, Sequence[int]] | None = None


def _measure_runs(
    runs: Sequence[Run], content: PageContent, without_modes: Collection[str]
) -> Iterator[_Measured]:
    single = len({run.plan.identity.place for run in runs}) == 1
    columns = map_headlines([run.report.metrics for run in runs])
    scores = select_headline_scores(runs, columns)
    for headline in columns:
        if headline.mode in without_modes:
            continue
        if single and headline.suite == QUESTIONS and content.dialogues:
            if headline.metric != 'accuracy':
                continue  # of the same answers
            about = _map_owners(runs, content)
            unit = OBJECTS_OF_SCENE if any(about.values()) else 'questions'
            yield _Measured(headline.title, unit, _collect_answers(runs, content), about)
        else:
            own = scores[scores['headline'] == headline.title]
            methods = own.assign(method=list(zip(own['mapper'], own['condition'], strict=True)))
            yield _Measured(headline.title, SCENES, by_place(methods, 'method'))
    ids = {run.report.run_id for run in runs}
    sections = [item for item in content.sections if item.run.report.run_id in ids]
    if single and (found := _collect_objects(sections)):
        yield _Measured(OBJECTS, OBJECTS_OF_SCENE, found)


def _map_owners(runs: Sequence[Run], content: PageContent) -> dict[str, Sequence[int]]:
    return {
        '/'.join(question): nodes
        for run in runs
        for question, nodes in content.dialogues[run.report.run_id].about.items()
    }


def _collect_answers(runs: Sequence[Run], content: PageContent) -> dict[tuple[str, str], Units]:
    return {
        (run.mapper, run.condition): {
            '/'.join(question): float(correct)
            for question, correct in content.dialogues[run.report.run_id].correct.items()
        }
        for run in runs
    }


def _collect_objects(sections: Sequence[RunSection]) -> dict[tuple[str, str], Units]:
    return {
        (section.run.mapper, section.run.condition): {
            str(number): share for number, share in section.pictures.object_shares.items()
        }
        for section in sections
        if section.pictures is not None and section.pictures.object_shares
    }


def _list_contrasts(
    measured: Sequence[_Measured], subjects: Sequence[str], reference: str, *, axis: int
) -> Iterator[Contrast]:
    """Yield the contrasts along one axis of (mapper, condition) for every value of the other."""
    for subject in subjects:
        for item in measured:
            figures = {
                pair[axis]: units
                for pair, units in item.values.items()
                if pair[1 - axis] == subject and units
            }
            if reference not in figures or len(figures) < 2:
                continue
            found = compare_with_reference(figures, reference, unit=item.unit, owners=item.owners)
            for other, comparison in found.items():
                if comparison.paired.difference.n:
                    yield Contrast(subject, other, reference, item.figure, comparison)


def _make_interval_cell(interval: Interval) -> Cell:
    if not math.isfinite(interval.value):
        return ABSENT
    bounds = ''
    if math.isfinite(interval.low):
        bounds = f'[{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]'
    return Cell(f'{100 * interval.value:+.1f}', repr(interval.value), bounds)


def _make_finite_cell(value: float, digits: int) -> Cell:
    return scale_cell(value if math.isfinite(value) else None, 1, digits)


PowerRow = tuple[str, str, str, list[Cell]]
"""A metric between conditions or mappers, the units, and cells: spread, what can be shown, with
twice the seeds in each unit, and the units that it takes for `DIFFERENCES`."""


@dataclass(frozen=True)
class PowerView:
    """Rows where a spread was observed; else sentences about an assumed one."""

    rows: tuple[PowerRow, ...]
    expected: tuple[str, ...]
    differences: tuple[float, ...] = DIFFERENCES


def build_power_view(runs: Sequence[Run], comparison: ComparisonView) -> PowerView:
    """Return the detectable differences of every metric that is compared over three units."""
    rows = [
        row
        for between, contrasts in (
            ('conditions', comparison.conditions),
            ('mappers', comparison.mappers),
        )
        for figure in distinct(item.figure for item in contrasts)
        if (row := _make_power_row(figure, between, [x for x in contrasts if x.figure == figure]))
    ]
    identities = [run.plan.identity for run in runs]
    columns = len({(item.condition, item.mapper) for item in identities})
    expected = () if rows else expected_power((item.place for item in identities), columns)
    return PowerView(tuple(rows), tuple(expected))


def _make_power_row(figure: str, between: str, contrasts: Sequence[Contrast]) -> PowerRow | None:
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
    points = [
        _make_points_cell(value) for value in (total, shown, smallest_difference(units, twice))
    ]
    counts = [units_needed(points / 100, total) for points in DIFFERENCES]
    needed = [Cell(str(count), str(count)) for count in counts]
    return figure, between, over, [*points, *needed]


def _make_points_cell(value: float) -> Cell:
    return scale_cell(value, 100, 1) if math.isfinite(value) else ABSENT
