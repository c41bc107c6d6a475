import math

import pytest

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.over_time import curve


def test_the_area_holds_each_value_until_the_next():
    assert curve([1, 2, 4], [0.5, 1.0, 0.8]).mean_quality() == pytest.approx((0.5 + 2 * 1.0) / 4)
    assert curve([1, 2], [1.0, 1.0]).mean_quality() == 0.5
    assert curve([3], [1.0]).mean_quality() == 0.0
    assert math.isnan(curve([], []).mean_quality())


def test_being_good_early_is_better():
    early, late = curve([1, 2, 3], [0.9, 0.9, 0.9]), curve([1, 2, 3], [0.1, 0.2, 0.9])
    assert early.mean_quality() > late.mean_quality()
    assert early.seen_until() < late.seen_until()


def test_the_moment_counts_from_which_on_it_stays():
    assert curve([1, 2, 3, 4], [1.0, 0.1, 0.95, 1.0]).seen_until(0.9) == 3
    assert curve([1, 2], [None, 0.5]).seen_until() == 2
    assert math.isnan(curve([1, 2], [0.5, None]).seen_until())


@pytest.mark.parametrize('seen', [[0, 1], [2, 1], [1, 1]])
def test_moments_must_ascend(seen):
    with pytest.raises(MetricError, match='ascend'):
        curve(seen, [0.1, 0.2])
    with pytest.raises(MetricError, match='1 moments, but 2'):
        curve([1], [0.1, 0.2])
