"""Intervals and paired changes against other implementations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.world.graphs import as_map

from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance
from osmabench_ros.metrics.statistics import wilson_interval
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph, SceneNode
from osmabench_ros.vqa.questions import AnswerType, Evidence, Question, Verdict
from osmabench_ros.vqa.scores import (
    common_accuracies,
    compute_paired_change,
    find_unserved_categories,
    interval_over_scenes,
    records,
)


@pytest.mark.parametrize('scenes', [3, 8, 20])
def test_intervals_over_scenes_cover_the_truth_as_often_as_they_say(scenes):
    rng = np.random.default_rng(scenes)
    covered = 0
    for _ in range(500):
        right = {str(i): (rng.random(40) < rng.normal(0.6, 0.1)).tolist() for i in range(scenes)}
        low, high = interval_over_scenes(right)
        covered += low <= 0.6 <= high
    assert 0.925 <= covered / 500 <= 0.98


def test_one_scene_falls_back_to_the_interval_of_a_proportion():
    assert interval_over_scenes({'a': [True, False, True]}) == wilson_interval(2, 3)


def test_a_paired_change_uses_shared_questions_only_and_is_tight():
    keys = [(f's{i // 100}', f'q{i}') for i in range(500)]
    before = {key: i % 2 == 0 for i, key in enumerate(keys)}
    after = {key: value and i % 10 != 0 for i, (key, value) in enumerate(before.items())}
    after['s0', 'new'] = True
    change = compute_paired_change(before, after)
    assert (change.n, change.unit) == (5, 'scenes')
    assert change.value == pytest.approx(-0.1)
    assert change.low <= change.value <= change.high < 0
    assert change.high - change.low < 0.01, 'every scene loses the same'


def test_the_change_of_one_scene_is_over_the_objects_that_questions_are_about():
    before = {('a', f'q{i}'): True for i in range(100)}
    after = {key: i >= 20 for i, key in enumerate(before)}
    change = compute_paired_change(before, after)
    assert (change.value, change.n, change.unit) == (-0.2, 100, 'questions')
    # Four standard deviations of a mean of 100 of -1 (20 %) and 0 (80 %) are 0.16.
    assert change.high - change.low == pytest.approx(0.16, abs=0.005)
    # Five questions on each of 20 objects, which are lost together, tell a fifth of that.
    about = {key: (i // 5,) for i, key in enumerate(before)}
    clustered = compute_paired_change(before, after, about)
    assert (clustered.value, clustered.n, clustered.unit) == (-0.2, 20, 'objects')
    ratio = (clustered.high - clustered.low) / (change.high - change.low)
    assert ratio == pytest.approx(5**0.5 * 2.093 / 1.984 * (99 / 95) ** 0.5, rel=0.01)


def test_an_accuracy_in_one_scene_has_an_interval_over_its_objects():
    asked = [
        replace(item, evidence=Evidence((i // 4,))) for i, item in enumerate(yes_or_no(*'c' * 80))
    ]
    verdicts = [Verdict(item.id, i % 8 < 4, 'j') for i, item in enumerate(asked)]
    found = records('s', '', 'accuracy', asked, verdicts, by_category=False)[0]
    expected = stats.t.ppf(0.975, 19) * 0.5 / 19**0.5 / 0.25
    assert (found.value, found.n) == (0.5, 80)
    assert np.log(found.high / (1 - found.high)) == pytest.approx(expected)
    assert found.low == pytest.approx(1 - found.high)
    unknown = [replace(item, evidence=Evidence()) for item in asked]
    found = records('s', '', 'accuracy', unknown, verdicts, by_category=False)[0]
    assert (found.low, found.high) == pytest.approx(wilson_interval(40, 80))


def yes_or_no(*categories):
    """Return a question of each category whose answer is yes."""
    return [
        Question(f'q{i}', 's', 'x', category, f't{i}', AnswerType.YES_NO, 'yes')
        for i, category in enumerate(categories)
    ]


def test_no_shared_question_gives_no_figure():
    change = compute_paired_change({('a', 'q'): True}, {('b', 'q'): True})
    assert change.n == 0
    assert np.isnan([change.value, change.low, change.high]).all()


def test_unanswered_questions_lower_one_figure_and_not_the_other():
    verdicts = [Verdict('q0', True, 'j'), Verdict('q1', False, 'j')]
    verdicts += [Verdict('q2', False, 'j', answered=False)]
    found = records('s', '', 'accuracy', yes_or_no(*'cccc'), verdicts)
    assert overall(found, 'accuracy').value == 0.25
    assert overall(found, 'accuracy_answered').value == 0.5
    assert overall(found, 'unanswered').value == 0.5
    assert not overall(found, 'unanswered').higher_is_better


def test_what_a_map_cannot_serve_depends_on_what_it_holds_and_on_no_name():
    for method in ('bbq', 'other'):
        header = MapHeader(Provenance(method))
        bare, related = (replace(item, header=header) for item in (BARE, RELATED))
        plain = as_map(SceneGraph(NODES[:1]), method=method)
        assert {'Relations-Spatial', 'Relations-Functional'} <= find_unserved_categories(bare, ())
        assert 'Object Attributes' not in find_unserved_categories(bare, ())
        assert find_unserved_categories(related, ()) == {'navigation'}
        stated = replace(related, extras={'unserved_question_categories': ['Comparison']})
        assert find_unserved_categories(stated, ()) == {'navigation'}, (
            'no map chooses its questions'
        )
        dense = replace(related, dense=DenseMap(np.zeros((1, 3), np.float32)))
        assert find_unserved_categories(dense, ()) == frozenset()
        assert 'Object Attributes' in find_unserved_categories(plain, ())


def test_questions_that_a_map_cannot_serve_are_wrong():
    asked = yes_or_no(*'abab')
    verdicts = [Verdict(item.id, item.category == 'a', 'j') for item in asked]
    found = records('s', '', 'accuracy', asked, verdicts, not_applicable={'b'})
    accuracy, served = (overall(found, f'accuracy{part}') for part in ('', '_served'))
    assert (accuracy.value, accuracy.n, served.value, served.n) == (0.5, 4, 1.0, 2)
    assert overall(found, 'accuracy_macro').value == 0.5
    nothing = records('s', '', 'accuracy', asked, verdicts, not_applicable={'a', 'b'})
    assert not any(item.applicable for item in nothing)


def asked_of(semantic_map, right):
    """Records of a map that answers five questions, and those in `right` as it should."""
    asked = yes_or_no(*['Comparison'] * 3, 'Relations-Spatial', 'Object Attributes')
    verdicts = [Verdict(f'q{i}', i in right, 'j') for i in range(5)]
    unserved = find_unserved_categories(semantic_map, asked)
    return records('s', '', 'accuracy', asked, verdicts, not_applicable=unserved)


def overall(found, metric):
    return next(item for item in found if (item.metric, item.class_name) == (metric, ''))


NODES = (SceneNode(1), SceneNode(2, attributes={'color': 'red'}))
BARE = as_map(SceneGraph(NODES))
RELATED = as_map(SceneGraph(NODES, (SceneEdge(1, 2, 'on'),)))


def test_the_macro_average_counts_categories_that_a_map_cannot_serve_as_zero():
    macro = overall(asked_of(RELATED, {0, 3}), 'accuracy_macro')
    assert (macro.value, macro.n) == (pytest.approx((1 / 3 + 1 + 0) / 3), 5)
    macro = overall(asked_of(BARE, {0, 4}), 'accuracy_macro')
    assert (macro.value, macro.n) == (pytest.approx((1 / 3 + 0 + 1) / 3), 5)
    assert not overall(asked_of(as_map(), {}), 'accuracy_macro').applicable


def test_maps_are_compared_over_what_both_can_serve():
    bare, related = asked_of(BARE, {0, 4}), asked_of(RELATED, {0, 1, 3})
    nothing = asked_of(as_map(), {})
    assert overall(related, 'accuracy').value == 3 / 5
    found = common_accuracies({'bare': bare, 'related': related, 'nothing': nothing})
    for name, value in (('bare', 2 / 4), ('related', 2 / 4)):
        (figure,) = found[name]
        assert (figure.suite, figure.metric, figure.class_name) == ('s', 'accuracy_of_common', '')
        assert (figure.value, figure.n) == (pytest.approx(value), 4)
    assert found['nothing'] == [], 'it would leave nothing to compare the others over'


def test_where_all_maps_serve_the_same_there_is_one_figure():
    related = asked_of(RELATED, {0})
    assert common_accuracies({'a': related, 'b': asked_of(RELATED, {1, 2})}) == {'a': [], 'b': []}
    assert common_accuracies({'a': asked_of(BARE, {0})}) == {'a': []}
