"""Reports of a run as messages."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

from std_msgs.msg import Header

from osmabench_ros.errors import ContractError
from osmabench_ros.msg import EvaluationReport, MetricValue
from osmabench_ros.runs.report_model import Record, RunReport


def report_message(
    report: RunReport, file: Path, header: Header | None = None
) -> EvaluationReport:
    """Return the message of a report in a file, with stamp and frame of the map if known."""
    return EvaluationReport(
        header=header or Header(),
        run_id=report.run_id,
        passed=not report.failed_requirements,
        failed_requirements=list(report.failed_requirements),
        metrics=[_metric_message(record) for record in report.metrics],
        report_uri=file.absolute().as_uri(),
    )


def path_from_uri(uri: str, what: str) -> Path:
    """Return the path of a file:// address; raises ContractError, naming `what`, if it is none."""
    try:
        parts = urlparse(uri)
        path = Path(unquote(parts.path))
        path.stat()
    except FileNotFoundError:
        pass
    except (ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ContractError(f'{what} is "{uri[:200]}", which is no path: {why}') from error
    if parts.scheme != 'file' or parts.netloc not in ('', 'localhost') or not parts.path:
        raise ContractError(f'{what} is "{uri[:200]}"; must be a file:// address on this machine')
    return path


def _metric_message(record: Record) -> MetricValue:
    def number(value: float | None) -> float:
        return float('nan') if value is None else value

    return MetricValue(
        suite=record.suite,
        mode=record.mode or MetricValue.MODE_NONE,
        metric=record.metric,
        class_name=record.class_name,
        value=number(record.value),
        low=number(record.low),
        high=number(record.high),
        n=record.n,
        higher_is_better=record.higher_is_better,
        applicable=record.applicable,
    )
