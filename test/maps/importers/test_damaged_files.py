"""Damaged files of every method that is read from files: clear errors, whatever the damage."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from maps.importers import (
    test_conceptfusion,
    test_openfusion,
    test_openlex3d,
    test_openmask3d,
    test_ovo,
)
from maps.importers.method_files import (
    CHAIR,
    gray,
    write_ali_dev,
    write_bbq,
    write_cloud,
    write_conceptgraphs,
    write_hovsg_flat,
    write_hovsg_graph,
    write_openscene,
    write_rtabmap,
)

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.maps.importer import ImportOptions, import_map

DAMAGES = 20


def conceptfusion(folder: Path) -> None:
    test_conceptfusion.write(
        folder, points=CHAIR.astype(np.float32), embeddings=test_conceptfusion.EMBEDDINGS
    )


def openfusion(folder: Path) -> None:
    folder.mkdir()
    test_openfusion.write(folder / 'room.npz')


def ovo(folder: Path) -> None:
    folder.mkdir()
    test_ovo.write(folder)


def ali_dev(folder: Path) -> None:
    folder.mkdir()
    write_ali_dev(folder)


def pointcloud(folder: Path) -> None:
    write_cloud(folder / 'cloud.ply', CHAIR, instance=np.ones(len(CHAIR), np.int32), **gray(40))


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut data off, or change a few bytes, most of them where headers are."""
    if rng.random() < 0.25:
        return data[: rng.integers(0, len(data))]
    made = bytearray(data)
    end = len(made) if rng.random() < 0.4 else min(len(made), 400)
    for _ in range(rng.integers(1, 8)):
        made[rng.integers(0, end)] = rng.integers(0, 256)
    return bytes(made)


@pytest.mark.parametrize(
    ('method', 'write'),
    [
        ('conceptgraphs', write_conceptgraphs),
        ('conceptgraphs', ali_dev),
        ('bbq', write_bbq),
        ('openscene', write_openscene),
        ('hovsg', write_hovsg_graph),
        ('hovsg', write_hovsg_flat),
        ('openmask3d', test_openmask3d.write),
        ('conceptfusion', conceptfusion),
        ('ovo', ovo),
        ('openfusion', openfusion),
        ('openlex3d', test_openlex3d.write),
        ('pointcloud', pointcloud),
        ('rtabmap', write_rtabmap),
    ],
)
def test_damaged_files_load_or_are_refused_with_a_reason(
    tmp_path: Path, method: str, write: Callable[[Path], object]
) -> None:
    folder = tmp_path / 'in'
    write(folder)
    import_map(method, folder, ImportOptions())
    files = sorted(path for path in folder.rglob('*') if path.is_file())
    rng, refused = np.random.default_rng(11), 0
    for _ in range(DAMAGES):
        copy = tmp_path / 'copy'
        shutil.copytree(folder, copy)
        file = copy / files[rng.integers(0, len(files))].relative_to(folder)
        file.write_bytes(damaged(file.read_bytes(), rng))
        try:
            import_map(method, copy, ImportOptions())
        except OsmabenchError:
            refused += 1
        shutil.rmtree(copy)
    assert refused > 0
