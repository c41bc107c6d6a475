import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.statistics import (
    bootstrap_interval,
    corrected_tests,
    holm_adjusted,
    paired_difference,
    ratio_statistic,
    relative_change,
    sign_flip_p,
    smallest_attainable_p,
    wilson_interval,
)

RNG = np.random.default_rng(3)
VALUES = RNG.normal(0.5, 0.1, 22)


def test_percentile_intervals_agree_with_scipy() -> None:
    found = bootstrap_interval(VALUES, seed=1)
    expected = stats.bootstrap(
        (VALUES,),
        np.mean,
        n_resamples=10_000,
        method='percentile',
        random_state=np.random.default_rng(0),
    ).confidence_interval
    assert found.value == pytest.approx(VALUES.mean())
    assert found.low == pytest.approx(expected.low, abs=3e-3)
    assert found.high == pytest.approx(expected.high, abs=3e-3)
    assert (found.n, found.unit) == (22, 'scenes')


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        found = bootstrap_interval(rng.normal(1, 1, 30), resamples=500, seed=trial)
        covered += found.low <= 1 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_the_same_seed_gives_the_same_interval() -> None:
    assert bootstrap_interval(VALUES, seed=4) == bootstrap_interval(VALUES, seed=4)
    assert bootstrap_interval(VALUES, seed=4) != bootstrap_interval(VALUES, seed=5)


def test_not_applicable_units_leave_and_one_unit_gives_no_interval() -> None:
    found = bootstrap_interval([0.5, math.nan, 0.7])
    assert (found.value, found.n) == (pytest.approx(0.6), 2)
    lonely = bootstrap_interval([0.5], unit='objects')
    assert lonely.value == 0.5
    assert math.isnan(lonely.low)
    assert lonely.unit == 'objects'
    assert not lonely.excludes_zero
    assert math.isnan(bootstrap_interval([]).value)


def test_a_ratio_weighs_units_by_their_size() -> None:
    found = bootstrap_interval(np.array([[1, 1], [0, 9]]), statistic=ratio_statistic)
    assert found.value == pytest.approx(0.1)
    assert (found.low, found.high) == (0.0, 1.0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=9))
def test_sign_flips_agree_with_scipys_permutations(changes: list[int]) -> None:
    values = np.array(changes, float)
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type='samples', n_resamples=np.inf
    ).pvalue
    assert sign_flip_p(values) == pytest.approx(float(expected))


def test_many_units_are_sampled_and_p_is_never_zero() -> None:
    p = sign_flip_p(np.ones(40))
    assert 0 < p <= 2e-4
    assert math.isnan(sign_flip_p([]))


def test_the_smallest_p_follows_from_the_number_of_units() -> None:
    for n in (2, 5, 8):
        assert sign_flip_p(np.arange(1, n + 1)) == smallest_attainable_p(n) == 2 / 2**n
    assert smallest_attainable_p(0) == 1.0


def test_paired_differences_come_with_effect_sizes() -> None:
    before = np.array([0.5, 0.6, 0.4, 0.7, 0.55])
    after = before - np.array([0.1, 0.12, 0.08, 0.1, 0.11])
    found = paired_difference(before, after)
    assert found.difference.value == pytest.approx(-0.102)
    assert found.difference.excludes_zero
    changes = after - before
    assert found.effect_size == pytest.approx(changes.mean() / changes.std(ddof=1))
    assert found.rank_biserial == -1.0
    assert found.p_value == found.smallest_p == 2 / 2**5
    assert math.isnan(paired_difference([0.5, 0.5], [0.5, 0.5]).effect_size)
    with pytest.raises(MetricError, match='not 2 and 1 units'):
        paired_difference([1, 2], [1])


def test_rank_biserial_agrees_with_wilcoxons_statistic() -> None:
    changes = np.array([0.3, -0.1, 0.2, 0.5, -0.4, 0.25])
    found = paired_difference(np.zeros(6), changes)
    down = stats.wilcoxon(changes).statistic
    total = 6 * 7 / 2
    assert abs(found.rank_biserial) == pytest.approx(1 - 2 * down / total)


def test_holm_agrees_with_a_worked_example() -> None:
    # Holm's step-down: 0.01*4, max(0.02*3, .), max(0.03*2, .), max(0.04, .).
    found = holm_adjusted({'d': 0.04, 'a': 0.01, 'c': 0.03, 'b': 0.02})
    assert found == pytest.approx({'d': 0.06, 'a': 0.04, 'c': 0.06, 'b': 0.06})


def test_eight_scenes_and_seven_contrasts_are_not_tested_but_twenty_two_are() -> None:
    def contrasts(scenes: int, count: int) -> dict:
        rng = np.random.default_rng(0)
        base = rng.random(scenes)
        return {str(i): paired_difference(base, base - 0.1 - 0.01 * i) for i in range(count)}

    assert corrected_tests(contrasts(8, 7)) is None
    assert corrected_tests({}) is None
    tested = corrected_tests(contrasts(22, 7))
    assert tested is not None
    assert all(p < 0.05 for p in tested.values())


def test_robustness_is_the_change_relative_to_the_reference() -> None:
    found = relative_change([0.4, 0.6], [0.2, 0.3])
    assert (found.value, found.low, found.high) == pytest.approx((-0.5, -0.5, -0.5))
    assert math.isnan(relative_change([0.0, 0.0], [0.1, 0.2]).value)
    paired = relative_change([0.4, math.nan, 0.6], [0.4, 0.1, 0.6])
    assert (paired.value, paired.n) == (0.0, 2)


@pytest.mark.parametrize(('hits', 'total'), [(0, 5), (5, 5), (3, 10), (70, 184), (1, 1)])
@pytest.mark.parametrize('level', [0.9, 0.95])
def test_the_wilson_interval_is_scipys(hits: int, total: int, level: float) -> None:
    other = stats.binomtest(hits, total).proportion_ci(level, method='wilson')
    found = wilson_interval(hits, total, level=level)
    assert found == pytest.approx((other.low, other.high), abs=1e-9)


def test_no_samples_give_no_proportion() -> None:
    assert np.isnan(wilson_interval(0, 0)).all()
