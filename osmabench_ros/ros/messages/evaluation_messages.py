"""Reports of a run as messages, and the check of a run's announced identity."""

from pathlib import Path
from urllib.parse import unquote, urlparse

from std_msgs.msg import Header

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ContractError
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.msg import EvaluationReport, MetricValue, RunInfo
from osmabench_ros.runs.report_model import RunReport

# Of a run_info: frames per second or times the speed, and characters of a name.
MAX_RATE, MAX_NAME = 1e6, 1000


def check_run_info(message: RunInfo) -> None:
    """Raise ContractError if a rate is invalid, or a name too long or not printable."""
    for name in ('frame_rate', 'speed_factor'):
        value = getattr(message, name)
        if not 0 <= value <= MAX_RATE:
            raise ContractError(
                f'topic "{topics.RUN_INFO}": {name} is {value}; must be in 0 to {MAX_RATE:g}'
            )
    for name, kind in message.get_fields_and_field_types().items():
        text = getattr(message, name) if kind == 'string' else ''
        if len(text) > MAX_NAME or not (not text or text.isprintable()):
            raise ContractError(
                f'topic "{topics.RUN_INFO}": {name} is {text[:40]!r}, of {len(text)} characters; '
                f'at most {MAX_NAME} printable ones are allowed'
            )


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
    """Return the path of a file:// address; ContractError, naming `what`, for any other."""
    try:
        parts = urlparse(uri)
        path = Path(unquote(parts.path))
        path.stat()
    except FileNotFoundError:
        pass
    except (ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ContractError(f'{what} is "{uri[:200]}", which is not a path: {why}') from error
    if parts.scheme != 'file' or parts.netloc not in ('', 'localhost') or not parts.path:
        raise ContractError(f'{what} is "{uri[:200]}"; must be a file:// address on this machine')
    return path


def _metric_message(record: MetricRecord) -> MetricValue:
    """Return a record as a message, of which the fields have the same names."""
    values = {name: getattr(record, name) for name in MetricValue.get_fields_and_field_types()}
    values['mode'] = record.mode or MetricValue.MODE_NONE
    values |= {name: float('nan') for name in ('value', 'low', 'high') if values[name] is None}
    return MetricValue(**values)
