import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.sizes import few

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.statistics import (
    adjust_by_holm,
    compare_pairs,
    correct_tests,
    find_smallest_attainable_p,
    jackknife_interval,
    ratio_statistic,
    relative_change,
    sign_flip_p,
    wilson_interval,
)

RNG = np.random.default_rng(3)
VALUES = RNG.normal(0.5, 0.1, 22)
TRIALS = 1000


def test_the_interval_of_a_mean_is_the_t_interval_of_scipy():
    found = jackknife_interval(VALUES)
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval()
    assert found.value == pytest.approx(VALUES.mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.n, found.unit) == (22, 'scenes')
    wide = jackknife_interval(VALUES, level=0.99)
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(0.99)
    assert (wide.low, wide.high) == pytest.approx((expected.low, expected.high))


def measure_coverage(sample, n):
    """Return the share of intervals from samples of n scenes that hold the truth."""
    rng = np.random.default_rng(n)
    found = [sample(rng, n) for _ in range(TRIALS)]
    return sum(item.low <= truth <= item.high for item, truth in found) / TRIALS


def differences(rng, n):
    return jackknife_interval(rng.normal(-0.05, 0.04, n)), -0.05


def skewed_differences(rng, n):
    """A share of 0.2 +- 0.12 of accuracies of 0.6 +- 0.15 is lost."""
    before = rng.beta(6, 4, n)
    return compare_pairs(before, before * rng.beta(8, 2, n)).difference, -0.12


def relative_changes(rng, n):
    before = rng.beta(6, 4, n)
    return relative_change(before, before * rng.beta(8, 2, n)), -0.2


def shares(rng, n):
    """Of 10 to 60 questions a scene, 0.9 +- 0.09 are answered."""
    questions = rng.integers(10, 61, n)
    right = rng.binomial(questions, rng.beta(9, 1, n))
    rows = np.stack([right, questions], axis=1).astype(float)
    return jackknife_interval(rows, statistic=ratio_statistic, share=True), 0.9


def rare_losses(rng, n):
    return jackknife_interval(rng.beta(0.5, 4.5, n)), 0.1


def log_normal_losses(rng, n):
    return jackknife_interval(rng.lognormal(0, 1, n)), math.exp(0.5)


def losses_of_few(rng, n):
    """Of seven scenes in ten nothing is lost."""
    lost = np.where(rng.random(n) < 0.3, rng.normal(0.1, 0.05, n), 0.0)
    return jackknife_interval(lost), 0.03


@pytest.mark.parametrize(
    ('sample', 'documented'),
    [
        (rare_losses, {3: 0.84, 8: 0.89, 22: 0.92}),
        (log_normal_losses, {3: 0.83, 8: 0.84, 22: 0.87}),
        (losses_of_few, {3: 0.62, 8: 0.87, 22: 0.92}),
    ],
)
def test_intervals_of_rare_losses_cover_as_little_as_the_page_on_statistics_says(
    sample, documented
):
    for n, expected in documented.items():
        assert measure_coverage(sample, n) == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize('n', few([3, 5, 8, 22], 3, 8))
@pytest.mark.parametrize(
    ('sample', 'least'),
    [(differences, 0.935), (shares, 0.92), (skewed_differences, 0.885), (relative_changes, 0.89)],
)
def test_intervals_of_few_scenes_cover_the_truth_as_often_as_they_say(sample, least, n):
    assert least <= measure_coverage(sample, n) <= 0.985


def test_not_applicable_units_leave_and_two_units_give_no_interval():
    found = jackknife_interval([0.5, math.nan, 0.7])
    assert (found.value, found.n) == (pytest.approx(0.6), 2)
    assert math.isnan(found.low)
    assert not found.excludes_zero
    assert math.isfinite(jackknife_interval([0.5, math.nan, 0.7, 0.6]).low)
    assert jackknife_interval([0.5], unit='objects').unit == 'objects'
    assert math.isnan(jackknife_interval([]).value)


def test_a_ratio_weighs_units_by_their_size():
    rows = np.array([[1, 1], [0, 9], [4, 10]])
    found = jackknife_interval(rows, statistic=ratio_statistic)
    assert found.value == pytest.approx(5 / 20)
    # Leaving out one at a time gives 4/19, 5/11 and 1/10.
    error = math.sqrt(2 / 3 * 3 * np.var([4 / 19, 5 / 11, 1 / 10]))
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 2) * error)


def test_bounds_of_a_share_stay_inside_and_exist_where_all_is_right():
    found = jackknife_interval([0.97, 0.99, 0.7], share=True)
    assert 0 < found.low < 0.89 < found.high < 1
    assert jackknife_interval([0.97, 0.99, 0.7]).high > 1
    for value in (0.0, 1.0):
        perfect = jackknife_interval([value] * 8, share=True)
        assert (perfect.low, perfect.high) == wilson_interval(round(8 * value), 8)


def test_a_unit_leaves_with_all_that_hangs_on_it():
    answers, table, chair, rug = [1.0, 0.0, 0.0, 1.0, 1.0], 1, 2, 3
    owners = [(table,), (table, chair), (chair,), (rug,), ()]
    found = jackknife_interval(answers, unit='objects', owners=owners)
    assert (found.value, found.n) == (0.6, 4)
    left_out = [2 / 3, 3 / 3, 2 / 4, 2 / 4]  # without table, chair, rug, and the last question
    error = math.sqrt(3 / 4 * 4 * np.var(left_out))
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 3) * error)
    with_nothing = jackknife_interval([math.nan, *answers], owners=[(rug,), *owners])
    assert with_nothing.high == pytest.approx(found.high)


