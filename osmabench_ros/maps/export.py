"""Writes maps for other tools: plain point clouds, and OpenLex3D's interchange form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.files import atomic_directory
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.point_files import write_pcd, write_ply
from osmabench_ros.maps.map_document import make_columns
from osmabench_ros.maps.semantic_map import CHANNELS, COORDINATES, DenseMap, SemanticMap
from osmabench_ros.maps.storage import write_npy


def export_openlex3d(semantic_map: SemanticMap, directory: Path) -> int:
    """Write point_cloud.pcd, index.npy and embeddings.npy; return how many points were left out.

    Points without a feature are left out: OpenLex3D reads index -1 as the last object's feature,
    while ground truth with no point nearby counts as missing, as it should. Raises MapError
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
    with atomic_directory(directory) as folder:
        with (folder / 'point_cloud.pcd').open('wb') as stream:
            seen = (*COORDINATES, *CHANNELS)
            write_pcd(stream, {k: v[keep] for k, v in _read_cloud(dense).items() if k in seen})
        with (folder / 'index.npy').open('wb') as stream:
            write_npy(stream, dense.feature_rows[keep].astype(np.int64))
        with (folder / 'embeddings.npy').open('wb') as stream:
            write_npy(stream, space.vectors)
    return int((~keep).sum())


def _read_cloud(dense: DenseMap) -> dict[str, NDArray[Any]]:
    """Return the columns of cloud.ply by name."""
    return {column.name: values for column, values in make_columns(dense).items() if column.name}


CLASSES = 'classes.json'
_WRITERS = {'.ply': write_ply, '.pcd': write_pcd}


def export_point_cloud(semantic_map: SemanticMap, directory: Path, suffix: str) -> list[str]:
    """Write `cloud` + suffix and, for labels, `classes.json`; return the parts left out.

    The suffix is .ply or .pcd; the importer ``pointcloud`` reads both again. Points have x, y, z
    in metres, z up; red, green and blue; `label` (class id, 65535 unlabelled), `instance` (node
    id, 0 none) and `score` (NaN none), each only if the map gives it. Raises MapError if the map
    has no points, RunError if the directory is not empty.
    """
    dense = semantic_map.dense
    if dense is None or not len(dense.points):
        raise MapError(
            f'the map of {semantic_map.header.provenance.method} has no points; '
            'its nodes and edges are in map.json'
        )
    columns = _read_cloud(dense)
    if 'label' in columns:
        columns['label'] = columns['label'].astype('<u2')
    with atomic_directory(directory) as folder:
        with (folder / f'cloud{suffix}').open('wb') as stream:
            _WRITERS[suffix](stream, columns)
        if dense.labels is not None and semantic_map.label_set is not None:
            classes = {'classes': semantic_map.label_set.to_json()['classes']}
            text = json.dumps(classes, indent=1, ensure_ascii=False)
            (folder / CLASSES).write_text(text + '\n', encoding='utf-8')
    return _left_out(semantic_map, dense)


def _left_out(semantic_map: SemanticMap, dense: DenseMap) -> list[str]:
    graph = semantic_map.graph
    parts = {
        f'names, boxes and attributes of {len(graph.nodes)} nodes': graph.nodes,
        f'{len(graph.edges)} edges': graph.edges,
        'features': semantic_map.feature_spaces,
        'overlapping masks': dense.membership is not None,
        'which points were never looked at': dense.valid is not None,
    }
    return [name for name, there in parts.items() if there]
