"""Hydra and Khronos: hierarchical scene graphs of spark-dsg, from files or from the topic."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.fence import parse_in_fence, read_in_fence
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import LimitError, MapError, MissingDependencyError, errors_as
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import (
    Encoder,
    Method,
    Placement,
    SourceEdge,
    SourceObject,
    assemble,
)
from osmabench_ros.maps.importers.point_maps import membership_of, smallest_masks
from osmabench_ros.maps.importers.source_files import colors_of, digest_of, the_file
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType


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
    """Return the map with the vertices of `mesh`, as `plain_mesh` gives it, after its points."""
    if mesh is None:
        return semantic_map
    vertices = mesh['vertices']
    points = Placement(method, options).points(vertices[:3].T).astype(np.float32)
    connections = mesh['connections']
    masks = [indices[(indices >= 0) & (indices < len(points))] for indices in connections]
    own = {i + 1: mask for i, mask in enumerate(masks) if len(connections[i])}
    background = DenseMap(
        points,
        colors_of(vertices[3:6].T, unit_range=True) if len(vertices) >= 6 else None,
        _labels(mesh, len(points), options),
        smallest_masks(masks, len(points)),
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
        membership=membership_of([rows[node] for node in nodes], nodes) if nodes else None,
    )


METHOD = Method('hydra', World.Z_UP, {'clip': Encoder('ViT-L-14', 'openai')})
KHRONOS = dataclasses.replace(METHOD, name='khronos')
MAX_PAYLOAD_BYTES = 1 << 30
"""Largest graph that is read from a topic."""
_READING_ERRORS = (
    RuntimeError, ValueError, IndexError, TypeError, OverflowError, OSError
)  # fmt: skip
_LAYERS = {
    2: NodeKind.OBJECT, 3: NodeKind.PLACE, 4: NodeKind.ROOM, 5: NodeKind.BUILDING,
}  # fmt: skip
_FILES = ('dsg_with_mesh.json', 'backend/dsg_with_mesh.json', '*.sparkdsg', 'dsg.json', '*.json')
_LIBRARIES = ('spark_dsg',)
_PAYLOADS = ('.bin', '.dsg')


def import_map(path: Path, options: ImportOptions, method: Method = METHOD) -> SemanticMap:
    """Read a scene graph of Hydra or Khronos, z up by default.

    `path` is a `.json` or `.sparkdsg`; a `.bin` or `.dsg` with the `layer_contents` of a DsgUpdate
    message; or a folder with `dsg_with_mesh.json`. Objects, places, rooms and buildings come with
    their parents, "part of" edges to rooms and buildings, "connected to" edges within a layer, and
    the mesh's vertices as points. Agents are left out.
    """
    file = the_file(path, _FILES, 'scene graph of Hydra') if path.is_dir() else path
    if file.suffix in _PAYLOADS:
        return import_payload(read_bytes(file, MapError), options, method)
    _require_spark_dsg()
    graph = read_in_fence(read_graph, file, libraries=_LIBRARIES)
    return _semantic_map(graph, options, digest_of((file,), file.parent), method)


def import_khronos(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a scene graph of Khronos, whose objects carry meshes of their own; see `import_map`."""
    return import_map(path, options, KHRONOS)


def import_payload(payload: bytes, options: ImportOptions, method: Method = METHOD) -> SemanticMap:
    """Read the `layer_contents` of a full hydra_msgs/DsgUpdate; MapError for anything else."""
    if not 0 < len(payload) <= MAX_PAYLOAD_BYTES:
        raise MapError(
            f'a scene graph of {len(payload)} bytes; between 1 and {MAX_PAYLOAD_BYTES} are read'
        )
    _require_spark_dsg()
    what = 'the payload, of which only full updates can be read,'
    try:
        graph = parse_in_fence(read_payload, payload, what, libraries=_LIBRARIES)
    except LimitError as error:
        raise MapError(str(error)) from error
    return _semantic_map(graph, options, hashlib.sha256(payload).hexdigest(), method)


def _require_spark_dsg() -> None:
    if importlib.util.find_spec('spark_dsg') is None:
        raise MissingDependencyError(
            f'reading scene graphs of Hydra needs spark-dsg; {extra("hydra")}'
        )


def _semantic_map(
    graph: dict[str, Any], options: ImportOptions, digest: str, method: Method
) -> SemanticMap:
    objects = [
        SourceObject(**{**item, 'kind': NodeKind(item['kind']),
                        'labels': [tuple(label) for label in item['labels']]})
        for item in graph['objects']
    ]  # fmt: skip
    edges = [*_containment(objects), *(SourceEdge(*ends) for ends in graph['connections'])]
    made = assemble(method, options, objects, edges, source_sha256=digest, extras=graph['extras'])
    return with_mesh(made, graph['mesh'], method, options)


def read_graph(path: Path) -> dict[str, Any]:
    """Read objects, edges and mesh of a file, in the fence; MapError if it is none."""
    return _loaded(path, lambda kind: kind.load(str(path)))


