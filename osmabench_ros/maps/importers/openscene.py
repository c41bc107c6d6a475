"""OpenScene: a CLIP-aligned feature for every point, no objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.reading import read_npy
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.assembly import Encoder, Method
from osmabench_ros.maps.importers.point_maps import build_point_map
from osmabench_ros.maps.pickles import load_torch
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method(
    'openscene',
    World.HABITAT,
    {'clip': Encoder('ViT-L-14-336-quickgelu', 'openai', templates=('a {} in a scene',))},
)


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read OpenScene features; the default world is Habitat's.

    `path` is a folder with `predictions.npy` (N, D) and `gt.ply` (N points), as OSMa-Bench's fork
    writes them; or with one fused `<scene>_0.pt` (`feat` (M, D), `mask_full` (N,)) and the points
    it belongs to, `<scene>.pth` (coordinates, colours, labels) or `<scene>.ply`. Points without a
    feature (all zero, or outside the mask) have row -1 and are not valid.
    """
    predictions = source.find_any_file(path, ('predictions.npy',), 'predictions')
    if predictions is not None:
        cloud = source.find_file(path, ('gt.ply', '*.ply'), 'point cloud of the predictions')
        features = read_npy(predictions, MapError)
    else:
        predictions = source.find_file(path, ('*_0.pt', '*.pt'), 'OpenScene features')
        cloud = source.find_file(path, ('*.pth', '*.ply'), 'point cloud of the features')
        features = _read_fused(predictions)
    points, colors = source.read_points(cloud) if cloud.suffix == '.ply' else _read_scene(cloud)
    if len(features) != len(points):
        raise MapError(
            f'{predictions} has features {features.shape}, {cloud} has {len(points)} points'
        )
    digest = source.hash_files(predictions, cloud)
    return build_point_map(METHOD, options, points, colors, features, source_sha256=digest)


def _read_fused(path: Path) -> NDArray[Any]:
    """Return a feature for each point, zeros outside of the mask."""
    data = load_torch(path)
    try:
        features = source.check_numbers(data['feat'], f'{path}: "feat"')
        mask = source.check_numbers(data['mask_full'], f'{path}: "mask_full"').astype(bool)
    except (KeyError, TypeError, IndexError) as error:
        raise MapError(f'{path} does not hold "feat" and "mask_full"') from error
    if features.ndim != 2 or mask.ndim != 1 or mask.sum() != len(features):
        raise MapError(
            f'{path}: "mask_full" {mask.shape} marks {mask.sum()} points, '
            f'"feat" is {features.shape}'
        )
    whole = np.zeros((len(mask), features.shape[1]), features.dtype)
    whole[mask] = features
    return whole


def _read_scene(path: Path) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return points and colours (-1 to 1 in the file) of an OpenScene scene file."""
    data = load_torch(path)
    if not isinstance(data, tuple | list) or len(data) < 2:
        raise MapError(f'{path} does not hold (coordinates, colours, labels)')
    points, colors = np.asarray(data[0], np.float64), np.asarray(data[1], np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or colors.shape != points.shape:
        raise MapError(f'{path}: coordinates {points.shape}, colours {colors.shape}')
    return points, source.scale_colors((colors + 1) / 2, unit_range=True)
