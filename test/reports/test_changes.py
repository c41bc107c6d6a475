"""Two results compared: pairs, directions, seeds, thresholds."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import bootstrap
from typer.testing import CliRunner

from osmabench_ros.base.files import write_json
from osmabench_ros.cli.main import app
from osmabench_ros.errors import ConfigError, RequirementError, RunError
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.changes import (
    Threshold,
    compare_reports,
    compare_results,
    list_broken,
    read_reports,
)
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status

BEFORE = [0.61, 0.55, 0.72, 0.48, 0.66, 0.59, 0.70, 0.52]
AFTER = [0.64, 0.61, 0.73, 0.55, 0.70, 0.60, 0.78, 0.57]


def record(value, **changes):
    run = {'dataset': 'set', 'scene': 'home', 'condition': 'baseline', 'mapper': 'mine'}
    metric = {'suite': 'segmentation', 'mode': 'strict', 'metric': 'macc'}
    given = {'run_id': 'x', 'simulator': 'opengl', **run, **metric, **changes}
    return MetricRecord(value=value, **given)


def scenes(values, **changes):
    return [record(value, scene=f's{i}', **changes) for i, value in enumerate(values)]


def test_differences_are_paired_by_scene_with_the_interval_of_scipy():
    [change] = compare_results(scenes(BEFORE), scenes(AFTER)[::-1]).table.itertuples()
    steps = np.subtract(AFTER, BEFORE)
    assert change.difference == pytest.approx(steps.mean())
    assert (change.before, change.after) == pytest.approx((np.mean(BEFORE), np.mean(AFTER)))
    reference = bootstrap(
        (steps,), np.mean, n_resamples=20_000, method='percentile', random_state=1
    ).confidence_interval
    # Whatever interval the statistics give, it is near the one of the pairs, not of the means.
    assert change.low == pytest.approx(reference.low, abs=0.02)
    assert change.high == pytest.approx(reference.high, abs=0.02)
    assert change.verdict == 'better'


def verdict(before, after, **changes):
    [found] = compare_results(scenes(before, **changes), scenes(after, **changes)).table['verdict']
    return found


def test_the_direction_of_a_figure_and_its_interval_decide():
    assert verdict(AFTER, BEFORE) == 'worse'
    assert verdict(AFTER, BEFORE, higher_is_better=False) == 'better'
    assert verdict(BEFORE, AFTER, metric='error_m', higher_is_better=False) == 'worse'
    assert verdict([0.5, 0.6, 0.7], [0.6, 0.5, 0.75]) == 'unclear'
    # Of two scenes there is no interval.
    assert verdict([0.5, 0.6], [0.6, 0.5]) == 'equal'
    assert verdict(BEFORE, BEFORE) == 'equal'
    assert verdict([0.5], [0.4]) == 'worse'  # of one scene nothing is resampled


def test_seeds_of_a_scene_are_one_unit():
    before = [record(v, scene=s, seed=i) for s in ('a', 'b') for i, v in enumerate((0.2, 0.4))]
    after = [record(v, scene=s, seed=i) for s in ('a', 'b') for i, v in enumerate((0.3, 0.6))]
    [change] = compare_results(before, after[:-1]).table.itertuples()
    assert change.scenes == 2
    assert change.before == pytest.approx((0.3 + 0.2) / 2)
    assert change.after == pytest.approx((0.45 + 0.3) / 2)


def test_conditions_mappers_and_classes_are_kept_apart():
    before, after = [], []
    for condition in ('baseline', 'dark'):
        for class_name in ('', 'chair'):
            before += scenes([0.5, 0.6], condition=condition, class_name=class_name)
            after += scenes([0.7, 0.8], condition=condition, class_name=class_name)
    found = compare_results(before, after)
    assert sorted(found.table[['condition', 'class_name']].itertuples(index=False, name=None)) == [
        ('baseline', ''), ('baseline', 'chair'), ('dark', ''), ('dark', 'chair'),
    ]  # fmt: skip


def test_versions_of_a_mapper_are_paired_by_their_names():
    before = [*scenes(BEFORE, mapper='v1'), *scenes(BEFORE, mapper='other')]
    after = [*scenes(AFTER, mapper='v2'), *scenes(BEFORE, mapper='other')]
    with pytest.raises(RunError, match='no run in common'):
        compare_results(scenes(BEFORE, mapper='v1'), scenes(AFTER, mapper='v2'))
    found = compare_results(before, after, renamed={'v1': 'v2'})
    assert found.table['mapper'].tolist() == ['v1 → v2']
    assert (found.only_before, found.only_after) == ((), ())


def test_a_map_that_no_run_recorded_is_compared_with_the_run_of_any_simulator():
    run, imported = scenes(BEFORE, mapper='mine'), scenes(AFTER, mapper='cg', simulator='unknown')
    found = compare_results(run, imported, renamed={'mine': 'cg'})
    assert found.table['mapper'].tolist() == ['mine → cg']
    assert compare_results(imported, run, renamed={'cg': 'mine'}).only_after == ()
    with pytest.raises(RunError, match='no run in common'):
        compare_results(scenes(BEFORE), scenes(AFTER, simulator='habitat'))


def test_the_sentence_is_about_headline_figures_where_some_changed():
    def told(count):
        before = [replaced(item) for item in scenes(AFTER)[:count]]
        others = [record(0.9, metric='other', scene='s0')]
        after = [replaced(item) for item in scenes(BEFORE)[:count]]
        return compare_results(
            [*before, *others], [*after, record(0.1, metric='other', scene='s0')]
        ).sentence

    def replaced(item):
        return replace(item, suite='osma_segmentation')

    assert told(8).startswith('Headline metrics: 1 worse under “baseline” (by 95 % t intervals')
    assert '; most changed mAcc of mine under “baseline”, from ' in told(8)
    assert 'fewer than three scenes cannot tell a change from chance' in told(2)
    assert compare_results(scenes(AFTER), scenes(AFTER)).sentence == (
        'No metric over all classes changed.'
    )


def test_what_only_one_side_has_is_named():
    before = [*scenes(BEFORE), record(0.5, metric='miou', scene='s0')]
    after = [*scenes(AFTER[:-1]), record(None, metric='miou', scene='s0')]
    found = compare_results(before, [*after, record(1.0, scene='new')])
    assert found.only_before == ('set.s7.0.baseline.mine',)
    assert found.only_after == ('set.new.0.baseline.mine',)
    assert found.lost['metric'].tolist() == ['miou']


def test_a_threshold_is_on_the_mean_and_in_the_bad_direction():
    found = compare_results(scenes(AFTER), scenes(BEFORE))
    lost = -found.table['gain'].iloc[0]
    for name in ('macc', 'strict/macc', 'segmentation/macc', 'segmentation/strict/macc', 'seg*'):
        assert list_broken(found, [Threshold(name, lost + 1e-9)]) == []
        [sentence] = list_broken(found, [Threshold(name, lost - 1e-9)])
        assert 'segmentation/strict/macc of mine under baseline got worse by 0.04' in sentence
    assert (
        list_broken(compare_results(scenes(BEFORE), scenes(AFTER)), [Threshold('macc', 0.0)]) == []
    )
    with pytest.raises(ConfigError, match='Did you mean "segmentation/strict/macc"'):
        list_broken(found, [Threshold('segmentation/strict/mac', 0.1)])


def test_a_gate_is_not_passed_by_what_is_missing():
    gate = [Threshold('macc', 0.5)]
    [sentence] = list_broken(compare_results(scenes(BEFORE), scenes(AFTER[:-1])), gate)
    assert 'set.s7.0.baseline.mine' in sentence
    without = [*scenes(AFTER[:-1]), record(None, scene='s7')]
    [sentence] = list_broken(compare_results(scenes(BEFORE), without), gate)
    assert 'has no value any more' in sentence


@pytest.mark.parametrize('text', ['macc', 'macc=', '=0.1', 'macc=x', 'macc=-1', 'macc=nan'])
def test_thresholds_are_checked(text):
    with pytest.raises(ConfigError, match='METRIC=AMOUNT'):
        Threshold.parse(text)


def result(folder, records, status=Status.COMPLETE):
    run = RunReport(run_id='x', status=status, metrics=tuple(records))
    report = MatrixReport(name='m', passed=True, runs=(run,))
    folder.mkdir(parents=True)
    write_json(folder / 'report.json', report.model_dump(mode='json'))
    return folder


def compare(*words):
    done = CliRunner().invoke(app, ['compare', *map(str, words)], env={'COLUMNS': '200'})
    return done.exception, done.output


def test_the_command_is_a_gate(tmp_path):
    before, after = result(tmp_path / 'a', scenes(AFTER)), result(tmp_path / 'b', scenes(BEFORE))
    error, text = compare(before, after / 'report.json')
    assert error is None
    assert '0 better, 1 worse, 0 unclear, 0 equal' in text
    assert text.startswith('Metrics over all classes: 1 worse under “baseline” (by 95 % t ')
    assert 'segmentation/strict/macc' in text
    error, _ = compare(before, after, '--worse', 'macc=0.01')
    assert isinstance(error, RequirementError)
    assert error.exit_code == 4
    error, text = compare(before, after, '--json')
    [change] = json.loads(text)['changes']
    assert change['verdict'] == 'worse'
    assert math.isclose(change['difference'], np.mean(BEFORE) - np.mean(AFTER))
    assert change['low'] <= change['difference'] <= change['high'] < 0


def test_the_page_says_what_got_better_and_worse(tmp_path):
    hostile = '<b id="injected">'
    old = [*scenes(BEFORE), *scenes(AFTER, condition='dark'), *scenes(BEFORE, class_name=hostile)]
    new = [*scenes(AFTER), *scenes(BEFORE, condition='dark'), *scenes(AFTER, class_name=hostile)]
    before, after = result(tmp_path / 'a', old), result(tmp_path / 'b', new)
    error, text = compare(before, after, '--worse', 'macc=0.01', '--out', tmp_path / 'out')
    assert isinstance(error, RequirementError)
    page = tmp_path / 'out' / 'comparison.html'
    assert str(page) in text
    html = page.read_text(encoding='utf-8')
    assert '1 better under “baseline”; 1 worse under “dark”' in html
    assert 'by 95 % t intervals' in html
    assert 'at most 0.01 may be lost' in html
    difference = np.mean(np.subtract(AFTER, BEFORE))
    assert html.count(f'>{difference:+.3g}<span class="interval">') == 2
    assert html.count(f'>{-difference:+.3g}<span class="interval">') == 1
    assert hostile not in html
    compare(before, after, '--out', tmp_path / 'out')
    assert 'at most 0.01 may be lost' not in page.read_text(encoding='utf-8')


def test_runs_that_did_not_complete_have_no_figures(tmp_path):
    folder = result(tmp_path / 'a', scenes(AFTER), Status.INCOMPLETE)
    assert read_reports(folder) == ()
    with pytest.raises(RunError, match='nowhere'):
        read_reports(tmp_path / 'nowhere')


def test_remarks_that_only_the_second_result_has_are_named():
    def report(*remarks):
        metrics = (record(0.5),)
        return RunReport(run_id='x', status=Status.COMPLETE, metrics=metrics, remarks=remarks)

    found = compare_reports([report('known')], [report('known', 'computed with min_iou 0.01')])
    assert found.remarks == ('x: computed with min_iou 0.01',)
