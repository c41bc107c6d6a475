"""The reports of a bag, of a map and of a trajectory, each as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.reports.cells import build_cell_table, build_suite_tables
from osmabench_ros.reports.charts.trajectory_chart import draw_trajectory_chart
from osmabench_ros.reports.page.page import PAGE, write_rendered
from osmabench_ros.runs.bag_content import TIMING_SUITE
from osmabench_ros.runs.bag_settings import REFERENCE_FREE, BagReport
from osmabench_ros.runs.report_model import Record, RunReport

TRAJECTORY_PAGE = 'trajectory.html'
_TOPIC_COLUMNS = {
    'messages': 'messages',
    'rate_hz': 'rate, Hz',
    'gaps': 'gaps',
    'longest_interval_s': 'longest, s',
    'latency_p50_s': 'latency p50, s',
    'latency_p95_s': 'p95, s',
    'latency_max_s': 'max, s',
}


def write_trajectory_page(
    score: TrajectoryScore, estimate: str, reference: str, directory: Path
) -> Path:
    """Write trajectory.html: chart and metrics; byte-identical for equal input."""
    return write_rendered(
        directory / TRAJECTORY_PAGE,
        'trajectory.html',
        estimate=estimate,
        reference=reference,
        alignment=score.settings.alignment.value,
        poses=len(score.reference),
        remarks=score.remarks,
        suites=build_suite_tables(score.records),
        charts={'trajectory': draw_trajectory_chart(score)},
    )


def write_bag_page(report: BagReport, trajectory: TrajectoryScore | None, directory: Path) -> Path:
    """Write report.html of a bag; byte-identical for equal input."""
    topics = [item for item in report.metrics if item.suite == TIMING_SUITE and item.class_name]
    others = [item for item in report.metrics if item not in topics]
    return write_rendered(
        directory / PAGE,
        'bag_report.html',
        report=report,
        reference_free='' if report.reference else REFERENCE_FREE,
        remarks=[item for item in report.remarks if item != REFERENCE_FREE],
        suites=build_suite_tables([item for item in others if not item.class_name]),
        timing=_build_timing_table(topics),
        classes=build_suite_tables([item for item in others if item.class_name]),
        charts={'trajectory': draw_trajectory_chart(trajectory) if trajectory else None},
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
        suites=build_suite_tables([item for item in report.metrics if not item.class_name]),
        classes=build_suite_tables([item for item in report.metrics if item.class_name]),
    )


def _build_timing_table(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row per topic."""
    scores = pd.DataFrame([vars(record) for record in records], columns=list(Record.model_fields))
    cells = build_cell_table(scores, ['class_name'], 'metric', order=list(_TOPIC_COLUMNS))
    return cells.rename(columns=_TOPIC_COLUMNS)
