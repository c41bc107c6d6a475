"""Maps of masks over points, each mask with a feature: OpenLex3D's form, OpenMask3D, OVO."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.reading import read_npy
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import assembly
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.point_maps import build_mask_map, build_point_map, split_by_value
from osmabench_ros.maps.importers.pointcloud import read_columns
from osmabench_ros.maps.importers.source_files import find_file, get_points_and_colors, hash_files
from osmabench_ros.maps.pickles import load_torch
from osmabench_ros.maps.semantic_map import SemanticMap

_PROMPTS = ('This is a photo of a {}',)
# Encoders of OVO's configuration by feature length; ViT-H-14 has 1024 too, options name it.
_ENCODERS = {
    512: assembly.Encoder('ViT-B-16-quickgelu', 'dfn2b', templates=_PROMPTS),
    768: assembly.Encoder('ViT-L-14-quickgelu', 'dfn2b', templates=_PROMPTS),
    1024: assembly.Encoder('PE-Core-L-14-336', 'meta', templates=_PROMPTS),
    1152: assembly.Encoder('ViT-SO400M-14-SigLIP-384', 'webli', templates=_PROMPTS),
}
OVO = assembly.Method('ovo', World.Z_UP, {'clip': _ENCODERS[1024]})
OPENMASK3D = assembly.Method('openmask3d', World.Z_UP, {'clip': assembly.VIT_L_336})
OPENLEX3D = assembly.Method('openlex3d', World.Z_UP, {'clip': assembly.VIT_H})


def import_openlex3d(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a prediction in OpenLex3D's form.

    `path` is a folder with `point_cloud.pcd` or `.ply`, `index.npy` (N,) and `embeddings.npy` (M,
    D). The default world is z up, as Replica and ScanNet++ are; HM3D is in Habitat's. There is one
    node per embedding; for a dense prediction (index 0, 1, 2, ...) none. An index below 0 means
    that a point has no embedding.
    """
    cloud = find_file(path, ('point_cloud.pcd', 'point_cloud.ply', 'input.ply', '*.pcd', '*.ply'),
                     'point cloud')  # fmt: skip
    index_file = path / 'index.npy'
    embedding_file = path / 'embeddings.npy'
    points, colors = get_points_and_colors(read_columns(cloud), cloud)
    index = read_npy(index_file, MapError)
    embeddings = read_npy(embedding_file, MapError)
    if index.shape != (len(points),) or index.dtype.kind not in 'iuf':
        raise MapError(f'{index_file} is {index.dtype} {index.shape} for {len(points)} points')
    if embeddings.ndim != 2 or embeddings.dtype.kind != 'f':
        raise MapError(f'{embedding_file} is {embeddings.dtype} of shape {embeddings.shape}')
    rows = np.maximum(index.astype(np.int64), -1)
    count = len(embeddings)
    if rows.max(initial=-1) >= count:
        raise MapError(f'{index_file} refers to row {rows.max()} of {count} of {embedding_file}')
    digest = hash_files(cloud, index_file, embedding_file)
    given = OPENLEX3D, options, points, colors
    if count == len(points) and np.array_equal(rows, np.arange(count)):
        return build_point_map(*given, embeddings, rows, source_sha256=digest)
    masks = split_by_value(rows, range(count))
    return build_mask_map(*given, masks, embeddings, source_sha256=digest)


def import_openmask3d(path: Path, options: ImportOptions) -> SemanticMap:
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
        raise MapError(f'{mask_file} holds masks {masks.shape}, {cloud} has {len(points)} points')
    assembly.check_node_count(masks.shape[1], mask_file)
    indices = [np.flatnonzero(masks[:, i] > 0.5) for i in range(masks.shape[1])]
    vectors = None if feature_file is None else read_npy(feature_file, MapError)
    digest = source.hash_files(mask_file, cloud, feature_file)
    return build_mask_map(
        OPENMASK3D, options, points, colors, indices, vectors, source_sha256=digest
    )


def import_ovo(path: Path, options: ImportOptions) -> SemanticMap:
    """Read an OVO map.

    `path` is `ovo_map.ckpt` or its folder. The default world is the data set's, z up for Replica
    and ScanNet. There is a node for each instance; points with id -1 belong to none.
    """
    file = source.find_file(path, ('ovo_map.ckpt',), 'OVO map')
    data = load_torch(file)
    geometry = _read_part(data, 'map_params', file)
    semantics = _read_part(data, 'ovo_map_params', file)
    points = source.check_numbers(geometry.get('xyz'), f'{file}: the tensor "xyz"')
    owners = source.check_numbers(geometry.get('obj_ids'), f'{file}: the tensor "obj_ids"').ravel()
    if len(owners) != len(points):
        raise MapError(f'{file}: "xyz" is {points.shape}, "obj_ids" {owners.shape}')
    known = np.asarray(semantics.get('ins_3d_ids', ()), np.int64).ravel().tolist()
    if len(set(known)) != len(known):
        raise MapError(f'{file}: an id occurs more than once in "ins_3d_ids"')
    ids = known + sorted(set(owners[owners >= 0].astype(int).tolist()) - set(known))
    colors = geometry.get('color')
    if colors is not None:
        colors = source.check_numbers(colors, f'{file}: the tensor "color"')
        unit_range = colors.dtype.kind == 'f' and bool(colors.max(initial=0) <= 1.0)
        colors = source.scale_colors(colors, unit_range)
    features = _read_features(semantics, ids, file)
    encoder = _ENCODERS.get(0 if features is None else features.shape[1], _ENCODERS[1024])
    return build_mask_map(
        dataclasses.replace(OVO, encoders={'clip': encoder}),
        options,
        points,
        colors,
        split_by_value(owners, ids),
        features,
        source_ids=[str(i) for i in ids],
        extras=_keep_rest(geometry, semantics),
        source_sha256=source.hash_files(file),
    )


def _keep_rest(geometry: Mapping[str, Any], semantics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other data: point ids, key frames of the features, debugging output."""
    rest = {
        'map_params': {k: v for k, v in geometry.items() if k not in ('xyz', 'obj_ids', 'color')},
        'ovo_map_params': {
            k: v for k, v in semantics.items() if not str(k).endswith('_clip_feature')
        },
    }
    return {name: source.make_plain(part) for name, part in rest.items()}


def _read_part(data: Any, key: str, file: Path) -> Mapping[str, Any]:
    part = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(part, Mapping):
        raise MapError(f'{file} does not hold "{key}"; is it an ovo_map.ckpt?')
    return part


def _read_features(
    semantics: Mapping[str, Any], ids: list[int], file: Path
) -> NDArray[np.float32] | None:
    """Return a row for each instance, zero where an instance has no feature yet."""
    found = {i: semantics.get(f'ins3d_{i}_clip_feature') for i in ids}
    vectors = {
        i: np.asarray(value, np.float32).ravel() for i, value in found.items() if value is not None
    }
    lengths = {len(vector) for vector in vectors.values()}
    if len(lengths) > 1:
        raise MapError(f'{file}: features have different lengths: {sorted(lengths)}')
    if not vectors:
        return None
    none = np.zeros(lengths.pop(), np.float32)
    return np.stack([vectors.get(i, none) for i in ids])
