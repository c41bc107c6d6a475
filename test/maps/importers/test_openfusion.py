from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP

from osmabench_ros.errors import MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.openfusion import import_map

KEYS = np.zeros((5, 16), np.int64)
KEYS[1, :10], KEYS[3, 4:14] = 1, 2
COORDINATES = np.zeros((5, 16, 3), np.float32)
COORDINATES[1, :10], COORDINATES[3, 4:14] = CHAIR[:10], CHAIR[10:20]


def write(path: Path, **changes: object) -> None:
    """Write the .npz of VLState.save: Open3D's voxel blocks and the embeddings beside them."""
    arrays = {
        'intrinsic': np.eye(3),
        'extrinsic': np.tile(np.eye(4), (7, 1, 1)),
        'emb_keys': KEYS,
        'emb_confs': np.full(KEYS.shape, 0.5, np.float32),
        'emb_coords': COORDINATES,
        'emb_dict': CLIP[:, :512],
        'emb_count': np.ones(3, np.float32),
        'voxel_size': np.array([5.0 / 512]),
    }
    np.savez(
        path, **{name: array for name, array in {**arrays, **changes}.items() if array is not None}
    )


def test_points_of_interest_come_out_with_their_embeddings(tmp_path: Path) -> None:
    write(tmp_path / 'room.npz')
    write_map(import_map(tmp_path / 'room.npz', ImportOptions()), tmp_path / 'map')
    made = read_map(tmp_path / 'map')
    assert made.dense is not None
    np.testing.assert_allclose(made.dense.points, CHAIR[:20], rtol=1e-6)
    assert made.dense.feature_rows is not None
    assert made.dense.feature_rows.tolist() == [1] * 10 + [2] * 10
    np.testing.assert_array_equal(made.dense.scores, 0.5)
    assert made.feature_spaces['seem'].vectors.shape == (3, 512)
    assert made.extras['camera_poses'] == 7


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'emb_keys': KEYS + 2}, 'beyond the 3 rows'),
        ({'emb_keys': KEYS[:2]}, '32 keys, 80 coordinates'),
        ({'emb_dict': None}, 'lacks emb_dict'),
        ({'emb_dict': np.array([{}], object)}, 'cannot be read'),
    ],
)
def test_malformed_files_are_named(tmp_path: Path, changes: dict, message: str) -> None:
    write(tmp_path / 'room.npz', **changes)
    with pytest.raises(MapError, match=message):
        import_map(tmp_path, ImportOptions())