def test_questions_on_two_objects_leave_with_either():
    rng = np.random.default_rng(2)
    pairs = [tuple(rng.choice(40, 2, replace=False)) for _ in range(60)]
    owners = [*pairs, *((i,) for i in range(40) for _ in range(2))]
    truth = (60 * 0.7**2 + 80 * 0.7) / 140
    covered = {'both': 0, 'first': 0, 'none': 0}
    for _ in range(300):
        found = rng.random(40) < 0.7
        right = [float(all(found[list(objects)])) for objects in owners]
        for kind, held in (('both', owners), ('first', [x[:1] for x in owners]), ('none', None)):
            interval = jackknife_interval(right, owners=held, share=True)
            covered[kind] += interval.low <= truth <= interval.high
    assert 0.93 <= covered['both'] / 300 < 1.0, 'rather too wide than too narrow'
    assert covered['none'] < covered['first'] < covered['both']


def test_changes_that_cancel_are_no_change():
    changes = [0.1, 0.2, -0.3, 0, 0.1, -0.1]
    assert sum(changes) != 0, 'but by rounding'
    assert sign_flip_p(changes) == 1.0
    assert sign_flip_p(np.repeat(changes, 4)) == 1.0
    assert sign_flip_p([0.0, 0.0, 0.0]) == 1.0


def test_only_scenes_are_tested():
    changes = [0.1, 0.2, 0.3, 0.15, 0.2, 0.25]
    scenes, objects = (
        compare_pairs(np.zeros(6), changes, unit=unit) for unit in ('scenes', 'objects')
    )
    assert scenes.p_value == 2 / 2**6
    assert math.isnan(objects.p_value)
    assert correct_tests({'scenes': scenes}) == {'scenes': 2 / 2**6}
    assert correct_tests({'objects': objects}) is None


@settings(max_examples=30)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=9))
def test_sign_flips_agree_with_scipys_permutations(changes):
    values = np.array(changes, float)
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type='samples', n_resamples=np.inf
    ).pvalue
    assert sign_flip_p(values) == pytest.approx(float(expected))


def test_many_units_are_sampled_and_p_is_never_zero():
    p = sign_flip_p(np.ones(40))
    assert 0 < p <= 2e-4
    assert math.isnan(sign_flip_p([]))


def test_the_smallest_p_follows_from_the_number_of_units():
    for n in (2, 5, 8):
        assert sign_flip_p(np.arange(1, n + 1)) == find_smallest_attainable_p(n) == 2 / 2**n
    assert find_smallest_attainable_p(0) == 1.0


def test_paired_differences_come_with_effect_sizes():
    before = np.array([0.5, 0.6, 0.4, 0.7, 0.55])
    after = before - np.array([0.1, 0.12, 0.08, 0.1, 0.11])
    found = compare_pairs(before, after)
    assert found.difference.value == pytest.approx(-0.102)
    assert found.difference.excludes_zero
    changes = after - before
    assert found.effect_size == pytest.approx(changes.mean() / changes.std(ddof=1))
    assert found.rank_biserial == -1.0
    assert found.p_value == found.smallest_p == 2 / 2**5
    assert math.isnan(compare_pairs([0.5, 0.5], [0.5, 0.5]).effect_size)
    with pytest.raises(MetricError, match='not 2 and 1 units'):
        compare_pairs([1, 2], [1])


def test_rank_biserial_agrees_with_wilcoxons_statistic():
    changes = np.array([0.3, -0.1, 0.2, 0.5, -0.4, 0.25])
    found = compare_pairs(np.zeros(6), changes)
    down = stats.wilcoxon(changes).statistic
    total = 6 * 7 / 2
    assert abs(found.rank_biserial) == pytest.approx(1 - 2 * down / total)


def test_holm_agrees_with_a_worked_example():
    # Holm's step-down: 0.01*4, max(0.02*3, .), max(0.03*2, .), max(0.04, .).
    found = adjust_by_holm({'d': 0.04, 'a': 0.01, 'c': 0.03, 'b': 0.02})
    assert found == pytest.approx({'d': 0.06, 'a': 0.04, 'c': 0.06, 'b': 0.06})


def test_eight_scenes_and_seven_contrasts_are_not_tested_but_twenty_two_are():
    def contrasts(scenes, count):
        rng = np.random.default_rng(0)
        base = rng.random(scenes)
        return {str(i): compare_pairs(base, base - 0.1 - 0.01 * i) for i in range(count)}

    assert correct_tests(contrasts(8, 7)) is None
    assert correct_tests({}) is None
    tested = correct_tests(contrasts(22, 7))
    assert tested is not None
    assert all(p < 0.05 for p in tested.values())


def test_robustness_is_the_change_relative_to_the_reference():
    found = relative_change([0.4, 0.6, 0.5], [0.2, 0.3, 0.25])
    assert (found.value, found.low, found.high) == pytest.approx((-0.5, -0.5, -0.5))
    assert math.isnan(relative_change([0.0, 0.0], [0.1, 0.2]).value)
    paired = relative_change([0.4, math.nan, 0.6], [0.4, 0.1, 0.6])
    assert (paired.value, paired.n) == (0.0, 2)


@pytest.mark.parametrize(('hits', 'total'), [(0, 5), (5, 5), (3, 10), (70, 184), (1, 1)])
@pytest.mark.parametrize('level', [0.9, 0.95])
def test_the_wilson_interval_is_scipys(hits, total, level):
    other = stats.binomtest(hits, total).proportion_ci(level, method='wilson')
    found = wilson_interval(hits, total, level=level)
    assert found == pytest.approx((other.low, other.high), abs=1e-9)


def test_no_samples_give_no_proportion():
    assert np.isnan(wilson_interval(0, 0)).all()
