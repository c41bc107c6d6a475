"""The data of the 3D view of the page."""

import base64
import json
import zlib

import numpy as np
import pytest
from scipy.spatial import cKDTree

from osmabench_ros.reports.page.tables import build_confusion_tables
from osmabench_ros.reports.pictures.view_3d import LARGEST_CLOUD, read_three_js, select_per_voxel


@pytest.fixture(scope='module')
def space(html):
    start = html.index('id="space-data">') + len('id="space-data">')
    return json.loads(html[start : html.index('</script>', start)])


def array(text, kind):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)


def places(scene, cloud):
    steps = array(cloud['xyz'], '<u2').reshape(3, -1).T
    return np.array(scene['low']) + scene['step'] * steps


def test_points_are_those_of_the_surface_with_their_classes(space, truth):
    (scene,) = space['scenes'].values()
    points = places(scene, scene['cloud'])
    assert 1000 < len(points) <= LARGEST_CLOUD
    far, rows = cKDTree(truth.surface.points).query(points)
    assert far.max() < 2 * scene['step'] + 1e-3
    names = [scene['classes'][code][0] for code in array(scene['cloud']['classes'], '<u2')]
    true = [truth.label_set.name_of(int(label)) for label in truth.surface.labels[rows]]
    # Where two things touch, two points may be nearest.
    assert np.mean(np.array(names) == np.array(true)) > 0.999


def test_errors_of_the_points_and_of_frames_are_told(space):
    (scene,) = space['scenes'].values()
    count = len(places(scene, scene['cloud']))
    shares = {}
    for run in space['runs']:
        codes = array(run['errors']['codes'], 'u1')
        assert len(codes) == count + len(places(scene, run['errors']))
        right = float(np.mean(codes[:count] == 0))
        of_frames = [frame['shares'] for frame in run['frames'] if 'shares' in frame]
        assert np.allclose(np.sum(of_frames, axis=1), 1, atol=1e-3)
        shares[run['title'].split()[0]] = (right, float(np.mean(of_frames, axis=0)[0]))
    assert min(shares['oracle']) > 0.9
    assert all(a > b for a, b in zip(shares['oracle'], shares['noisy_oracle'], strict=True))


def test_a_thinned_cloud_is_small_and_spread():
    points = np.random.default_rng(0).uniform(0, 4, (50_000, 3)) * (1, 1, 0)
    rows, edge_m = select_per_voxel(points, 2000)
    assert 1000 < len(rows) <= 2000
    gaps = cKDTree(points[rows]).query(points)[0]
    assert gaps.max() < 2.9 * edge_m


def test_the_library_is_whole_and_without_the_viewer():
    text = read_three_js()
    assert 'Three.js Authors' in text[:200]
    assert '$B64GLTF' not in text
    assert '</script' not in text


def test_rows_of_the_confusion_table_are_shares_of_the_class(runs, truth):
    tables = build_confusion_tables(runs, {runs[0].scene: truth.label_set})
    assert list(tables) == ['oracle · baseline', 'noisy_oracle · baseline']
    for table in tables.values():
        assert table.sum(axis=1).to_numpy() == pytest.approx(100)
    table = tables['oracle · baseline']
    own = [table.loc[name, name] for name in table.index]
    recorded = {
        name: record.value
        for (suite, mode, metric, name), record in runs[0].records.items()
        if (suite, mode, metric) == ('osma_segmentation', 'strict', 'class_accuracy')
    }
    assert own == pytest.approx([100 * recorded[name] for name in table.index])
