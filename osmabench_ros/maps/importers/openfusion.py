"""OpenFusion: points of interest in voxel blocks, each with a key into a table of embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.arrays import read_npz
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import Encoder, Method
from osmabench_ros.maps.importers.point_maps import point_feature_map
from osmabench_ros.maps.importers.source_files import digest_of, the_file
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method('openfusion', World.Z_UP, {'seem': Encoder('SEEM', 'seem_focall_v1')})
_KEYS = ('emb_keys', 'emb_confs', 'emb_coords', 'emb_dict')


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read an OpenFusion map, the .npz of a run or a folder with one; by default z up.

    The semantics sit at sampled points of the voxel blocks (`emb_coords`), not in the voxels
    themselves; these points become the map. Key 0 means that a place is empty.
    """
    file = the_file(path, ('*.npz',), 'OpenFusion map') if path.is_dir() else path
    arrays = _arrays(file)
    keys = arrays['emb_keys'].ravel().astype(np.int64)
    table = arrays['emb_dict']
    coordinates = arrays['emb_coords'].reshape(-1, 3)
    confidences = arrays['emb_confs'].ravel()
    if table.ndim != 2 or not len(keys) == len(coordinates) == len(confidences):
        raise MapError(
            f'{file}: {len(keys)} keys, {len(coordinates)} coordinates, '
            f'{len(confidences)} confidences, table {table.shape}'
        )
    used = keys != 0
    if (keys < 0).any() or (keys >= len(table)).any():
        raise MapError(f'{file}: "emb_keys" refer beyond the {len(table)} rows of "emb_dict"')
    frames = arrays.get('extrinsic')
    notes = {'camera_poses': 0 if frames is None else len(frames)}
    return point_feature_map(
        METHOD,
        options,
        coordinates[used],
        None,
        table,
        keys[used],
        scores=confidences[used],
        source_sha256=digest_of((file,), file.parent),
        extras=notes,
    )


def _arrays(file: Path) -> dict[str, NDArray[Any]]:
    arrays = read_npz(file, MapError, (*_KEYS, 'extrinsic'))
    missing = [name for name in _KEYS if name not in arrays]
    if missing:
        raise MapError(f"{file} lacks {', '.join(missing)}; is it a map of OpenFusion's VLFusion?")
    return arrays
