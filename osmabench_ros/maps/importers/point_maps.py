"""Maps in which points, not objects, carry the features; masks may overlap.

ConceptFusion, OpenFusion and OpenScene: a feature for each point, voxel or vertex.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.base.reading import read_npy, read_npz
from osmabench_ros.errors import MapError, errors_as
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import assembly
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.source_files import find_file, hash_files, require, scale_colors
from osmabench_ros.maps.pickles import load_torch
from osmabench_ros.maps.semantic_map import DenseMap, Membership, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, group_rows_by_id
from osmabench_ros.semantics.scene_graph import SceneNode

OPENSCENE = assembly.Method('openscene', World.HABITAT, {'clip': assembly.VIT_L_336})
_SEEM = assembly.Encoder('SEEM', 'seem_focall_v1')
OPENFUSION = assembly.Method('openfusion', World.Z_UP, {'seem': _SEEM})
_OPENFUSION_KEYS = ('emb_keys', 'emb_confs', 'emb_coords', 'emb_dict')
CONCEPTFUSION = assembly.Method('conceptfusion', World.OPTICAL, {'clip': assembly.VIT_H})
_ARRAYS = ('points', 'embeddings', 'colors', 'confidences')
_READING_ERRORS = (OSError, KeyError, AttributeError, ValueError, TypeError, RuntimeError)


def build_point_map(
    method: assembly.Method,
    options: ImportOptions,
    points: NDArray[np.floating],
    colors: NDArray[np.uint8] | None,
    vectors: NDArray[np.floating],
    rows: NDArray[np.integer] | None = None,
    *,
    scores: NDArray[np.floating] | None = None,
    source_sha256: str,
    extras: Mapping[str, Any] | None = None,
) -> SemanticMap:
    """Return a map without nodes; its points refer to rows of a feature table.

    Points and colours (RGB, uint8) have shape (N, 3), `vectors` (M, D), `scores` (N,). `rows` (N,)
    are -1 where the method has none; such points are marked invalid. Without `rows` there is a
    vector for each point, and a vector of zeros means none.
    """
    if vectors.ndim != 2:
        raise MapError(f'{method.name}: features of shape {vectors.shape}, expected (N, D)')
    if rows is None:
        used = (vectors != 0).any(axis=1)
        rows = np.where(used, np.cumsum(used) - 1, -1)
        vectors = vectors[used]
    builder = assembly.MapBuilder(method, options)
    name = next(iter(method.encoders))
    builder.add_space(name, vectors)
    placed, (colors, rows, scores) = builder.place_cloud(points, colors, rows, scores)
    dense = DenseMap(
        placed,
        colors,
        scores=None if scores is None else np.asarray(scores, np.float32),
        feature_rows=rows.astype(np.int32),
        feature_space=name,
        valid=rows >= 0,
    )
    return builder.build(dense=dense, source_sha256=source_sha256, extras=extras)


def build_mask_map(
    method: assembly.Method,
    options: ImportOptions,
    points: NDArray[np.floating],
    colors: NDArray[np.uint8] | None,
    masks: Sequence[NDArray[np.integer]],
    vectors: NDArray[np.floating] | None,
    *,
    source_ids: Sequence[str] | None = None,
    source_sha256: str,
    extras: Mapping[str, Any] | None = None,
) -> SemanticMap:
    """Return a map with a node for each mask; overlaps are kept as membership.

    `masks` are indices into the finite `points` (N, 3); a row of `vectors` (masks, D) that is not
    finite or all zero is not a feature. A point's instance is the smallest mask it is in: small
    objects are on large ones.
    """
    if vectors is not None and len(vectors) != len(masks):
        raise MapError(f'{method.name}: {len(masks)} masks, but features for {len(vectors)}')
    assembly.check_node_count(len(masks), method.name)
    if not np.isfinite(points).all():
        raise MapError(f'{method.name}: a point is NaN or infinite, so masks cannot be matched')
    builder = assembly.MapBuilder(method, options)
    placed, (colors,) = builder.place_cloud(points, colors)
    # Rows of masks from 1 on, -1 without a feature; row 0 is for points in no mask.
    rows, name = np.full(len(masks) + 1, -1, np.int32), ''
    if vectors is not None and len(vectors):
        usable = np.isfinite(vectors).all(axis=1) & (vectors != 0).any(axis=1)
        if usable.any():
            name = next(iter(method.encoders))
            rows[1:][usable] = np.arange(usable.sum())
            builder.add_space(name, vectors[usable])
    nodes = [
        SceneNode(
            number,
            box=AxisAlignedBox.around(placed[mask]) if len(mask) else None,
            source_id=str(number - 1) if source_ids is None else source_ids[number - 1],
            feature_row=None if rows[number] < 0 else int(rows[number]),
            feature_space='' if rows[number] < 0 else name,
        )
        for number, mask in enumerate(masks, start=1)
    ]
    instances = find_smallest_masks(masks, len(points))
    dense = DenseMap(
        placed,
        colors,
        None if options.label_set is None else np.full(len(points), UNLABELLED, np.int32),
        instances,
        feature_rows=rows[instances] if name else None,
        feature_space=name,
        membership=make_membership(masks),
    )
    return builder.build(nodes, dense=dense, source_sha256=source_sha256, extras=extras)


def find_smallest_masks(masks: Sequence[NDArray[np.integer]], count: int) -> NDArray[np.int32]:
    """Return for each of `count` points 1 + the index of its smallest mask, 0 for none."""
    instances = np.zeros(count, np.int32)
    for i in sorted(range(len(masks)), key=lambda i: -len(masks[i])):
        instances[masks[i]] = i + 1
    return instances


def split_by_value(values: NDArray[np.integer], wanted: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return for each wanted value its indices, ascending."""
    rows = group_rows_by_id(values)
    none = np.zeros(0, np.int64)
    return [rows.get(value, none) for value in wanted]


