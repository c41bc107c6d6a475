"""Builds maps whose points, not objects, carry the features; masks may overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.assembly import (
    Method,
    Placement,
    check_node_count,
    feature_space,
    header,
)
from osmabench_ros.maps.semantic_map import DenseMap, Membership, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode


def point_feature_map(
    method: Method,
    options: ImportOptions,
    points: NDArray[np.floating],
    colors: NDArray[np.uint8] | None,
    vectors: NDArray[np.floating],
    rows: NDArray[np.integer],
    *,
    scores: NDArray[np.floating] | None = None,
    source_sha256: str = '',
    extras: Mapping[str, Any] | None = None,
) -> SemanticMap:
    """Return a map without nodes; its points refer to rows of a feature table.

    Points and colours (RGB, uint8) have shape (N, 3), `vectors` (M, D), `scores` (N,). `rows` (N,)
    are -1 where the method has none; such points are marked invalid.
    """
    if len(rows) != len(points):
        raise MapError(f'{method.name}: {len(points)} points, but features for {len(rows)}')
    keep = np.isfinite(points).all(axis=1)
    name = next(iter(method.encoders))
    space = feature_space(method, options, name, vectors)
    placed = Placement(method, options).points(points[keep]).astype(np.float32)
    valid_rows = np.asarray(rows, np.int32)[keep]
    notes = dict(extras or {})
    if not keep.all():
        notes['points_dropped_because_not_finite'] = int((~keep).sum())
    dense = DenseMap(
        placed,
        colors=None if colors is None else colors[keep],
        scores=None if scores is None else np.asarray(scores, np.float32)[keep],
        feature_rows=valid_rows,
        feature_space=name,
        valid=valid_rows >= 0,
    )
    spaces = {name: space}
    return SemanticMap(
        header(method, options, spaces, source_sha256),
        SceneGraph(frame_id=options.frame_id),
        dense,
        options.label_set,
        spaces,
        notes,
    )


def mask_map(
    method: Method,
    options: ImportOptions,
    points: NDArray[np.floating],
    colors: NDArray[np.uint8] | None,
    masks: Sequence[NDArray[np.integer]],
    vectors: NDArray[np.floating] | None,
    *,
    source_ids: Sequence[str] | None = None,
    source_sha256: str = '',
    extras: Mapping[str, Any] | None = None,
) -> SemanticMap:
    """Return a map of one node a mask; overlaps are kept as membership.

    `masks` are indices into the finite `points` (N, 3); a row of `vectors` (masks, D) that is not
    finite or all zero is no feature. A point's instance is the smallest mask it is in: small
    things lie on large ones.
    """
    if vectors is not None and len(vectors) != len(masks):
        raise MapError(f'{method.name}: {len(masks)} masks, but features for {len(vectors)}')
    check_node_count(len(masks), method.name)
    if not np.isfinite(points).all():
        raise MapError(f'{method.name}: a point is NaN or infinite, so masks cannot be matched')
    name = next(iter(method.encoders), '')
    placed = Placement(method, options).points(points).astype(np.float32)
    rows, spaces = _mask_features(method, options, name, vectors, len(masks))
    nodes = tuple(
        SceneNode(
            id=i + 1,
            box=AxisAlignedBox.around(placed[mask]) if len(mask) else None,
            source_id=str(i) if source_ids is None else source_ids[i],
            feature_row=None if rows[i] < 0 else int(rows[i]),
            feature_space='' if rows[i] < 0 else name,
        )
        for i, mask in enumerate(masks)
    )
    instances = smallest_masks(masks, len(points))
    lookup = np.concatenate([[-1], rows]).astype(np.int32)
    dense = DenseMap(
        placed,
        colors=colors,
        labels=None if options.label_set is None else np.full(len(points), UNLABELLED, np.int32),
        instances=instances,
        feature_rows=lookup[instances] if spaces else None,
        feature_space=name if spaces else '',
        membership=membership_of(masks),
    )
    return SemanticMap(
        header(method, options, spaces, source_sha256),
        SceneGraph(nodes, (), options.frame_id),
        dense,
        options.label_set,
        spaces,
        dict(extras or {}),
    )


def _mask_features(
    method: Method,
    options: ImportOptions,
    name: str,
    vectors: NDArray[np.floating] | None,
    count: int,
) -> tuple[NDArray[np.int32], dict[str, Any]]:
    """Return the row of each mask, -1 without a feature, and the feature spaces."""
    rows = np.full(count, -1, np.int32)
    if vectors is None or not len(vectors):
        return rows, {}
    usable = np.isfinite(vectors).all(axis=1) & (vectors != 0).any(axis=1)
    if not usable.any():
        return rows, {}
    rows[usable] = np.arange(usable.sum(), dtype=np.int32)
    return rows, {name: feature_space(method, options, name, vectors[usable])}


def smallest_masks(masks: Sequence[NDArray[np.integer]], count: int) -> NDArray[np.int32]:
    """Return for each of `count` points 1 + the index of its smallest mask, 0 for none."""
    instances = np.zeros(count, np.int32)
    for i in sorted(range(len(masks)), key=lambda i: -len(masks[i])):
        instances[masks[i]] = i + 1
    return instances


def masks_of_values(values: NDArray[np.integer], wanted: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return for each wanted value its indices, ascending."""
    order = np.argsort(values, kind='stable')
    ranked = values[order]
    starts = np.searchsorted(ranked, wanted, side='left')
    stops = np.searchsorted(ranked, wanted, side='right')
    return [order[start:stop] for start, stop in zip(starts, stops, strict=True)]


def membership_of(
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
