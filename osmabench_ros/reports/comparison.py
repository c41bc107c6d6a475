"""Comparison of conditions and mappers by unit: tests, and how small a difference shows."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from osmabench_ros.metrics import comparison as tests
from osmabench_ros.metrics.statistics import SCENES, Interval
from osmabench_ros.reports import tidy
from osmabench_ros.reports.cells import ABSENT, Cell, scale_cell
from osmabench_ros.reports.content import PageContent
from osmabench_ros.reports.tidy import Run, select_map_headlines

QUESTIONS = 'exact_questions'
OBJECTS_OF_SCENE = 'objects'
# Mean over objects of the share of their visible surface that got its class.
OBJECTS = 'object accuracy'

# Values by question or object of one scene, or by scene, path and repetition.
Units = Mapping[str, float] | Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Contrast:
    """A condition next to the reference condition of a mapper, or a mapper next to its own."""

    subject: str
    other: str
    reference: str
    metric: str
    comparison: tests.Comparison

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
            scale_cell(paired.effect_size, 1, 2),
            # Of one pair it could be nothing but -1 or 1.
            scale_cell(paired.rank_biserial, 1, 2) if paired.difference.n > 1 else ABSENT,
            scale_cell(self.comparison.adjusted_p, 1, 4),
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
    condition = tidy.find_baseline_condition(runs)
    mapper = runs[0].mapper if runs else ''
    measured = list(_measure_runs(scored, content, without_modes))
    of_mappers = tidy.list_distinct(run.mapper for run in scored)
    of_conditions = tidy.list_distinct(run.condition for run in scored)
    return ComparisonView(
        tuple(_list_contrasts(measured, of_mappers, condition, axis=1)),
        tuple(_list_contrasts(measured, of_conditions, mapper, axis=0)),
        condition,
        mapper,
    )


# A metric of all runs: name, kind of its units, values by (mapper, condition) and unit, and the
# objects that each unit depends on.
Measured = tuple[str, str, Mapping[tuple[str, str], Units], Mapping[str, Sequence[int]] | None]


def _measure_runs(
    runs: Sequence[Run], content: PageContent, without_modes: Collection[str]
) -> Iterator[Measured]:
    single = len({run.plan.identity.place for run in runs}) == 1
    columns = select_map_headlines([run.report.metrics for run in runs])
    scores = tidy.select_headline_scores(runs, columns)
    methods = [((run.mapper, run.condition), run.report.run_id) for run in runs]
    for headline in columns:
        if headline.mode in without_modes:
            continue
        if single and headline.suite == QUESTIONS and content.dialogues:
            if headline.metric != 'accuracy':
                continue  # of the same answers
            own = {method: content.dialogues[run_id] for method, run_id in methods}
            about = {'/'.join(key): x for item in own.values() for key, x in item.about.items()}
            answers = {
                method: {'/'.join(key): float(correct) for key, correct in item.correct.items()}
                for method, item in own.items()
            }
            unit = OBJECTS_OF_SCENE if any(about.values()) else 'questions'
            yield headline.title, unit, answers, about
        else:
            found = scores[scores['headline'] == headline.title]
            names = zip(found['mapper'], found['condition'], strict=True)
            places = tidy.group_by_place(found.assign(method=list(names)), 'method')
            yield headline.title, SCENES, places, None
    pictures = {item.run.report.run_id: item.pictures for item in content.sections}
    objects = {
        method: {str(number): share for number, share in drawn.object_shares.items()}
        for method, run_id in methods
        if (drawn := pictures.get(run_id)) is not None and drawn.object_shares
    }
    if single and objects:
        yield OBJECTS, OBJECTS_OF_SCENE, objects, None


def _list_contrasts(
    measured: Sequence[Measured], subjects: Sequence[str], reference: str, *, axis: int
) -> Iterator[Contrast]:
    """Yield the contrasts along one axis of (mapper, condition) for every value of the other."""
    for subject in subjects:
        for metric, unit, values, owners in measured:
            own = {
                method[axis]: units
                for method, units in values.items()
                if method[1 - axis] == subject and units
            }
            if reference not in own or len(own) < 2:
                continue
            found = tests.compare_with_reference(own, reference, unit=unit, owners=owners)
            for other, comparison in found.items():
                if comparison.paired.difference.n:
                    yield Contrast(subject, other, reference, metric, comparison)


def _make_interval_cell(interval: Interval) -> Cell:
    if not math.isfinite(interval.value):
        return ABSENT
    bounds = f'[{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]'
    bounds = bounds if math.isfinite(interval.low) else ''
    return Cell(f'{100 * interval.value:+.1f}', repr(interval.value), bounds)


# A metric between conditions or mappers, the units, and cells: spread, what can be shown, with
# twice the seeds in each unit, and the units that it takes for `DIFFERENCES`.
PowerRow = tuple[str, str, str, list[Cell]]


def build_power_rows(comparison: ComparisonView) -> list[PowerRow]:
    """Return the detectable differences of every metric that is compared over three units."""
    rows = []
    for between in ('conditions', 'mappers'):
        contrasts = getattr(comparison, between)
        for metric in tidy.list_distinct(item.metric for item in contrasts):
            own = [(x.comparison.spread, x.units) for x in contrasts if x.metric == metric]
            spreads = [(spread, over) for spread, over in own if spread is not None]
            counts = ((spread.units, over) for spread, over in spreads)
            units, over = max(counts, key=itemgetter(0), default=(0, ''))
            total = tests.root_mean_square([spread.total for spread, _ in spreads])
            twice = tests.root_mean_square([spread.with_more_inside(2) for spread, _ in spreads])
            shown = tests.find_smallest_difference(units, total)
            if math.isfinite(shown) and total:
                points = (total, shown, tests.find_smallest_difference(units, twice))
                needed = [tests.count_needed_units(x / 100, total) for x in tests.DIFFERENCES]
                cells = [
                    *(scale_cell(value, 100, 1) for value in points),
                    *(Cell(str(count), str(count)) for count in needed),
                ]
                rows.append((metric, between, over, cells))
    return rows


def describe_expected_power(runs: Sequence[Run]) -> list[str]:
    """Return sentences about the differences that the runs show if they vary as others do."""
    identities = [run.plan.identity for run in runs]
    columns = len({(item.condition, item.mapper) for item in identities})
    return tests.estimate_power((item.place for item in identities), columns)
