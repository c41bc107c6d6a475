"""Writes maps in OpenLex3D's interchange form, for its own evaluation code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.files import filled_folder
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.pcd import write_pcd
from osmabench_ros.maps.array_files import write_npy
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap


def export_openlex3d(semantic_map: SemanticMap, directory: Path) -> int:
    """Write point_cloud.pcd, index.npy and embeddings.npy; return how many points were left out.

    Points without a feature are left out: OpenLex3D reads index -1 as the last object's feature,
    while ground truth with no point nearby counts as missing, which is what it is. Raises MapError
    without features that text can be compared with, RunError if the directory is not empty.
    """
    dense = semantic_map.dense
    if dense is None or dense.feature_rows is None:
        raise MapError(
            f'the map of {semantic_map.header.provenance.method} has no points with features; '
            'OpenLex3D scores features'
        )
    space = semantic_map.feature_spaces[dense.feature_space]
    if not space.text_comparable:
        raise MapError(f'features "{space.name}" of {space.model} cannot be compared with text')
    keep = dense.feature_rows >= 0
    with filled_folder(directory) as folder:
        with (folder / 'point_cloud.pcd').open('wb') as stream:
            write_pcd(stream, _columns(dense, keep))
        with (folder / 'index.npy').open('wb') as stream:
            write_npy(stream, dense.feature_rows[keep].astype(np.int64))
        with (folder / 'embeddings.npy').open('wb') as stream:
            write_npy(stream, space.vectors)
    return int((~keep).sum())


def _columns(dense: DenseMap, keep: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    points = dense.points[keep]
    columns: dict[str, NDArray[Any]] = {
        name: np.asarray(points[:, i], '<f4') for i, name in enumerate('xyz')
    }
    if dense.colors is not None:
        for i, name in enumerate(('red', 'green', 'blue')):
            columns[name] = dense.colors[keep, i]
    return columns
