import math
from dataclasses import replace

import pytest
from support.world.matrix import changed_run

from osmabench_ros.reports import tidy
from osmabench_ros.runs.identity import SceneKey

MACC = tidy.read_headlines()[0]
VQA = next(item for item in tidy.read_headlines() if item.title == 'VQA')


def vqa_of(runs, mapper):
    """Return the mean accuracy of a mapper under the baseline condition."""
    found = tidy.compute_means(tidy.select_headline_scores(runs, [VQA]), ['mapper', 'condition'])
    return found.set_index(['mapper', 'condition']).loc[mapper, 'baseline']


def test_runs_follow_the_plans_whatever_the_order_of_the_reports(matrix):
    runs = tidy.join_runs(matrix.plans, matrix.report.runs[::-1])
    assert [run.report.run_id for run in runs] == [p.identity.run_id for p in matrix.plans]
    assert tidy.join_runs(matrix.plans, matrix.report.runs[:2])[-1].mapper == 'noisy_oracle'


def test_the_first_condition_is_the_baseline_where_none_is_called_so(runs):
    assert tidy.find_baseline_condition(runs) == 'baseline'
    assert tidy.find_baseline_condition(runs[3:]) == 'camera'


def test_a_single_run_keeps_its_interval_and_several_are_averaged(runs):
    one = vqa_of(runs, 'oracle')
    assert one.low < one.value < one.high
    two = vqa_of([runs[0], moved(runs[0], 'hall')], 'oracle')
    assert (two.value, math.isnan(two.low), len(two.units)) == (pytest.approx(one.value), True, 2)


def moved(run, scene, value=0.6, **seeds):
    """Return a run with another scene, seeds and accuracy."""
    key = SceneKey('boxes', scene, 0, seeds.get('path'))
    metrics = (
        replace(record, value=value) if record.metric == 'accuracy' else record
        for record in run.report.metrics
    )
    return changed_run(run, metrics, scene_key=key, method_seed=seeds.get('method'))


def test_paths_and_repetitions_count_within_their_scene(runs):
    first = runs[0]
    runs = [
        moved(first, 'hall', 0.2, path=1, method=1), moved(first, 'hall', 0.4, path=1, method=2),
        moved(first, 'hall', 0.7, path=2, method=1), moved(first, 'shed', 0.9, path=1, method=1),
    ]  # fmt: skip
    found = vqa_of(runs, 'oracle')
    assert found.units == pytest.approx([0.5, 0.9])
    assert found.value == pytest.approx(0.7)
    assert vqa_of(runs[:3], 'oracle').units == pytest.approx([0.3, 0.7])
    assert runs[1].scene == 'boxes hall, seed 0, path 1'
    assert moved(first, 'boxes').scene == 'boxes, seed 0'
    assert runs[1].title == 'oracle · baseline · method seed 2'


def test_columns_without_any_record_are_left_out(runs):
    assert MACC in tidy.select_map_headlines([run.report.metrics for run in runs])
    assert tidy.select_map_headlines([run.report.metrics for run in runs if run.failed]) == []
