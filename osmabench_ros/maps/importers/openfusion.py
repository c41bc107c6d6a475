"""OpenFusion: points of interest in voxel blocks, each with a key into a table of embeddings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from osmabench_ros.base.reading import read_npz
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import Encoder, Method
from osmabench_ros.maps.importers.point_maps import build_point_map
from osmabench_ros.maps.importers.source_files import find_file, hash_files
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method('openfusion', World.Z_UP, {'seem': Encoder('SEEM', 'seem_focall_v1')})
_KEYS = ('emb_keys', 'emb_confs', 'emb_coords', 'emb_dict')


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read an OpenFusion map, the .npz of a run or a folder with one; by default z up.

    The semantics sit at sampled points of the voxel blocks (`emb_coords`), not in the voxels
    themselves; these points become the map. Key 0 means that a place is empty.
    """
    file = find_file(path, ('*.npz',), 'OpenFusion map')
    arrays = read_npz(file, MapError, (*_KEYS, 'extrinsic'))
    if missing := [name for name in _KEYS if name not in arrays]:
        raise MapError(f"{file} lacks {', '.join(missing)}; is it a map of OpenFusion's VLFusion?")
    keys, scores = arrays['emb_keys'].ravel().astype(np.int64), arrays['emb_confs'].ravel()
    points, table = arrays['emb_coords'].reshape(-1, 3), arrays['emb_dict']
    if not len(keys) == len(points) == len(scores):
        raise MapError(
            f'{file}: {len(keys)} keys, {len(points)} coordinates, {len(scores)} confidences'
        )
    if (keys < 0).any() or (keys >= len(table)).any():
        raise MapError(f'{file}: "emb_keys" refer beyond the {len(table)} rows of "emb_dict"')
    used = keys != 0
    return build_point_map(
        METHOD,
        options,
        points[used],
        None,
        table,
        keys[used],
        scores=scores[used],
        source_sha256=hash_files(file),
        extras={'camera_poses': len(arrays.get('extrinsic', ()))},
    )
