"""OpenMask3D: overlapping masks over the points of a scene, each with a CLIP feature."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from osmabench_ros.base.reading import read_npy
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.assembly import Encoder, Method, check_node_count
from osmabench_ros.maps.importers.point_maps import build_mask_map
from osmabench_ros.maps.pickles import load_torch
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method(
    'openmask3d',
    World.Z_UP,
    {'clip': Encoder('ViT-L-14-336-quickgelu', 'openai', templates=('a {} in a scene',))},
)


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read OpenMask3D masks and features, a node for each; overlaps are kept as membership.

    `path` is a folder with `*_masks.pt` (a NumPy array (N, M) that torch saved), the scene's point
    cloud `*.ply` (N points), and `*_openmask3d_features.npy` (M, D) if they were computed. The
    default world is ScanNet's, z up.
    """
    mask_file = source.find_file(path, ('*_masks.pt', '*masks*.pt'), 'OpenMask3D masks')
    cloud = source.find_file(path, ('*.ply',), 'point cloud of the scene')
    feature_file = source.find_any_file(
        path, ('*_openmask3d_features.npy', '*features*.npy'), 'mask features'
    )
    masks = source.check_numbers(load_torch(mask_file), str(mask_file))
    points, colors = source.read_points(cloud)
    if masks.ndim != 2 or len(masks) != len(points):
        raise MapError(
            f'{mask_file} holds masks {masks.shape}, {cloud} has {len(points)} points; '
            'give the point cloud that the masks were computed on'
        )
    check_node_count(masks.shape[1], mask_file)
    indices = [np.flatnonzero(masks[:, i] > 0.5) for i in range(masks.shape[1])]
    vectors = None if feature_file is None else read_npy(feature_file, MapError)
    digest = source.hash_files(mask_file, cloud, feature_file)
    return build_mask_map(METHOD, options, points, colors, indices, vectors, source_sha256=digest)
