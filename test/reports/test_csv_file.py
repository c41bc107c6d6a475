import csv
import io
from dataclasses import replace

from osmabench_ros.metrics.record import COLUMNS
from osmabench_ros.reports.cells import write_csv_text
from osmabench_ros.runs.report_model import MatrixReport, RunReport


def read(report):
    text = write_csv_text(COLUMNS, map(vars, report.metrics))
    return list(csv.DictReader(io.StringIO(text, newline='')))


def test_every_record_is_a_row_with_the_columns_of_the_json(matrix):
    rows = read(matrix.report)
    assert len(rows) == len(matrix.report.metrics) > 50
    assert list(rows[0]) == list(COLUMNS)
    for row, record in zip(rows, matrix.report.metrics, strict=True):
        assert row['value'] == ('' if record.value is None else repr(record.value))
        assert row['applicable'] == str(record.applicable).lower()
        assert row['mode'] == (record.mode or '')


def test_spreadsheets_find_no_formulas(matrix):
    run = matrix.report.runs[0]
    record = replace(run.metrics[0], class_name='=cmd()', value=-0.5)
    report = MatrixReport(
        name='x', passed=True, runs=(RunReport(run_id='r', status=run.status, metrics=(record,)),)
    )
    (row,) = read(report)
    assert (row['class_name'], row['value']) == ("'=cmd()", '-0.5')
