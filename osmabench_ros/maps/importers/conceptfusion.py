"""ConceptFusion: a dense cloud with a fused embedding a point, in HDF5 files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError, MissingDependencyError
from osmabench_ros.maps.array_files import MAX_BYTES
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.point_maps import point_feature_map
from osmabench_ros.maps.importers.source_files import colors_of, digest_of
from osmabench_ros.maps.importers.source_model import Encoder, Method
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method('conceptfusion', World.OPTICAL, {'clip': Encoder('ViT-H-14', 'laion2b_s32b_b79k')})
_PARTS = ('points', 'colors', 'embeddings', 'confidences', 'features')


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a ConceptFusion map.

    Parameters
    ----------
    path : Path
        Folder with `pointclouds/pc_points.h5`, `pc_embeddings.h5` and, if saved,
        `pc_colors.h5`, `pc_confidences.h5`; or that `pointclouds` folder itself.
    options : ImportOptions
        The default world is the first camera's optical frame.

    Returns
    -------
    SemanticMap
        Every point has its own feature; points whose embedding is zero have none.

    Raises
    ------
    MapError
        If the files are missing or malformed.
    MissingDependencyError
        If h5py is not installed.
    """
    folder = path / 'pointclouds' if (path / 'pointclouds').is_dir() else path
    files = {part: folder / f'pc_{part}.h5' for part in _PARTS}
    present = {part: file for part, file in files.items() if file.is_file()}
    for part in ('points', 'embeddings'):
        if part not in present:
            raise MapError(f'{path} has no ConceptFusion map; expected {files[part]}')
    arrays = {
        part: _dataset(file, f'pc_{part}') for part, file in present.items() if part != 'features'
    }
    points, embeddings = arrays['points'], arrays['embeddings']
    if points.ndim != 2 or points.shape[1] != 3 or embeddings.ndim != 2:
        raise MapError(f'{folder}: points {points.shape}, embeddings {embeddings.shape}')
    for part, array in arrays.items():
        if len(array) != len(points):
            raise MapError(f'{files[part]} has {len(array)} rows for {len(points)} points')
    used = (embeddings != 0).any(axis=1)
    rows = np.where(used, np.cumsum(used) - 1, -1)
    scores = arrays.get('confidences')
    return point_feature_map(
        METHOD,
        options,
        points,
        _colors(arrays.get('colors')),
        embeddings[used],
        rows,
        scores=None if scores is None else scores.reshape(len(points)),
        source_sha256=digest_of(present.values(), folder),
    )


def _dataset(path: Path, key: str) -> NDArray[Any]:
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError(
            'reading HDF5 files needs h5py; install osmabench_ros[maps]'
        ) from error
    try:
        with h5py.File(path, 'r') as file:
            dataset = file[key]
            if dataset.dtype.kind not in 'biuf':
                raise MapError(f'{path}: "{key}" holds {dataset.dtype}, not numbers')
            if dataset.nbytes > MAX_BYTES:
                raise MapError(f'{path}: "{key}" unpacks to more than {MAX_BYTES} bytes')
            return np.asarray(dataset[:])
    except (OSError, KeyError, AttributeError, ValueError, TypeError) as error:
        raise MapError(
            f'{path} cannot be read as HDF5 with a data set "{key}": {error}'
        ) from error


def _colors(values: NDArray[Any] | None) -> NDArray[np.uint8] | None:
    """Return 8-bit colours; gradslam keeps 0 to 255, converted maps 0 to 1."""
    if values is None or not values.size:
        return None
    return colors_of(values, unit_range=bool(values.max() <= 1.0))
