"""Power against published tables and simulations."""

import math

import numpy as np
import pytest

from osmabench_ros.metrics import comparison
from osmabench_ros.metrics.statistics import jackknife_interval


@pytest.mark.parametrize(
    ('effect', 'power', 'units'),
    # G*Power 3.1, t test of the difference between two dependent means, two-sided, alpha 0.05.
    [(0.2, 0.8, 199), (0.5, 0.8, 34), (0.8, 0.8, 15), (1.0, 0.8, 10), (0.5, 0.95, 54)],
)
def test_units_needed_are_those_of_published_tables(effect, power, units):
    assert comparison.count_needed_units(effect, 1.0, power=power) == units
    assert comparison.count_needed_units(-7 * effect, 7.0, power=power) == units
    assert (
        comparison.compute_power(units, effect)
        >= power
        > comparison.compute_power(units - 1, effect)
    )


@pytest.mark.parametrize('units', [3, 5, 8, 22])
def test_the_smallest_difference_is_shown_as_often_as_it_says(units):
    difference = comparison.find_smallest_difference(units, 5.0)
    rng = np.random.default_rng(units)
    shown = sum(
        jackknife_interval(rng.normal(difference, 5.0, units)).excludes_zero for _ in range(800)
    )
    assert shown / 800 == pytest.approx(0.8, abs=0.04)


def test_there_is_no_difference_to_show_without_an_interval():
    assert math.isnan(comparison.find_smallest_difference(2, 5.0))
    assert math.isnan(comparison.find_smallest_difference(8, math.nan))
    assert comparison.count_needed_units(1.0, 0.0) == 3
    assert comparison.count_needed_units(50.0, 1.0) == 3


def test_the_spread_between_scenes_is_told_from_that_between_their_paths():
    rng = np.random.default_rng(4)
    changes = {
        (str(scene), str(path)): shift + rng.normal(0, 4.0)
        for scene, shift in enumerate(rng.normal(0, 3.0, 3000))
        for path in range(2 + 2 * (scene % 2))
    }
    found = comparison.measure_spread(changes)
    assert (found.units, found.share) == (3000, pytest.approx((1 / 2 + 1 / 4) / 2))
    assert found.inside == pytest.approx(4.0, rel=0.03)
    assert found.total == pytest.approx(math.sqrt(9 + 16 * 0.375), rel=0.03)
    assert found.with_more_inside(2) == pytest.approx(math.sqrt(9 + 16 * 0.375 / 2), rel=0.04)
    assert found.with_more_inside(math.inf) == pytest.approx(3.0, rel=0.06)


def test_one_path_a_scene_says_nothing_about_more_paths():
    found = comparison.measure_spread({('a', '1'): 0.1, ('b', '1'): 0.3, ('c', '1'): 0.2})
    assert found.total == pytest.approx(0.1)
    assert math.isnan(found.with_more_inside(2))
    assert math.isnan(comparison.measure_spread({('a', '1'): 0.1}).total)
    assert comparison.measure_spread({}) == comparison.Spread(0, math.nan)


def test_the_common_spread_is_the_root_of_the_mean_square_of_known_ones():
    assert comparison.root_mean_square([3.0, math.nan, 4.0]) == pytest.approx(math.sqrt(12.5))
    assert math.isnan(comparison.root_mean_square([math.nan]))