def make_membership(
    masks: Sequence[NDArray[np.integer]], nodes: Sequence[int] | None = None
) -> Membership:
    """Return masks as sparse rows, by default mask i of node i + 1."""
    sizes = [len(mask) for mask in masks]
    indices = np.concatenate([np.zeros(0, np.int64), *masks]).astype(np.int64)
    return Membership(
        np.array(range(1, len(masks) + 1) if nodes is None else nodes, np.int32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        indices,
    )


def import_conceptfusion(path: Path, options: ImportOptions) -> SemanticMap:
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
    colors = arrays.get('colors')
    scores = arrays.get('confidences')
    if colors is not None:  # gradslam keeps 0 to 255, converted maps 0 to 1
        unit_range = bool(colors.max(initial=0) <= 1.0)
        colors = scale_colors(colors, unit_range) if colors.size else None
    return build_point_map(
        CONCEPTFUSION,
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
            raise MapError(f'{path}: the data of "{key}" are in other files; copy them into it')
        if dataset.dtype.kind not in 'biuf':
            raise MapError(f'{path}: "{key}" holds {dataset.dtype}, not numbers')
        return np.asarray(dataset[:])


def import_openfusion(path: Path, options: ImportOptions) -> SemanticMap:
    """Read an OpenFusion map, the .npz of a run or a folder with one; by default z up.

    The semantics sit at sampled points of the voxel blocks (`emb_coords`), not in the voxels
    themselves; these points become the map. Key 0 means that a place is empty.
    """
    file = find_file(path, ('*.npz',), 'OpenFusion map')
    arrays = read_npz(file, MapError, (*_OPENFUSION_KEYS, 'extrinsic'))
    if missing := [name for name in _OPENFUSION_KEYS if name not in arrays]:
        raise MapError(f"{file} lacks {', '.join(missing)}; is it a map of OpenFusion's VLFusion?")
    keys = arrays['emb_keys'].ravel().astype(np.int64)
    scores = arrays['emb_confs'].ravel()
    points = arrays['emb_coords'].reshape(-1, 3)
    table = arrays['emb_dict']
    if not len(keys) == len(points) == len(scores):
        counts = f'{len(keys)} keys, {len(points)} coordinates, {len(scores)} confidences'
        raise MapError(f'{file}: {counts}')
    if (keys < 0).any() or (keys >= len(table)).any():
        raise MapError(f'{file}: "emb_keys" refer beyond the {len(table)} rows of "emb_dict"')
    used = keys != 0
    return build_point_map(
        OPENFUSION,
        options,
        points[used],
        None,
        table,
        keys[used],
        scores=scores[used],
        source_sha256=hash_files(file),
        extras={'camera_poses': len(arrays.get('extrinsic', ()))},
    )


def import_openscene(path: Path, options: ImportOptions) -> SemanticMap:
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
        own = f'{predictions} has features {features.shape}'
        raise MapError(f'{own}, {cloud} has {len(points)} points')
    digest = source.hash_files(predictions, cloud)
    return build_point_map(OPENSCENE, options, points, colors, features, source_sha256=digest)


def _read_fused(path: Path) -> NDArray[Any]:
    """Return a feature for each point, zeros outside of the mask."""
    data = load_torch(path)
    try:
        features = source.check_numbers(data['feat'], f'{path}: "feat"')
        mask = source.check_numbers(data['mask_full'], f'{path}: "mask_full"').astype(bool)
    except (KeyError, TypeError, IndexError) as error:
        raise MapError(f'{path} does not hold "feat" and "mask_full"') from error
    if features.ndim != 2 or mask.ndim != 1 or mask.sum() != len(features):
        marked = f'"mask_full" marks {mask.sum()} points'
        raise MapError(f'{path}: {marked}, "feat" is {features.shape}')
    whole = np.zeros((len(mask), features.shape[1]), features.dtype)
    whole[mask] = features
    return whole


def _read_scene(path: Path) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return points and colours (-1 to 1 in the file) of an OpenScene scene file."""
    data = load_torch(path)
    if not isinstance(data, tuple | list) or len(data) < 2:
        raise MapError(f'{path} does not hold (coordinates, colours, labels)')
    points = np.asarray(data[0], np.float64)
    colors = np.asarray(data[1], np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or colors.shape != points.shape:
        raise MapError(f'{path}: coordinates {points.shape}, colours {colors.shape}')
    return points, source.scale_colors((colors + 1) / 2, unit_range=True)
