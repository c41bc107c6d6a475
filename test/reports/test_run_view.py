import pytest
from reports.synthetic_matrix import Matrix

from osmabench_ros.reports.headline import HEADLINES
from osmabench_ros.reports.report_run import (
    baseline_condition,
    computed_headlines,
    estimate,
    joined,
)

MACC = HEADLINES[0]
VQA = next(item for item in HEADLINES if item.title == 'VQA')


def test_runs_follow_the_plans_whatever_the_order_of_the_reports(matrix: Matrix):
    runs = joined(matrix.plans, matrix.report.runs[::-1])
    assert [run.report.run_id for run in runs] == [p.identity.run_id for p in matrix.plans]
    assert joined(matrix.plans, matrix.report.runs[:2])[-1].mapper == 'noisy_oracle'


def test_the_first_condition_is_the_baseline_where_none_is_called_so(matrix: Matrix):
    runs = joined(matrix.plans, matrix.report.runs)
    assert baseline_condition(runs) == 'baseline'
    assert baseline_condition(runs[3:]) == 'camera'


def test_a_single_run_keeps_its_interval_and_several_are_averaged(matrix: Matrix):
    runs = joined(matrix.plans, matrix.report.runs)
    one = estimate(runs, 'oracle', 'baseline', VQA)
    assert one.low < one.value < one.high
    two = estimate([runs[0], runs[0]], 'oracle', 'baseline', VQA)
    assert (two.value, two.low, len(two.scenes)) == (pytest.approx(one.value), None, 2)
    assert estimate(runs, 'broken', 'baseline', VQA) is None


def test_columns_without_any_record_are_left_out(matrix: Matrix):
    runs = joined(matrix.plans, matrix.report.runs)
    assert MACC in computed_headlines(runs)
    assert computed_headlines([run for run in runs if run.failed]) == []
