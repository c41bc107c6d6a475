"""Writes maps as plain point clouds with labels, for viewers, scripts and other benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.files import filled_folder
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.pcd import write_pcd
from osmabench_ros.geometry.ply import write_ply
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.labels import LabelSet

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
    with filled_folder(directory) as folder:
        with (folder / f'cloud{suffix}').open('wb') as stream:
            _WRITERS[suffix](stream, _columns(dense))
        if dense.labels is not None and semantic_map.label_set is not None:
            text = json.dumps(_classes(semantic_map.label_set), indent=1, ensure_ascii=False)
            (folder / CLASSES).write_text(text + '\n', encoding='utf-8')
    return _left_out(semantic_map, dense)


def _columns(dense: DenseMap) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {
        name: np.asarray(dense.points[:, i], '<f4') for i, name in enumerate('xyz')
    }
    if dense.colors is not None:
        for i, name in enumerate(('red', 'green', 'blue')):
            columns[name] = dense.colors[:, i]
    if dense.labels is not None:
        columns['label'] = dense.labels.astype('<u2')
    if dense.instances is not None:
        columns['instance'] = dense.instances.astype('<i4')
    if dense.scores is not None:
        columns['score'] = dense.scores.astype('<f4')
    return columns


def _classes(label_set: LabelSet) -> dict[str, Any]:
    return {
        'classes': [
            {'id': item.id, 'name': item.name, 'structure': item.structure}
            for item in label_set.classes
        ]
    }


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