def read_payload(path: Path) -> dict[str, Any]:
    """Read a file with a serialized graph; see `read_graph`."""
    return _loaded(path, lambda kind: kind.from_binary(path.read_bytes()))


def _loaded(path: Path, load: Callable[[Any], Any]) -> dict[str, Any]:
    import spark_dsg

    with errors_as(MapError, f'{path} is no scene graph that spark-dsg reads', _READING_ERRORS):
        return _plain(load(spark_dsg.DynamicSceneGraph))


def _plain(graph: Any) -> dict[str, Any]:
    nodes = [(layer, node) for layer in sorted(_LAYERS) for node in _nodes(graph, layer)]
    known = {node.id.value for _, node in nodes}
    names = {layer: _names(graph, layer) for layer in _LAYERS}
    return {
        'objects': [
            {**vars(_object(node, layer, names[layer], known)), 'kind': _LAYERS[layer].value}
            for layer, node in nodes
        ],
        'connections': list(_connections(graph, known)),
        'extras': {'source_nodes': int(graph.num_nodes()), 'source_edges': int(graph.num_edges())},
        'mesh': plain_mesh(graph, [node for _, node in nodes], names[2]),
    }


def _nodes(graph: Any, layer: int) -> Iterator[Any]:
    if graph.has_layer(layer):
        yield from sorted(graph.get_layer(layer).nodes, key=lambda node: node.id.value)


def _names(graph: Any, layer: int) -> dict[int, str]:
    labels = graph.get_labelspace(layer, 0)
    return dict(labels.labels_to_names) if labels else {}


def _symbol(value: int) -> str:
    import spark_dsg

    return str(spark_dsg.NodeSymbol(value).str())


def _object(node: Any, layer: int, names: dict[int, str], known: set[int]) -> SourceObject:
    attributes = node.attributes
    made = SourceObject(_symbol(node.id.value), kind=_LAYERS[layer])
    label = names.get(getattr(attributes, 'semantic_label', -1))
    given = str(getattr(attributes, 'name', '') or '')
    if label:
        made.labels = [(label, float('nan'))]
        if given and given != label:
            made.attributes['name'] = given
    elif given:
        made.labels = [(given, float('nan'))]
    parent = node.get_parent()
    if parent is not None and parent in known:
        made.parent = _symbol(parent)
    _take_box(made, attributes)
    _take_mesh(made, attributes)
    # A copy: spark-dsg hands out what goes with the graph.
    feature = np.array(getattr(attributes, 'semantic_feature', ()), np.float32).ravel()
    if feature.size and np.any(feature):
        made.features['clip'] = feature
    return made


def _take_box(made: SourceObject, attributes: Any) -> None:
    """Take the bounding box; a node without one has a position only."""
    box = getattr(attributes, 'bounding_box', None)
    if box is not None and box.is_valid():
        made.corners = _box_corners(box)
    else:
        made.center_and_size = (np.asarray(attributes.position).tolist(), (0.0, 0.0, 0.0))


def _box_corners(box: Any) -> NDArray[np.float64]:
    """Return corners in the order of Open3D's get_box_points."""
    signs = np.array(
        [[-1, -1, -1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1],
         [1, 1, 1], [-1, 1, 1], [1, -1, 1], [1, 1, -1]]
    )  # fmt: skip
    local = signs * np.asarray(box.dimensions, np.float64) / 2
    rotation = np.asarray(box.world_R_center, np.float64)
    return np.asarray(local @ rotation.T + np.asarray(box.world_P_center, np.float64))


def _take_mesh(made: SourceObject, attributes: Any) -> None:
    """Take the mesh of a Khronos object; its vertices are relative to the centre of its box."""
    mesh = getattr(attributes, 'mesh', None)
    mesh = mesh() if callable(mesh) else mesh
    if mesh is None or not mesh.num_vertices():
        return
    vertices = np.array(mesh.get_vertices(), np.float64)
    made.points = vertices[:3].T + np.asarray(attributes.bounding_box.world_P_center, np.float64)
    made.colors = colors_of(vertices[3:6].T, unit_range=True) if len(vertices) >= 6 else None
    seen = getattr(attributes, 'first_observed_ns', None)
    made.observations = len(seen) if seen is not None else 0


def _containment(objects: list[SourceObject]) -> Iterator[SourceEdge]:
    """Yield "part of" edges to the next room, floor or building above each node."""
    by_id = {item.source_id: item for item in objects}
    for item in objects:
        above, seen = item.parent, {item.source_id}
        while above is not None and above not in seen and by_id[above].kind is NodeKind.PLACE:
            seen.add(above)
            above = by_id[above].parent
        if above is not None and above not in seen and item.kind is not NodeKind.PLACE:
            yield SourceEdge(item.source_id, above, RelationType.PART_OF.value)


def _connections(graph: Any, known: set[int]) -> Iterator[tuple[str, str, str]]:
    for layer in sorted(_LAYERS):
        if not graph.has_layer(layer):
            continue
        ends = sorted((edge.source, edge.target) for edge in graph.get_layer(layer).edges)
        for source, target in ends:
            if source in known and target in known:
                yield _symbol(source), _symbol(target), 'connected to'
