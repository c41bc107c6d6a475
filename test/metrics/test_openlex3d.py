import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics import similarity as similarity_module
from osmabench_ros.metrics import tiers
from osmabench_ros.metrics.nearest_neighbours import Neighbours
from osmabench_ros.metrics.openlex3d import (
    PointFeatures,
    SetRanking,
    list_category_shares,
    score_boxes,
    set_ranking,
    top_n_frequency,
)
from osmabench_ros.metrics.similarity import (
    CosineTable,
    cosine_similarity,
    find_best_prompts,
    rank_prompts,
    rank_rows,
)

# Scores of the published code for ranks against the box [3, 5] of 12 prompts.
GOLDENS = [
    ({0, 3, 4}, 0.666667),
    ({3, 4, 11}, 0.666667),
    ({1, 3, 4}, 0.777778),
    ({2, 3, 4}, 0.888889),
    ({3, 4, 5}, 1.0),
    ({3, 4, 6}, 0.944444),
]

PROMPTS = ['sofa', 'couch', 'flower', 'bed', 'coffee table', 'lamp', 'wall']
LABELS = tiers.collect_tiers(
    [
        tiers.TieredObject(1, ('sofa', 'couch'), ('flower',), ('bed',), (2,)),
        tiers.TieredObject(2, ('coffee table',), (), (), (1,)),
        tiers.TieredObject(3, ('wall', 'sofa')),
        tiers.TieredObject(4, ()),
    ]
)


@pytest.mark.parametrize(('ranks', 'expected'), GOLDENS)
def test_box_scores_are_the_published_ones(ranks, expected):
    found = score_boxes(np.array(sorted(ranks)), 3, 5, 11)
    assert found.score.mean() == pytest.approx(expected, abs=1e-6)


def test_the_table_takes_the_best_category_and_ignores_spaces():
    table = LABELS.table(np.array([1, 2, 3, 4, 99]), PROMPTS)
    assert table[0].tolist() == [0, 0, 1, 2, 3, 5, 5]
    assert table[1].tolist() == [3, 3, 3, 3, 0, 5, 5]
    assert (table[2:] == tiers.WordCategory.NONE).all()
    assert LABELS.table(np.array([2]), ['coffeetable', 'Coffee table'])[0].tolist() == [0, 5]


def features(ids, rows, far=[]):  # noqa: B006
    distances = np.where(np.isin(np.arange(len(ids)), far), 1.0, 0.01)
    return PointFeatures(np.array(ids), np.array(rows), distances)


def test_a_point_without_feature_is_missing_but_published_code_took_the_last():
    best = np.array([[5], [0]])
    points = features([1, 1], [-1, 0])
    strict = top_n_frequency(points, best, LABELS, PROMPTS)
    assert (strict[tiers.WordCategory.MISSING], strict[tiers.WordCategory.INCORRECT]) == (0.5, 0.5)
    compat = top_n_frequency(points, best, LABELS, PROMPTS, compat=True)
    assert (compat[tiers.WordCategory.SYNONYM], compat[tiers.WordCategory.INCORRECT]) == (0.5, 0.5)
    nothing = top_n_frequency(points, best[:0], LABELS, PROMPTS)
    assert nothing[tiers.WordCategory.MISSING] == 1.0
    unscored = top_n_frequency(features([4], [0]), best, LABELS, PROMPTS)
    assert all(math.isnan(value) for value in unscored.values())


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([10, 50]), st.sampled_from([1, 10**6]))
def test_frequencies_are_means_over_objects_of_shares_of_their_points(seed, n, apart):
    rng = np.random.default_rng(seed)
    # Ids that lie apart, and fewer points than objects with features, are counted otherwise.
    ids, rows = rng.integers(1, 6, n), rng.integers(0, 8, n)
    ids = np.where(ids == 5, 5 * apart, ids)
    distances = rng.random(n) * 0.1
    best = rng.integers(0, len(PROMPTS), (8, 3))
    found = top_n_frequency(PointFeatures(ids, rows, distances), best, LABELS, PROMPTS)
    kinds = np.take_along_axis(LABELS.table(ids, PROMPTS), best[rows], axis=1).min(axis=1)
    kinds = pd.Series(np.where(distances > 0.05, tiers.WordCategory.MISSING, kinds))
    scored = np.isin(ids, (1, 2))
    for category, value in found.items():
        if scored.any():
            shares = (kinds[scored] == category).groupby(ids[scored]).mean()
            assert value == pytest.approx(shares.mean())
    assert [name for name, _ in list_category_shares(found)][:2] == ['synonym', 'depiction']


