"""OpenLex3D's interchange form: points, an index into embeddings, one embedding per object."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from osmabench_ros.base.reading import read_npy
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import Encoder, Method
from osmabench_ros.maps.importers.point_maps import build_mask_map, build_point_map, split_by_value
from osmabench_ros.maps.importers.pointcloud import read_columns
from osmabench_ros.maps.importers.source_files import find_file, hash_files, points_and_colors
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method('openlex3d', World.Z_UP, {'clip': Encoder('ViT-H-14', 'laion2b_s32b_b79k')})


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a prediction in OpenLex3D's form.

    `path` is a folder with `point_cloud.pcd` or `.ply`, `index.npy` (N,) and `embeddings.npy` (M,
    D). The default world is z up, as Replica and ScanNet++ are; HM3D is in Habitat's. There is one
    node per embedding; for a dense prediction (index 0, 1, 2, ...) none. An index below 0 means
    that a point has no embedding.
    """
    cloud = find_file(path, ('point_cloud.pcd', 'point_cloud.ply', 'input.ply', '*.pcd', '*.ply'),
                     'point cloud')  # fmt: skip
    index_file, embedding_file = path / 'index.npy', path / 'embeddings.npy'
    points, colors = points_and_colors(read_columns(cloud), cloud)
    index, embeddings = read_npy(index_file, MapError), read_npy(embedding_file, MapError)
    if index.shape != (len(points),) or index.dtype.kind not in 'iuf':
        raise MapError(f'{index_file} is {index.dtype} {index.shape} for {len(points)} points')
    if embeddings.ndim != 2 or embeddings.dtype.kind != 'f':
        raise MapError(f'{embedding_file} is {embeddings.dtype} of shape {embeddings.shape}')
    rows = np.maximum(index.astype(np.int64), -1)
    count = len(embeddings)
    if rows.max(initial=-1) >= count:
        raise MapError(
            f'{index_file} refers to row {rows.max()}, {embedding_file} has {count} rows'
        )
    digest = hash_files(cloud, index_file, embedding_file)
    if count == len(points) and np.array_equal(rows, np.arange(count)):
        return build_point_map(
            METHOD, options, points, colors, embeddings, rows, source_sha256=digest
        )
    masks = split_by_value(rows, range(count))
    return build_mask_map(METHOD, options, points, colors, masks, embeddings, source_sha256=digest)
