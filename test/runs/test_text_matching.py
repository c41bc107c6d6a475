"""Which encoder serves which map; only the last tests load the sentence embedder."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from support.libraries import needs_embedder
from support.world.maps import captioned_map, featured_map, labelled_map, write_text_features

from osmabench_ros.errors import ConfigError
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.runs import open_vocabulary
from osmabench_ros.runs.open_vocabulary import OpenVocabularyLabeller
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode

pytestmark = pytest.mark.xdist_group('sentence embedder')

AXES = {'chair': [1.0, 0, 0], 'floor': [0, 1.0, 0], 'table': [0, 0, 1.0]}
NAMES = ['table', 'chair', 'floor']


@pytest.fixture
def file(tmp_path):
    return write_text_features(tmp_path / 'toys.npy', AXES)


@pytest.fixture(autouse=True)
def no_open_clip(monkeypatch):
    monkeypatch.setattr(open_vocabulary, 'find_spec', lambda name: None)


@pytest.mark.parametrize('key', ['ToyCLIP/toys', 'ToyCLIP', 'clip'])
def test_points_are_labelled_by_the_file_named_for_their_encoder(key, file):
    text = OpenVocabularyLabeller(featured_map(), {key: file})
    indices = text.labeller(featured_map(), NAMES)
    assert indices.tolist() == [1] * 100 + [2] * 100 + [0] * 100
    assert text.encoders == {
        'map:clip': 'ToyCLIP/toys',
        'labels': 'ToyCLIP/toys from file toys.npy',
    }


def test_a_point_without_a_feature_has_no_label(file):
    source = featured_map()
    rows = np.where(np.arange(300) < 5, -1, source.dense.feature_rows).astype(np.int32)
    holed = replace(source, dense=replace(source.dense, feature_rows=rows))
    text = OpenVocabularyLabeller(holed, {'clip': file})
    assert text.labeller(holed, NAMES)[:6].tolist() == [-1] * 5 + [1]


def test_templates_of_the_space_are_filled_normalised_and_averaged(tmp_path):
    texts = {'a chair': [1.0, 0, 0], 'one chair': [0, 5.0, 0]}
    file = write_text_features(tmp_path / 'toys.npy', texts)
    source = featured_map(templates=('a {}', 'one {}'))
    text = OpenVocabularyLabeller(source, {'clip': file})
    features = text.text_encoder(source.feature_spaces['clip'], ['chair'])
    np.testing.assert_allclose(features, [[np.sqrt(0.5), np.sqrt(0.5), 0]], rtol=1e-6)
    assert text.encoders['prompts'] == 'ToyCLIP/toys from file toys.npy'


def test_plain_names_in_a_file_are_taken_as_averaged_already(file):
    source = featured_map(templates=('a {}', 'one {}'))
    text = OpenVocabularyLabeller(source, {'clip': file})
    features = text.text_encoder(source.feature_spaces['clip'], ['table', 'chair'])
    np.testing.assert_array_equal(features, [[0, 0, 1], [1, 0, 0]])


def test_text_of_another_encoder_is_refused(tmp_path):
    file = write_text_features(tmp_path / 'toys.npy', {name: [1.0, 2.0] for name in NAMES})
    text = OpenVocabularyLabeller(featured_map(), {'clip': file})
    assert text.labeller is not None
    with pytest.raises(ConfigError, match='toys have 2 dimensions, feature space "clip".* has 3'):
        text.labeller(featured_map(), NAMES)


def test_a_map_whose_encoder_is_not_here_is_not_labelled_and_says_why():
    text = OpenVocabularyLabeller(featured_map(), {})
    assert text.labeller is None
    assert text.text_encoder is None
    assert text.encoders['map:clip'].startswith('ToyCLIP/toys (not here: install open-clip-torch')


def test_features_that_text_cannot_be_compared_with_are_left_alone(file):
    text = OpenVocabularyLabeller(featured_map(text_comparable=False), {'clip': file})
    assert text.labeller is None
    assert text.text_encoder is None
    assert text.encoders == {'map:clip': 'ToyCLIP/toys'}


FAKE_OPEN_CLIP = SimpleNamespace(list_models=lambda: ['ToyCLIP'])


@pytest.mark.parametrize(
    ('model', 'pretrained', 'able'),
    [('ToyCLIP', 'toys', True), ('SEEM', 'toys', False), ('ToyCLIP', '', False)],
)
def test_open_clip_serves_only_models_it_has_with_named_weights(
    model, pretrained, able, monkeypatch
):
    monkeypatch.setattr(open_vocabulary, 'find_spec', lambda name: object())
    monkeypatch.setattr(open_vocabulary, 'import_module', lambda name: FAKE_OPEN_CLIP)
    text = OpenVocabularyLabeller(featured_map(model=model, pretrained=pretrained), {})
    assert (text.labeller is not None) is able
    assert ('not here' in text.encoders['map:clip']) is not able


def test_weights_that_cannot_be_loaded_are_named(monkeypatch):
    monkeypatch.setattr(open_vocabulary, 'find_spec', lambda name: object())
    monkeypatch.setattr(open_vocabulary, 'import_module', lambda name: FAKE_OPEN_CLIP)
    broken = Mock(side_effect=RuntimeError('no weights "toys"'))
    monkeypatch.setattr(open_vocabulary, 'OpenClipEmbedder', broken)
    text = OpenVocabularyLabeller(featured_map(), {})
    assert text.labeller is not None
    with pytest.raises(ConfigError, match=r'ToyCLIP/toys of feature space "clip".*no weights'):
        text.labeller(featured_map(), NAMES)


def test_nothing_is_loaded_for_a_map_with_labels(monkeypatch):
    def fail(*_):
        raise AssertionError('loaded')

    monkeypatch.setattr(SentenceEmbedder, '_model', property(fail))
    text = OpenVocabularyLabeller(labelled_map(), {})
    assert text.labeller is None
    assert text.text_encoder is None
    assert text.encoders == {}


@needs_embedder
def test_points_take_the_class_that_the_caption_of_their_node_is_most_like():
    source = captioned_map()
    text = OpenVocabularyLabeller(source, {})
    assert text.labeller(source, NAMES).tolist() == [1] * 100 + [2] * 100 + [0] * 100
    assert text.encoders == {'labels': 'all-MiniLM-L6-v2 on captions'}


@needs_embedder
def test_points_whose_node_has_no_caption_get_no_label():
    source = captioned_map()
    first, *others = source.graph.nodes
    graph = replace(source.graph, nodes=(replace(first, captions=()), *others))
    text = OpenVocabularyLabeller(replace(source, graph=graph), {})
    assert text.labeller(replace(source, graph=graph), NAMES)[:101].tolist() == [-1] * 100 + [2]


@needs_embedder
def test_similarity_is_a_cosine_and_names_its_encoder():
    text = OpenVocabularyLabeller(labelled_map(), {})
    assert text.similarity('couch', 'couch') == pytest.approx(1.0, abs=1e-6)
    assert text.similarity('couch', 'sofa') > 0.6 > text.similarity('couch', 'ceiling lamp')
    assert text.encoders == {'similarity': 'all-MiniLM-L6-v2'}


def test_nodes_are_named_by_their_own_features_best_first(file):
    features = np.array([[1, 0, 0], [0.1, 1, 0.5], [0, 0, 0], [0, 0, 1]], np.float32)
    nodes = tuple(
        SceneNode(i + 1, feature_row=None if i == 3 else i, feature_space='clip') for i in range(4)
    )
    source = featured_map()
    space = replace(source.feature_spaces['clip'], vectors=features)
    source = replace(source, graph=SceneGraph(nodes), dense=None, feature_spaces={'clip': space})
    text = OpenVocabularyLabeller(source, {'clip': file})
    assert text.labeller is None
    ranked = text.node_labeller(source, NAMES)
    assert {key: [index for index, _ in own] for key, own in ranked.items()} == {
        1: [1, 0, 2],
        2: [2, 0, 1],
    }
    assert ranked[1][0][1] == pytest.approx(1.0)
    assert text.encoders['node_labels'] == 'ToyCLIP/toys from file toys.npy'


def test_nodes_without_features_or_captions_cannot_be_named(file):
    assert OpenVocabularyLabeller(labelled_map(), {}).node_labeller is None
    assert OpenVocabularyLabeller(featured_map(), {'clip': file}).node_labeller is None


@needs_embedder
def test_nodes_are_named_by_their_captions():
    source = replace(captioned_map(), dense=None)
    text = OpenVocabularyLabeller(source, {})
    assert text.labeller is None
    ranked = text.node_labeller(source, NAMES)
    assert {key: NAMES[own[0][0]] for key, own in ranked.items()} == {
        1: 'chair',
        2: 'floor',
        3: 'table',
    }
    assert text.encoders == {'node_labels': 'all-MiniLM-L6-v2 on captions'}
