"""Intervals and paired changes against other implementations."""

import numpy as np
import pytest
from scipy.stats import binomtest

from osmabench_ros.vqa.questions import AnswerType, Question, Verdict
from osmabench_ros.vqa.scores import paired_change, records, scene_bootstrap, wilson_interval


@pytest.mark.parametrize(('hits', 'total'), [(0, 5), (5, 5), (3, 10), (70, 184), (1, 1)])
def test_the_wilson_interval_is_scipys(hits, total):
    other = binomtest(hits, total).proportion_ci(method='wilson')
    assert wilson_interval(hits, total) == pytest.approx((other.low, other.high), abs=1e-9)


def test_the_scene_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        scenes = {str(i): (rng.random(40) < rng.normal(0.6, 0.1)).tolist() for i in range(20)}
        low, high = scene_bootstrap(scenes, resamples=400)
        covered += low <= 0.6 <= high
    assert 0.86 <= covered / 200 <= 0.99


def test_one_scene_falls_back_to_the_interval_of_a_proportion():
    assert scene_bootstrap({'a': [True, False, True]}) == wilson_interval(2, 3)


def test_a_paired_change_uses_shared_questions_only_and_is_tight():
    keys = [(f's{i // 100}', f'q{i}') for i in range(500)]
    before = {key: i % 2 == 0 for i, key in enumerate(keys)}
    after = {key: value and i % 10 != 0 for i, (key, value) in enumerate(before.items())}
    after['s0', 'new'] = True
    change, low, high, n = paired_change(before, after)
    assert n == 500
    assert change == pytest.approx(-0.1)
    assert low <= change <= high < 0
    assert high - low < 0.01, 'every scene loses the same'


def test_no_shared_question_gives_no_figure():
    change, low, high, n = paired_change({('a', 'q'): True}, {('b', 'q'): True})
    assert n == 0
    assert np.isnan([change, low, high]).all()


def test_unanswered_questions_lower_one_figure_and_not_the_other():
    asked = [Question(f'q{i}', 's', 'x', 'c', f't{i}', AnswerType.YES_NO, 'yes') for i in range(4)]
    verdicts = {
        'q0': Verdict('q0', True, 'j'),
        'q1': Verdict('q1', False, 'j'),
        'q2': Verdict('q2', False, 'j', answered=False),
    }
    found = {
        r.metric: r for r in records('s', '', 'accuracy', asked, verdicts) if not r.class_name
    }
    assert found['accuracy'].value == 0.25
    assert found['accuracy_answered'].value == 0.5
    assert found['unanswered'].value == 0.5
