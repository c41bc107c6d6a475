from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP

from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import LimitError, MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.conceptfusion import import_map

h5py = pytest.importorskip('h5py')
EMBEDDINGS = np.tile(CLIP, (14, 1))[: len(CHAIR)].astype(np.float16)


def write(folder: Path, **parts: np.ndarray) -> None:
    """Write parts as gradslam's save_pointcloud_to_h5 does."""
    folder = folder / 'pointclouds'
    folder.mkdir(parents=True)
    for name, array in parts.items():
        with h5py.File(folder / f'pc_{name}.h5', 'w') as file:
            file.create_dataset(f'pc_{name}', data=array)


def test_points_come_out_z_up_with_a_feature_each(tmp_path: Path) -> None:
    embeddings = EMBEDDINGS.copy()
    embeddings[3] = 0
    write(
        tmp_path / 'in',
        points=CHAIR.astype(np.float32),
        colors=np.full(CHAIR.shape, 200.0, np.float32),
        features=np.ones((len(CHAIR), 4), np.float32),
        embeddings=embeddings,
        confidences=np.full((len(CHAIR), 1), 2.0, np.float32),
    )
    write_map(import_map(tmp_path / 'in', ImportOptions()), tmp_path / 'map')
    made = read_map(tmp_path / 'map')
    assert made.dense is not None
    assert made.dense.feature_rows is not None
    expected = np.stack([CHAIR[:, 2], -CHAIR[:, 0], -CHAIR[:, 1]], axis=1)
    np.testing.assert_allclose(made.dense.points, expected, rtol=1e-6)
    assert made.dense.colors is not None
    assert (made.dense.colors == 200).all()
    np.testing.assert_array_equal(made.dense.feature_rows < 0, np.arange(len(CHAIR)) == 3)
    rows = made.feature_spaces['clip'].vectors[made.dense.feature_rows]
    np.testing.assert_allclose(rows[5], EMBEDDINGS[5])
    np.testing.assert_array_equal(made.dense.scores, 2)


def test_the_world_can_be_told(tmp_path: Path) -> None:
    write(tmp_path, points=CHAIR, embeddings=EMBEDDINGS)
    made = import_map(tmp_path / 'pointclouds', ImportOptions(world=World.Z_UP))
    assert made.dense is not None
    np.testing.assert_allclose(made.dense.points, CHAIR, rtol=1e-6)
    assert made.dense.colors is None


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write(tmp_path, points=CHAIR, embeddings=EMBEDDINGS[:5])
    with pytest.raises(MapError, match=r'pc_embeddings\.h5 has 5 rows for 40 points'):
        import_map(tmp_path, ImportOptions())


def _outside(folder: Path, file: Any, name: str) -> None:
    file.create_dataset(
        name, (3, 3), np.float32, external=[(str(folder / 'secret.bin'), 0, h5py.h5f.UNLIMITED)]
    )


def _elsewhere(folder: Path, file: Any, name: str) -> None:
    file[name] = h5py.ExternalLink(str(folder / 'secret.h5'), name)


def _empty_giant(folder: Path, file: Any, name: str) -> None:
    file.create_dataset(name, (600_000_000, 3), np.float32, chunks=(1000, 3))


def _bomb(folder: Path, file: Any, name: str) -> None:
    file.create_dataset(name, data=np.zeros((3_000_000, 3), np.float32), compression='gzip')


@pytest.mark.parametrize(
    ('make', 'text'),
    [
        (_outside, 'are in other files'),
        (_elsewhere, 'a link'),
        (_empty_giant, 'MiB of memory'),
        (_bomb, 'MiB of memory'),
    ],
)
def test_hostile_files_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path, Any, str], None],
    text: str,
) -> None:
    with h5py.File(tmp_path / 'secret.h5', 'w') as secret:
        secret['pc_points'] = np.ones((3, 3), np.float32)
    (tmp_path / 'secret.bin').write_bytes(bytes(36))
    write(tmp_path, embeddings=EMBEDDINGS[:3])
    with h5py.File(tmp_path / 'pointclouds' / 'pc_points.h5', 'w') as file:
        make(tmp_path, file, 'pc_points')
    monkeypatch.setenv(VARIABLE, '0.05')
    with pytest.raises((MapError, LimitError), match=text):
        import_map(tmp_path, ImportOptions())