def test_ranks_agree_with_sorting():
    rng = np.random.default_rng(0)
    vectors, prompts = rng.normal(size=(20, 16)), rng.normal(size=(30, 16))
    similarity = cosine_similarity(vectors, prompts, device='cpu')
    np.testing.assert_allclose(similarity, 1 - cdist(vectors, prompts, 'cosine'), atol=1e-6)
    expected = rankdata(-similarity, 'ordinal', axis=1)[:, [3, 17]] - 1
    np.testing.assert_array_equal(rank_prompts(similarity, np.array([3, 17])), expected)
    assert rank_prompts(np.ones((1, 4)), np.array([2])).tolist() == [[2]]


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_of_equal_prompts_the_first_is_the_best(seed, n):
    rng = np.random.default_rng(seed)
    # Axes and features of zeros and ones: many prompts are exactly equally similar.
    prompts = np.eye(4)[rng.integers(0, 4, 6)]
    vectors = rng.integers(0, 2, (20, 4)).astype(float)
    order = np.argsort(-cosine_similarity(vectors, prompts, device='cpu'), axis=1, kind='stable')
    np.testing.assert_array_equal(
        find_best_prompts(vectors, prompts, n, device='cpu'), order[:, :n]
    )


def test_a_table_of_cosines_gives_the_same_ranks_in_chunks(monkeypatch):
    rng = np.random.default_rng(1)
    vectors, prompts = rng.normal(size=(20, 16)), rng.normal(size=(30, 16))
    table = CosineTable(vectors, prompts, device='cpu')
    whole = cosine_similarity(vectors, prompts, device='cpu')
    rows, wanted = np.array([19, 3, 3, 7, 0]), np.array([3, 17])
    expected = rank_prompts(whole[rows], wanted)
    monkeypatch.setattr(similarity_module, '_ELEMENTS_PER_CHUNK', 60)
    assert table.shape == (20, 30)
    np.testing.assert_array_equal(rank_rows(table, rows, wanted), expected)
    np.testing.assert_array_equal(rank_rows(whole, rows, wanted), expected)
    np.testing.assert_allclose(cosine_similarity(vectors, prompts, device='cpu'), whole, atol=1e-6)


def ranked(*order):
    """Return similarities that rank the prompts in this order."""
    similarity = np.zeros(len(PROMPTS))
    similarity[list(order)] = np.arange(len(order), 0, -1)
    return similarity


def test_a_perfect_order_scores_one_and_is_all_inliers():
    similarity = np.stack([ranked(0, 1, 2, 3, 4, 5, 6)])
    found = set_ranking(features([1, 1], [0, 0]), similarity, LABELS, PROMPTS)
    assert (found.overall, found.synonyms, found.secondary, found.over_points) == (1, 1, 1, 1)
    assert (found.synonym_inlier_rate, found.secondary_inlier_rate) == (1, 1)
    assert math.isnan(found.synonym_undershooting)
    assert found.objects == 1


def test_set_ranking_by_hand():
    # lamp first: sofa 1 and couch 2 against [0, 1], flower 3 and bed 4 against [2, 3], last = 6.
    similarity = np.stack([ranked(5, 0, 1, 2, 3, 4, 6)])
    found = set_ranking(features([1], [0]), similarity, LABELS, PROMPTS)
    assert found.synonyms == pytest.approx((1 + (1 - 1 / 5)) / 2)
    assert found.secondary == pytest.approx((1 + (1 - 1 / 3)) / 2)
    assert found.overall == pytest.approx((found.synonyms + found.secondary) / 2)
    assert found.synonym_undershooting == pytest.approx(1 - 1 / 5)
    assert found.secondary_undershooting == pytest.approx(1 - 1 / 3)
    assert math.isnan(found.secondary_overshooting)
    assert found.synonym_inlier_rate == 0.5


def test_published_set_ranking_keeps_the_last_point_and_ignores_gate_and_walls():
    good, bad = ranked(0, 1, 2, 3, 4, 5, 6), ranked(6, 5, 4, 3, 2, 1, 0)
    similarity = np.stack([good, bad])
    points = features([1, 1, 1], [1, 1, 0], far=[0])
    strict = set_ranking(points, similarity, LABELS, PROMPTS)
    compat = set_ranking(points, similarity, LABELS, PROMPTS, compat=True)
    assert strict.synonym_inlier_rate == pytest.approx((0 + 0 + 1) / 3)
    assert compat.synonym_inlier_rate == 1.0
    assert compat.overall > strict.overall
    walls = features([3], [0])
    assert set_ranking(walls, similarity, LABELS, PROMPTS).objects == 0
    assert set_ranking(walls, similarity, LABELS, PROMPTS, compat=True).objects == 1


