"""ConceptFusion: a dense cloud with a fused embedding for each point, in HDF5 files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.errors import MapError, errors_as
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import Encoder, Method
from osmabench_ros.maps.importers.point_maps import build_point_map
from osmabench_ros.maps.importers.source_files import hash_files, require, scale_colors
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method('conceptfusion', World.OPTICAL, {'clip': Encoder('ViT-H-14', 'laion2b_s32b_b79k')})
_ARRAYS = ('points', 'embeddings', 'colors', 'confidences')
_READING_ERRORS = (OSError, KeyError, AttributeError, ValueError, TypeError, RuntimeError)


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a ConceptFusion map.

    `path` is a folder with `pointclouds/pc_points.h5`, `pc_embeddings.h5` and, if saved,
    `pc_colors.h5`, `pc_confidences.h5`; or that `pointclouds` folder. The default world is the
    first camera's optical frame. Points with an embedding of zeros have no feature.
    """
    folder = path / 'pointclouds' if (path / 'pointclouds').is_dir() else path
    files = {part: folder / f'pc_{part}.h5' for part in (*_ARRAYS, 'features')}
    present = [file for file in files.values() if file.is_file()]
    for part in ('points', 'embeddings'):
        if files[part] not in present:
            raise MapError(f'{path} has no ConceptFusion map; expected {files[part]}')
    require('h5py', 'HDF5 files', 'maps')
    arrays: dict[str, Any] = {
        part: read_in_fence(read_dataset, files[part], libraries=('h5py',), key=f'pc_{part}')
        for part in _ARRAYS
        if files[part] in present
    }
    colors, scores = arrays.get('colors'), arrays.get('confidences')
    if colors is not None:  # gradslam keeps 0 to 255, converted maps 0 to 1
        unit_range = bool(colors.max(initial=0) <= 1.0)
        colors = scale_colors(colors, unit_range) if colors.size else None
    return build_point_map(
        METHOD,
        options,
        arrays['points'],
        colors,
        arrays['embeddings'],
        scores=None if scores is None else scores.ravel(),
        source_sha256=hash_files(*present),
    )


def read_dataset(path: Path, key: str) -> NDArray[Any]:
    """Read a data set of an HDF5 file, in the fence; raises MapError if malformed."""
    import h5py

    what = f'{path} cannot be read as HDF5 with a data set "{key}"'
    with errors_as(MapError, what, _READING_ERRORS), h5py.File(path, 'r') as file:
        # Links of other kinds lead to other files, or in circles.
        if not isinstance(file.get(key, getlink=True), h5py.HardLink):
            raise MapError(f'{path}: "{key}" is missing, or a link; store the data itself')
        dataset = file[key]
        if dataset.is_virtual or dataset.external:
            raise MapError(
                f'{path}: the data of "{key}" are in other files, which are not read; copy '
                'them into this one'
            )
        if dataset.dtype.kind not in 'biuf':
            raise MapError(f'{path}: "{key}" holds {dataset.dtype}, not numbers')
        return np.asarray(dataset[:])
