"""Text features from files, and a text tower that is not installed."""

import importlib.util
import json

import numpy as np
import pytest

from osmabench_ros.errors import ConfigError, MissingDependencyError
from osmabench_ros.language.embedding import OpenClipEmbedder, PrecomputedEmbedder


def write(path, features, texts):
    np.save(path, features)
    path.with_suffix('.json').write_text(json.dumps(texts))


def test_rows_come_back_normalised_and_by_text(tmp_path):
    path = tmp_path / 'clip.npy'
    write(path, np.array([[3.0, 4.0], [0.0, 2.0]]), ['chair', 'table'])
    embedder = PrecomputedEmbedder(path)
    np.testing.assert_allclose(embedder.embed(['table', 'chair']), [[0, 1], [0.6, 0.8]])
    with pytest.raises(ConfigError, match='lack "lamp"'):
        embedder.embed(['chair', 'lamp'])


@pytest.mark.parametrize(
    ('features', 'texts', 'fault'),
    [
        (np.zeros((2, 3)), ['a', 'b'], 'zero'),
        (np.ones((2, 3)), ['a'], 'one text'),
        (np.ones(3), ['a', 'b', 'c'], 'one text'),
        (np.full((1, 2), np.nan), ['a'], 'not finite'),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, features, texts, fault):
    path = tmp_path / 'clip.npy'
    write(path, features, texts)
    with pytest.raises(ConfigError, match=rf'clip\.npy.*{fault}'):
        PrecomputedEmbedder(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r'nothing\.npy'):
        PrecomputedEmbedder(tmp_path / 'nothing.npy')


@pytest.mark.skipif(
    importlib.util.find_spec('open_clip') is not None, reason='open_clip is installed'
)
def test_a_missing_text_tower_names_the_remedy():
    with pytest.raises(MissingDependencyError, match='need open_clip'):
        OpenClipEmbedder('ViT-H-14', 'laion2b_s32b_b79k')