def test_over_points_weighs_objects_by_their_points():
    good, bad = ranked(0, 1, 2, 3, 4, 5, 6), ranked(6, 5, 3, 2, 1, 0, 4)
    points = features([1, 1, 1, 2], [0, 0, 0, 1])
    found = set_ranking(points, np.stack([good, bad]), LABELS, PROMPTS)
    assert found.overall == pytest.approx(0.5)
    assert found.over_points == pytest.approx(0.75)


def test_missing_points_count_as_zero_and_coverage_stands_beside():
    similarity = np.stack([ranked(0, 1, 2, 3, 4, 5, 6)])
    # Two of four points are near a feature, one of which has none.
    points = features([1, 1, 1, 1, 2], [0, 0, -1, 0, 0], far=[1, 4])
    found = set_ranking(points, similarity, LABELS, PROMPTS)
    assert (found.objects, found.coverage) == (2, (2 / 4 + 0) / 2)
    assert found.overall == (2 / 4 + 0) / 2
    assert found.over_points == 2 / 5
    assert found.secondary == 2 / 4
    assert found.synonym_inlier_rate == (2 / 4 + 0) / 2
    assert found.synonym_undershooting == 0
    compat = set_ranking(points, similarity, LABELS, PROMPTS, compat=True)
    assert (compat.synonym_inlier_rate, compat.coverage) == (0.5, found.coverage)
    nothing = set_ranking(features([1], [-1]), similarity, LABELS, PROMPTS)
    assert (nothing.overall, nothing.objects, nothing.coverage) == (0, 1, 0)


_RANKING = [name for name in SetRanking.__dataclass_fields__ if name != 'objects']


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_map_with_fewer_points_never_gains_in_set_ranking(seed, share):
    rng = np.random.default_rng(seed)
    ids, rows = rng.integers(1, 5, 40), rng.integers(-1, 6, 40)
    similarity = rng.normal(size=(6, len(PROMPTS)))
    whole = set_ranking(PointFeatures(ids, rows, np.zeros(40)), similarity, LABELS, PROMPTS)
    away = np.where(rng.random(40) < share, 1.0, 0.0)
    thinned = set_ranking(PointFeatures(ids, rows, away), similarity, LABELS, PROMPTS)
    assert thinned.objects == whole.objects
    for name in _RANKING:
        before, after = getattr(whole, name), getattr(thinned, name)
        assert math.isnan(before) or after <= before + 1e-12, name


def test_tiers_survive_a_file_and_malformed_ones_are_named(tmp_path):
    path = tmp_path / 'gt_categories.json'
    tiers.write_tiers(LABELS, path)
    again = tiers.read_tiers(path)
    assert dict(again.objects) == dict(LABELS.objects)
    assert not again.machine_made
    assert json.loads(path.read_text())['dataset']['samples'][0]['labels']['image_attributes'][
        'clutter'
    ] == ['2']
    path.write_text('{"dataset": {"samples": [{"object_id": 1}]}}')
    with pytest.raises(MetricError, match=r'samples\[0\]'):
        tiers.read_tiers(path)
    with pytest.raises(MetricError, match='does not exist'):
        tiers.read_tiers(tmp_path / 'missing.json')


def test_features_of_another_encoder_are_refused():
    with pytest.raises(MetricError, match='512 dimensions, prompts 768'):
        cosine_similarity(np.zeros((1, 512)), np.zeros((1, 768)), device='cpu')
    with pytest.raises(MetricError, match='NaN'):
        cosine_similarity(np.full((1, 4), np.nan), np.ones((1, 4)), device='cpu')
    with pytest.raises(MetricError, match='best 3'):
        find_best_prompts(np.ones((1, 4)), np.ones((2, 4)), 3, device='cpu')
    near = Neighbours(np.array([1, -1]), np.zeros(2, np.float32))
    assert PointFeatures.of(np.array([1, 1]), near, np.array([7, 8])).rows.tolist() == [8, -1]
    with pytest.raises(MetricError, match='differ in shape'):
        PointFeatures(np.zeros(2), np.zeros(3, np.int64), np.zeros(2))
