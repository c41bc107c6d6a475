from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, TABLE, write_cloud, write_openscene, z_up

from osmabench_ros.errors import MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.openscene import import_map

POINTS = np.concatenate([CHAIR, TABLE])
DEFAULT = ImportOptions()


def check(directory: Path, features: np.ndarray, seen: np.ndarray, out: Path) -> None:
    """Check points, rows and validity of an imported folder."""
    made = import_map(directory, DEFAULT)
    dense = made.dense
    assert dense is not None
    assert dense.feature_rows is not None
    assert made.graph.nodes == ()
    np.testing.assert_allclose(dense.points, z_up(POINTS), rtol=1e-6)
    np.testing.assert_array_equal(dense.feature_rows >= 0, seen)
    np.testing.assert_array_equal(dense.valid, seen)
    space = made.feature_spaces['clip']
    assert space.templates == ('a {} in a scene',)
    np.testing.assert_allclose(space.vectors[dense.feature_rows[seen]], features[seen])
    write_map(made, out)
    assert read_map(out).dense is not None


def test_the_fork_s_predictions_are_read(tmp_path: Path) -> None:
    features = write_openscene(tmp_path / 'in')
    check(tmp_path / 'in', features, (features != 0).any(axis=1), tmp_path / 'map')


@pytest.mark.parametrize('scene_file', ['scene.pth', 'scene.ply'])
def test_fused_features_are_read(tmp_path: Path, scene_file: str) -> None:
    torch = pytest.importorskip('torch')
    random = np.random.default_rng(2)
    mask = random.random(len(POINTS)) < 0.7
    features = random.normal(size=(len(POINTS), 768)).astype(np.float16)
    folder = tmp_path / 'in'
    folder.mkdir()
    fused = {'feat': torch.from_numpy(features[mask]), 'mask_full': torch.from_numpy(mask)}
    torch.save(fused, folder / 'scene_0.pt')
    if scene_file == 'scene.pth':
        colors = np.full(POINTS.shape, -1.0, np.float32)
        torch.save((POINTS, colors, np.zeros(len(POINTS))), folder / scene_file)
        made = import_map(folder, DEFAULT)
        assert made.dense is not None
        assert made.dense.colors is not None
        assert (made.dense.colors == 0).all()
    else:
        write_cloud(folder / scene_file, POINTS)
    check(folder, features, mask, tmp_path / 'map')


def test_predictions_for_other_points_are_refused(tmp_path: Path) -> None:
    write_openscene(tmp_path)
    write_cloud(tmp_path / 'gt.ply', CHAIR)
    with pytest.raises(MapError, match=r'\(100, 768\) for 100 points, .* has 40 points'):
        import_map(tmp_path, DEFAULT)


def test_a_mask_that_does_not_fit_its_features_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip('torch')
    torch.save({'feat': torch.ones(3, 4), 'mask_full': torch.ones(5).bool()}, tmp_path / 'a_0.pt')
    write_cloud(tmp_path / 'a.ply', POINTS[:5])
    with pytest.raises(MapError, match='marks 5 points'):
        import_map(tmp_path, DEFAULT)
