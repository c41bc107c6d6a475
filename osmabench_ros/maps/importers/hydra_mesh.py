"""The background mesh of a Hydra scene graph as points with labels and instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.placement import Placement
from osmabench_ros.maps.importers.source_files import colors_of
from osmabench_ros.maps.importers.source_model import Method
from osmabench_ros.maps.semantic_map import DenseMap, Membership, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED


def plain_mesh(
    graph: Any, nodes: Sequence[Any], names: Mapping[int, str]
) -> dict[str, Any] | None:
    """Return the mesh of a graph as arrays, with the vertices that belong to each node."""
    mesh = graph.mesh if graph.has_mesh() else None
    if mesh is None or not mesh.num_vertices():
        return None
    return {
        'vertices': np.array(mesh.get_vertices(), np.float64),
        'labels': np.array(mesh.get_labels(), np.int64),
        'names': list(names.items()),
        'connections': [
            np.array(getattr(node.attributes, 'mesh_connections', ()), np.int64) for node in nodes
        ],
    }


def with_mesh(
    semantic_map: SemanticMap,
    mesh: Mapping[str, Any] | None,
    method: Method,
    options: ImportOptions,
) -> SemanticMap:
    """Return the map with the vertices of the graph's mesh as points, if there is a mesh.

    Parameters
    ----------
    semantic_map : SemanticMap
        The map without the mesh; points of Khronos objects stay before those of the mesh.
    mesh : mapping, optional
        As `plain_mesh` gives it; its labels get the ids of their names in the options' label set.
    """
    if mesh is None:
        return semantic_map
    vertices = mesh['vertices']
    points = Placement(method, options).points(vertices[:3].T).astype(np.float32)
    own = {
        node: indices[(indices >= 0) & (indices < len(points))]
        for node, indices in enumerate(mesh['connections'], 1)
        if len(indices)
    }
    instances = np.zeros(len(points), np.int32)
    for node in sorted(own, key=lambda node: -len(own[node])):
        instances[own[node]] = node
    background = DenseMap(
        points,
        colors_of(vertices[3:6].T, unit_range=True) if len(vertices) >= 6 else None,
        _labels(mesh, len(points), options),
        instances,
    )
    return dataclasses.replace(semantic_map, dense=_joined(semantic_map.dense, background, own))


def _labels(
    mesh: Mapping[str, Any], count: int, options: ImportOptions
) -> NDArray[np.int32] | None:
    if options.label_set is None:
        return None
    labels = mesh['labels']
    made = np.full(count, UNLABELLED, np.int32)
    if len(labels) == count:
        for label, name in mesh['names']:
            made[labels == label] = options.label_set.id_of(name)
    return made


def _joined(
    objects: DenseMap | None, mesh: DenseMap, own: Mapping[int, NDArray[np.int64]]
) -> DenseMap:
    """Put the points of objects before those of the mesh; list the points of every node."""
    start = 0 if objects is None else len(objects.points)
    rows = {node: indices + start for node, indices in own.items()}
    if objects is not None and objects.instances is not None:
        for node in np.unique(objects.instances).tolist():
            mine = np.flatnonzero(objects.instances == node)
            rows[node] = np.concatenate([mine, rows.get(node, np.zeros(0, np.int64))])
    nodes = sorted(rows)
    sizes = [len(rows[node]) for node in nodes]
    membership = Membership(
        np.array(nodes, np.int32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *(rows[node] for node in nodes)]).astype(np.int64),
    )

    def both(part: str) -> Any:
        one = None if objects is None else getattr(objects, part)
        other = getattr(mesh, part)
        if objects is None:
            return other
        return None if one is None or other is None else np.concatenate([one, other])

    return DenseMap(
        both('points'),
        both('colors'),
        both('labels'),
        both('instances'),
        membership=membership if nodes else None,
    )
