"""Builds maps in which points, not objects, carry the features; masks may overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.assembly import MapBuilder, Method, check_node_count
from osmabench_ros.maps.semantic_map import DenseMap, Membership, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, rows_by_id
from osmabench_ros.semantics.scene_graph import SceneNode


def build_point_map(
    method: Method,
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
        rows, vectors = np.where(used, np.cumsum(used) - 1, -1), vectors[used]
    builder = MapBuilder(method, options)
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
    method: Method,
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
    check_node_count(len(masks), method.name)
    if not np.isfinite(points).all():
        raise MapError(f'{method.name}: a point is NaN or infinite, so masks cannot be matched')
    builder = MapBuilder(method, options)
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
    rows, none = rows_by_id(values), np.zeros(0, np.int64)
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
