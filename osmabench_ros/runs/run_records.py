"""Every figure of a run that a requirement may name: of its map, of its time, of its growth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import RunError
from osmabench_ros.runs.growth import GROWTH
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import Record, RunReport, Status
from osmabench_ros.runs.timings import TIMINGS


def judged_records(plans: Sequence[RunPlan], runs: Sequence[RunReport]) -> tuple[Record, ...]:
    """Return the records of report.json, timings.json and growth.json of all runs.

    Those that failed have no figures. Raises RunError if one of the files is malformed.
    """
    folders = {plan.identity.run_id: plan.directory for plan in plans}
    found: list[Record] = []
    for report in runs:
        found += report.metrics
        folder = folders.get(report.run_id)
        if folder is not None and report.status is Status.COMPLETE:
            found += _records_in(folder / TIMINGS, 'records')
            found += _records_in(folder / GROWTH, 'metrics')
    return tuple(found)


def _records_in(file: Path, key: str) -> list[Record]:
    if not file.exists():
        return []
    try:
        return [Record.model_validate(item) for item in read_json(file)[key]]
    except (KeyError, TypeError, ValidationError) as error:
        raise RunError(f'{file} is malformed; start over with --fresh') from error
