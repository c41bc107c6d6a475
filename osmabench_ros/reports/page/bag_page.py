"""The reports of a bag, of a map and of a trajectory, each as one self-contained page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from osmabench_ros.metrics.trajectory_records import ALIGNED, TrajectoryScore
from osmabench_ros.reports.cells import Cell, plain, record_cell
from osmabench_ros.reports.charts.trajectory_chart import trajectory_chart
from osmabench_ros.reports.page.page import PAGE, write_rendered
from osmabench_ros.runs.bag_content import TIMING_SUITE
from osmabench_ros.runs.bag_settings import REFERENCE_FREE, BagReport
from osmabench_ros.runs.report_model import Record, RunReport

TRAJECTORY_PAGE = 'trajectory.html'


def write_trajectory_page(
    score: TrajectoryScore, estimate: str, reference: str, directory: Path
) -> Path:
    """Write trajectory.html: plot and figures; byte-identical for equal input."""
    rows: dict[str, list[str]] = {}
    for record in score.records:
        cells = rows.setdefault(record.metric, ['', '', str(record.n)])
        cells[1 if record.suite.endswith(ALIGNED) else 0] = plain(record.value)
    return write_rendered(
        directory / TRAJECTORY_PAGE,
        'trajectory.html',
        estimate=estimate,
        reference=reference,
        alignment=score.settings.alignment.value,
        poses=len(score.reference),
        remarks=score.remarks,
        rows=rows,
        charts={'trajectory': trajectory_chart(score)},
    )


@dataclass(frozen=True)
class FigureRow:
    """A figure as recorded and after alignment."""

    metric: str
    mode: str
    class_name: str
    value: str
    aligned: str
    n: int


@dataclass(frozen=True)
class SuiteTable:
    """The figures of a suite, in two columns if `has_aligned`."""

    suite: str
    rows: tuple[FigureRow, ...]
    has_aligned: bool

    @property
    def has_modes(self) -> bool:
        """Whether its figures come by mode, compat and strict."""
        return any(row.mode for row in self.rows)


def write_bag_page(report: BagReport, trajectory: TrajectoryScore | None, directory: Path) -> Path:
    """Write report.html of a bag; byte-identical for equal input."""
    tables = suite_tables(report.metrics)
    overall = [table for table in (_of_all(item) for item in tables) if table.rows]
    return write_rendered(
        directory / PAGE,
        'bag_report.html',
        report=report,
        reference_free='' if report.reference else REFERENCE_FREE,
        remarks=[item for item in report.remarks if item != REFERENCE_FREE],
        overall=[item for item in overall if item.suite != TIMING_SUITE],
        timing=_timing(report.metrics),
        map_timing=[item for item in overall if item.suite == TIMING_SUITE],
        classes=[item for item in tables if _has_classes(item)],
        charts={'trajectory': trajectory_chart(trajectory) if trajectory else None},
    )


def write_map_page(report: RunReport, directory: Path) -> Path:
    """Write report.html of a map; byte-identical for equal input."""
    first = next(iter(report.metrics), None)
    return write_rendered(
        directory / PAGE,
        'map_report.html',
        report=report,
        mapper=first.mapper if first else report.run_id,
        scene=f'{first.dataset} {first.scene}' if first else '',
        condition=first.condition if first else '',
        overall=_by_suite(item for item in report.metrics if not item.class_name),
        classes=_by_suite(item for item in report.metrics if item.class_name),
    )


MapRow = tuple[str, str, str, Cell, int]
"""Figure, mode, class, value and samples."""


def _by_suite(records: Iterable[Record]) -> list[tuple[str, list[MapRow]]]:
    found: dict[str, list[MapRow]] = {}
    for item in records:
        row = (item.metric, item.mode or '', item.class_name, record_cell(item), item.n)
        found.setdefault(item.suite, []).append(row)
    return list(found.items())


def suite_tables(records: Sequence[Record]) -> list[SuiteTable]:
    """Return the figures suite by suite, those after alignment beside those as recorded."""
    aligned = {_key(record): record for record in records if record.suite.endswith(ALIGNED)}
    plain_keys = {_key(record) for record in records if not record.suite.endswith(ALIGNED)}
    rows: dict[str, list[FigureRow]] = {}
    for record in records:
        key = _key(record)
        is_aligned = record.suite.endswith(ALIGNED)
        if is_aligned and key in plain_keys:
            continue
        other = aligned.get(key)
        rows.setdefault(key[0], []).append(
            FigureRow(
                record.metric,
                record.mode or '',
                record.class_name,
                '' if is_aligned else plain(record.value),
                '' if other is None else plain(other.value),
                record.n,
            )
        )
    return [
        SuiteTable(suite, tuple(found), any(row.aligned for row in found))
        for suite, found in rows.items()
    ]


def _key(record: Record) -> tuple[str, str, str, str]:
    suite = record.suite.removesuffix(ALIGNED)
    return suite, record.mode or '', record.metric, record.class_name


def _of_all(table: SuiteTable) -> SuiteTable:
    rows = tuple(row for row in table.rows if not row.class_name)
    return SuiteTable(table.suite, rows, table.has_aligned)


def _has_classes(table: SuiteTable) -> bool:
    return table.suite != TIMING_SUITE and any(row.class_name for row in table.rows)


def _timing(records: Sequence[Record]) -> list[dict[str, str]]:
    """Return one row a topic."""
    own = [record for record in records if record.suite == TIMING_SUITE and record.class_name]
    return [
        {'topic': topic, **{record.metric: plain(record.value) for record in group}}
        for topic, group in groupby(own, key=lambda record: record.class_name)
    ]
