import math

import numpy as np
import pytest

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.comparison import macc_over_objects


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
