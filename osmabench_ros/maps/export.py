"""Summaries of maps, and maps for other tools: point clouds, OpenLex3D's interchange form."""

import json
from collections import Counter
from dataclasses import dataclass
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
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import THINGS


def summary_of(semantic_map: SemanticMap) -> list[tuple[str, str]]:
    """Return (part, amount) pairs as text; missing parts are named as absent."""
    header = semantic_map.header
    graph = semantic_map.graph
    known = semantic_map.label_set
    origin = header.provenance
    kinds = Counter(node.kind.value for node in graph.nodes)
    relations = Counter(edge.type for edge in graph.edges)
    rows = [
        ('method', f'{origin.method} {origin.method_version}'.strip()),
        ('scene', f'{origin.scene or "unknown"}, condition {origin.condition or "unknown"}'),
        ('frame', f'{header.frame_id}, z up, metres'),
        ('state', ': '.join(filter(None, (header.state, header.remark)))),
        ('frames used', str(origin.frames_used or 'unknown')),
        ('nodes', _format_counts(kinds)),
        ('edges', _format_counts(relations)),
        ('label set', f'{known.name}, {len(known.classes)} classes' if known else 'none'),
    ]
    rows += _list_dense_rows(semantic_map.dense)
    for space in semantic_map.feature_spaces.values():
        count, dimension = space.vectors.shape
        use = 'comparable with text' if space.text_comparable else 'not comparable with text'
        encoder = f'{space.model} {space.pretrained}'.strip()
        rows.append((f'features "{space.name}"', f'{count} x {dimension}, {encoder}, {use}'))
    return rows


def describe_contents(semantic_map: SemanticMap) -> str:
    """Return one line with the content and the extent of a map, which shows wrong axes."""
    graph, dense = semantic_map.graph, semantic_map.dense
    parts = [f'{len(graph.nodes)} nodes', f'{len(graph.edges)} edges']
    if dense is None or not len(dense.points):
        return ', '.join([*parts, 'no points'])
    width, depth, height = dense.points.max(axis=0) - dense.points.min(axis=0)
    parts.append(f'{len(dense.points)} points in {width:.1f} x {depth:.1f} x {height:.1f} m')
    if dense.labels is not None:
        parts.append(f'{int((dense.labels != UNLABELLED).sum())} labelled')
    return ', '.join(parts)


def _format_counts(counts: Counter[str]) -> str:
    listed = ', '.join(f'{count} {name}' for name, count in counts.most_common())
    return f'{counts.total()} ({listed})' if counts else '0'


def _list_dense_rows(dense: DenseMap | None) -> list[tuple[str, str]]:
    if dense is None:
        return [('points', 'none')]
    count = len(dense.points)
    rows = [('points', str(count))]
    if count:
        low = dense.points.min(axis=0)
        high = dense.points.max(axis=0)
        corners = ' to '.join(f'({x:.2f}, {y:.2f}, {z:.2f})' for x, y, z in (low, high))
        rows.append(('bounds in m', corners))
    for part, values, none in (
        ('labelled', dense.labels, UNLABELLED),
        ('in a node', dense.instances, 0),
        ('with a feature', dense.feature_rows, -1),
    ):
        share = 'not given' if values is None else str(int((values != none).sum()))
        rows.append((f'points {part}', share))
    if dense.membership is not None:
        rows.append(('memberships', str(len(dense.membership.point_indices))))
    return rows


@dataclass(frozen=True)
class Holdings:
    """Content of a map; `things` are nodes of objects or of the building.

    Relations are between these, not from one to its room; attributes are the keys that any of them
    has a value for, captions their texts, instances points that belong to nodes.
    """

    things: bool
    relations: bool
    attributes: frozenset[str]
    captions: bool
    instances: bool


def list_holdings(semantic_map: SemanticMap) -> Holdings:
    """Return the content of a map."""
    graph, dense = semantic_map.graph, semantic_map.dense
    things = {node.id: node for node in graph.nodes if node.kind in THINGS}
    return Holdings(
        things=bool(things),
        relations=any(edge.source in things and edge.target in things for edge in graph.edges),
        attributes=frozenset(key for node in things.values() for key in node.attributes),
        captions=any(node.captions for node in things.values()),
        instances=dense is not None
        and (dense.instances is not None or dense.membership is not None),
    )


def export_openlex3d(semantic_map: SemanticMap, directory: Path) -> int:
    """Write point_cloud.pcd, index.npy and embeddings.npy; return how many points were left out.

    Points without a feature are left out: OpenLex3D reads index -1 as the last object's feature,
    while ground truth with no point nearby counts as missing, as it should. Raises MapError
    without features that text can be compared with, RunError if the directory is not empty.
    """
    dense = semantic_map.dense
    if dense is None or dense.feature_rows is None:
        method = semantic_map.header.provenance.method
        raise MapError(f'the map of {method} has no points with features, which OpenLex3D scores')
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
        raise MapError(f'the map of {semantic_map.header.provenance.method} has no points')
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
    return _list_left_out(semantic_map, dense)


def _list_left_out(semantic_map: SemanticMap, dense: DenseMap) -> list[str]:
    graph = semantic_map.graph
    parts = {
        f'names, boxes and attributes of {len(graph.nodes)} nodes': graph.nodes,
        f'{len(graph.edges)} edges': graph.edges,
        'features': semantic_map.feature_spaces,
        'overlapping masks': dense.membership is not None,
        'which points were never looked at': dense.valid is not None,
    }
    return [name for name, there in parts.items() if there]
