from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP, CUP, gray, write_cloud
from support.libraries import Lazy, needs

from osmabench_ros.errors import MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.openmask3d import import_map

pytestmark = needs('torch')
torch = Lazy('torch')
POINTS = np.concatenate([CHAIR, CUP])
DEFAULT = ImportOptions()


def write(folder: Path, features: bool = True) -> np.ndarray:
    """Write three masks: the whole chair, a part of it, the cup; no mask covers the rest."""
    masks = np.zeros((len(POINTS), 3), np.float16)
    masks[:40, 0] = 1
    masks[10:25, 1] = 1
    masks[45:70, 2] = 1
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(masks, folder / 'scene_masks.pt')
    write_cloud(folder / 'scene.ply', POINTS, **gray(len(POINTS)))
    if features:
        vectors = CLIP[:3, :768].copy()
        vectors[2] = np.nan
        np.save(folder / 'scene_openmask3d_features.npy', vectors)
    return masks


def test_overlapping_masks_survive(tmp_path: Path) -> None:
    masks = write(tmp_path / 'in')
    write_map(import_map(tmp_path / 'in', DEFAULT), tmp_path / 'map')
    made = read_map(tmp_path / 'map')
    assert made.dense is not None
    assert made.dense.membership is not None
    assert made.dense.instances is not None
    for i in range(3):
        np.testing.assert_array_equal(
            made.dense.membership.points_of(i), np.flatnonzero(masks[:, i])
        )
    assert made.dense.instances[[0, 15, 42, 50]].tolist() == [1, 2, 0, 3]
    np.testing.assert_allclose(made.dense.points, POINTS, rtol=1e-6)


def test_a_mask_without_a_feature_has_none(tmp_path: Path) -> None:
    write(tmp_path)
    made = import_map(tmp_path, DEFAULT)
    assert [node.feature_row for node in made.graph.nodes] == [0, 1, None]
    assert made.dense is not None
    assert made.dense.feature_rows is not None
    assert made.dense.feature_rows[[0, 15, 42, 50]].tolist() == [0, 1, -1, -1]


def test_masks_without_features_are_read(tmp_path: Path) -> None:
    write(tmp_path, features=False)
    made = import_map(tmp_path, DEFAULT)
    assert made.feature_spaces == {}
    assert len(made.graph.nodes) == 3


def test_masks_of_another_cloud_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    write_cloud(tmp_path / 'scene.ply', CHAIR)
    with pytest.raises(MapError, match=r'masks \(80, 3\), .* has 40 points'):
        import_map(tmp_path, DEFAULT)


def test_features_of_other_masks_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    np.save(tmp_path / 'scene_openmask3d_features.npy', CLIP[:2])
    with pytest.raises(MapError, match='3 masks, but features for 2'):
        import_map(tmp_path, DEFAULT)
