import math

import numpy as np
import pandas as pd
import pytest
from support.published_data import SEGMENTATION

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.comparison import (
    average_nested,
    compare_with_reference,
    macc_over_objects,
)
from osmabench_ros.metrics.statistics import jackknife_interval


def test_scenes_are_aligned_by_name_and_inapplicable_ones_leave():
    figures = {
        'baseline': {'a': 0.4, 'b': 0.6, 'c': 0.5, 'd': None},
        'camera': {'b': 0.3, 'a': 0.2, 'c': None, 'd': 0.9},
    }
    found = compare_with_reference(figures, 'baseline')
    assert list(found) == ['camera']
    assert found['camera'].paired.difference.value == pytest.approx(-0.25)
    assert found['camera'].paired.difference.n == 2
    assert found['camera'].robustness.value == pytest.approx(-0.5)
    assert math.isnan(found['camera'].adjusted_p)


def test_a_figure_of_zero_is_a_figure():
    found = compare_with_reference({'x': {'a': 0.0, 'b': 1.0}, 'y': {'a': 0.5, 'b': 0.0}}, 'x')
    assert found['y'].paired.difference.value == pytest.approx(-0.25)
    assert found['y'].paired.difference.n == 2


def test_a_missing_reference_is_named():
    with pytest.raises(MetricError, match='Did you mean "baseline"'):
        compare_with_reference({'baseline': {}}, 'basline')


def test_published_scenes_show_that_light_costs_quality():
    figures = {}
    for condition in ('baseline', 'camera_lights', 'dynamic_lights', 'no_lights', 'velocity'):
        file = SEGMENTATION / f'conceptgraphs_replica_cad_{condition}.csv'
        values = pd.read_csv(file, index_col='scene')['fmiou']
        figures[condition] = values.drop(['overall', 'overall_mean']).to_dict()
    found = compare_with_reference(figures, 'baseline')
    for condition in ('camera_lights', 'dynamic_lights'):
        assert found[condition].paired.difference.excludes_zero
        assert found[condition].robustness.high < 0
        assert found[condition].adjusted_p < 0.01
    dynamic = found['dynamic_lights'].robustness
    assert dynamic.value < found['camera_lights'].robustness.value
    assert (dynamic.n, dynamic.unit) == (22, 'scenes')


def test_places_are_paired_from_inside_and_averaged_to_scenes():
    before = {
        ('a', '1', '0'): 0.2, ('a', '1', '1'): 0.4, ('a', '2', '0'): 0.5,
        ('b', '1', '0'): 0.6, ('b', '1', '1'): 0.6,
        ('c', '1', '0'): 0.1,
        ('d', '1', '0'): 0.9,
    }  # fmt: skip
    after = {place: value + 0.1 for place, value in before.items()} | {('a', '1', '1'): 0.8}
    del after['b', '1', '1']
    after['d', '1', '1'] = after.pop(('d', '1', '0'))
    found = compare_with_reference({'x': before, 'y': after}, 'x')['y'].paired.difference
    # Of a: path 1 changes by the mean of 0.1 and 0.4, path 2 by 0.1; d has no equal repetition.
    assert (found.n, found.unit) == (3, 'scenes')
    assert found.value == pytest.approx(((0.25 + 0.1) / 2 + 0.1 + 0.1) / 3)


@pytest.mark.parametrize(
    ('places', 'unit', 'n'),
    [
        ([('a', '1', '1'), ('a', '2', '1'), ('a', '3', '2')], 'paths', 3),
        ([('a', '1', '1'), ('a', '1', '2'), ('a', '1', '3')], 'repetitions', 3),
        ([('a', '1', '1'), ('a', '2', '1'), ('b', '3', '2')], 'scenes', 2),
        ([('a', '1', '1')], 'scenes', 1),
    ],
)
def test_the_units_are_the_outermost_that_differ(places, unit, n):
    figures = {'x': dict.fromkeys(places, 0.5), 'y': dict.fromkeys(places, 0.4)}
    found = compare_with_reference(figures, 'x')['y'].paired
    assert (found.difference.unit, found.difference.n) == (unit, n)
    assert math.isnan(found.p_value) == (unit != 'scenes')


def two_levels(rng, scenes):
    """Return changes of -0.05: 0.03 between scenes, 0.05 between two or four paths in each."""
    return {
        (str(scene), str(path)): shift + rng.normal(0, 0.05)
        for scene, shift in enumerate(rng.normal(-0.05, 0.03, scenes))
        for path in range(2 + 2 * (scene % 2))
    }


@pytest.mark.parametrize('scenes', [3, 5, 8, 22])
def test_nested_intervals_cover_what_other_scenes_and_paths_would_give(scenes):
    rng = np.random.default_rng(scenes)
    nested = alone = 0
    for _ in range(600):
        changes = two_levels(rng, scenes)
        found = jackknife_interval(list(average_nested(changes).values()))
        nested += found.low <= -0.05 <= found.high
        found = jackknife_interval(list(changes.values()))
        alone += found.low <= -0.05 <= found.high
    assert 0.925 <= nested / 600 <= 0.985
    assert alone < nested, 'paths are not independent scenes'


def test_the_value_is_macc_and_the_interval_is_over_objects():
    rng = np.random.default_rng(0)
    instances = np.repeat(np.arange(1, 21), 50)
    labels = instances % 4 + 1
    right = rng.random(21) < 0.7
    predicted = np.where(right[instances], labels, 0)
    found = macc_over_objects(labels, instances, predicted == labels)
    from sklearn.metrics import recall_score

    expected = recall_score(labels, predicted, labels=[1, 2, 3, 4], average='macro')
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high
    assert (found.n, found.unit) == (20, 'objects')


def test_more_points_on_the_same_objects_tell_nothing_new():
    instances, labels = np.array([1, 2, 3, 4]), np.array([1, 1, 2, 2])
    correct = np.array([True, False, True, True])
    few = macc_over_objects(labels, instances, correct)
    many = macc_over_objects(*(np.repeat(item, 1000) for item in (labels, instances, correct)))
    assert few == many


def test_one_object_gives_no_interval_and_none_no_value():
    one = macc_over_objects(np.array([1]), np.array([1]), np.array([True]))
    assert one.value == 1.0
    assert math.isnan(one.low)
    nothing = np.zeros(0, int)
    assert math.isnan(macc_over_objects(nothing, nothing, nothing > 0).value)
    with pytest.raises(MetricError, match='verdicts'):
        macc_over_objects(nothing, nothing, np.ones(1, bool))
