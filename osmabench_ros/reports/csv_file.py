"""All records of a matrix as comma-separated values."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from osmabench_ros.base.files import write_text
from osmabench_ros.runs.report_model import MatrixReport, Record

FORMULA_STARTS = ('=', '+', '-', '@', '\t', '\r')


def write_csv(report: MatrixReport, path: Path) -> Path:
    """Write one row a record, columns as in report.json, null as an empty cell.

    Text that a spreadsheet would take for a formula gets an apostrophe in front; class names
    come from maps that others made.
    """
    buffer = io.StringIO()
    columns = list(Record.model_fields)
    writer = csv.DictWriter(buffer, columns, lineterminator='\n')
    writer.writeheader()
    for record in report.metrics:
        writer.writerow({name: _plain(value) for name, value in record.model_dump().items()})
    write_text(path, buffer.getvalue())
    return path


def _plain(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
