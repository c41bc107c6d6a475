"""Joins the reports of the runs of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.base.files import write_json, write_text
from osmabench_ros.reports.cells import csv_text
from osmabench_ros.reports.page.page import write_page
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.evaluate.evaluation import versions
from osmabench_ros.runs.evaluate.over_time import judged_records
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.results.report_model import (
    MatrixReport,
    Record,
    RunReport,
    Status,
    for_part,
    partial_fault,
    unmet,
)
from osmabench_ros.runs.run_warnings import noted_warnings
from osmabench_ros.runs.shard import Part


def write_csv(report: MatrixReport, path: Path) -> Path:
    """Write one row a record, columns as in report.json, null as an empty cell."""
    write_text(path, csv_text(list(Record.model_fields), (r.model_dump() for r in report.metrics)))
    return path


def write_matrix_report(
    config: MatrixConfig,
    plans: Sequence[RunPlan],
    runs: Sequence[RunReport],
    root: Path,
    part: Part | None = None,
) -> MatrixReport:
    """Write report.json, report.csv and report.html of a matrix, or a part, into its folder."""
    required = config.requirements if part is None else for_part(config.requirements, plans)
    may_be_partial = {plan.identity.run_id for plan in plans if plan.mapper.allow_partial}
    partial = [run.run_id for run in runs if not run.map_complete]
    failed = (
        *(partial_fault(run_id) for run_id in partial if run_id not in may_be_partial),
        *unmet(required, judged_records(plans, runs)),
    )
    complete = all(run.status is Status.COMPLETE for run in runs)
    report = MatrixReport(
        name=config.name,
        passed=complete and not failed,
        part=part,
        runs=tuple(runs),
        failed_requirements=failed,
        versions=versions(),
        hashes={'config': config_digest(config)},
        warnings=(
            *noted_warnings(plans),
            *(f'{run.run_id}: {text}' for run in runs for text in run.remarks),
        ),
    )
    write_json(root / 'report.json', report.model_dump(mode='json'))
    write_csv(report, root / 'report.csv')
    write_page(report, plans, root)
    return report
