"""Hydra and Khronos: hierarchical scene graphs of spark-dsg, from files or from the topic."""

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.fence import parse_in_fence, read_in_fence
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import LimitError, MapError, errors_as
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import (
    Encoder,
    MapBuilder,
    Method,
    SourceEdge,
    SourceObject,
    assemble,
    link_parents,
)
from osmabench_ros.maps.importers.point_maps import find_smallest_masks, make_membership
from osmabench_ros.maps.importers.source_files import find_file, hash_files, require, scale_colors
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, group_rows_by_id
from osmabench_ros.semantics.scene_graph import NodeKind

METHOD = Method('hydra', World.Z_UP, {'clip': Encoder('ViT-L-14', 'openai')})
KHRONOS = dataclasses.replace(METHOD, name='khronos')
# Largest graph that is read from a topic.
MAX_PAYLOAD_BYTES = 1 << 30
_READING_ERRORS = (
    RuntimeError, ValueError, IndexError, TypeError, OverflowError, OSError
)  # fmt: skip
_LAYERS = {
    2: NodeKind.OBJECT, 3: NodeKind.PLACE, 4: NodeKind.ROOM, 5: NodeKind.BUILDING,
}  # fmt: skip
_FILES = ('dsg_with_mesh.json', 'backend/dsg_with_mesh.json', '*.sparkdsg', 'dsg.json', '*.json')
_LIBRARIES = ('spark_dsg',)
_PAYLOADS = ('.bin', '.dsg')
# Signs of the corners of a box in the order of Open3D's get_box_points.
_CORNERS = np.array(
    [[-1, -1, -1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1],
     [1, 1, 1], [-1, 1, 1], [1, -1, 1], [1, 1, -1]]
)  # fmt: skip


def import_map(path: Path, options: ImportOptions, method: Method = METHOD) -> SemanticMap:
    """Read a scene graph of Hydra or Khronos, z up by default.

    `path` is a `.json` or `.sparkdsg`; a `.bin` or `.dsg` with the `layer_contents` of a DsgUpdate
    message; or a folder with `dsg_with_mesh.json`. Objects, places, rooms and buildings come with
    their parents, "part of" edges to rooms and buildings, "connected to" edges within a layer, and
    the mesh's vertices as points. Agents are left out.
    """
    file = find_file(path, _FILES, 'scene graph of Hydra')
    if file.suffix in _PAYLOADS:
        return import_payload(read_bytes(file, MapError), options, method)
    require('spark_dsg', 'scene graphs of Hydra', 'hydra')
    graph = read_in_fence(read_graph, file, libraries=_LIBRARIES)
    return _build_map(graph, options, hash_files(file), method)


def import_khronos(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a scene graph of Khronos, in which objects have own meshes; see `import_map`."""
    return import_map(path, options, KHRONOS)


def import_payload(payload: bytes, options: ImportOptions, method: Method = METHOD) -> SemanticMap:
    """Read the `layer_contents` of a full hydra_msgs/DsgUpdate; MapError for anything else."""
    if not 0 < len(payload) <= MAX_PAYLOAD_BYTES:
        limits = f'between 1 and {MAX_PAYLOAD_BYTES} are read'
        raise MapError(f'a scene graph of {len(payload)} bytes; {limits}')
    require('spark_dsg', 'scene graphs of Hydra', 'hydra')
    what = 'the payload, of which only full updates can be read,'
    try:
        graph = parse_in_fence(read_graph, payload, what, libraries=_LIBRARIES, is_payload=True)
    except LimitError as error:
        raise MapError(str(error)) from error
    return _build_map(graph, options, hashlib.sha256(payload).hexdigest(), method)


def _build_map(
    graph: dict[str, Any], options: ImportOptions, digest: str, method: Method
) -> SemanticMap:
    objects = [
        SourceObject(**item | {'kind': NodeKind(item['kind'])}) for item in graph['objects']
    ]
    edges = list(link_parents(objects))
    edges += [SourceEdge(one, two, 'connected to') for one, two in graph['connections']]
    made = assemble(method, options, objects, edges, source_sha256=digest, extras=graph['extras'])
    if graph['mesh'] is None:
        return made
    return dataclasses.replace(made, dense=_add_mesh(made.dense, graph['mesh'], method, options))


def _add_mesh(
    objects: DenseMap | None, mesh: Mapping[str, Any], method: Method, options: ImportOptions
) -> DenseMap:
    """Return the points of objects and, after them, the vertices of the mesh of the scene."""
    vertices, known = mesh['vertices'], options.label_set
    points = MapBuilder(method, options).into_map.transform(vertices[:3].T).astype(np.float32)
    labels = None if known is None else np.full(len(points), UNLABELLED, np.int32)
    if labels is not None and known is not None and len(mesh['labels']) == len(points):
        for label, name in mesh['names']:
            labels[mesh['labels'] == label] = known.id_of(name)
    masks = [indices[(indices >= 0) & (indices < len(points))] for indices in mesh['connections']]
    colors = scale_colors(vertices[3:6].T, unit_range=True) if len(vertices) >= 6 else None
    parts: dict[str, Any] = {
        'points': points,
        'colors': colors,
        'labels': labels,
        'instances': find_smallest_masks(masks, len(points)),
    }
    none: dict[str, Any] = {k: None if v is None else v[:0] for k, v in parts.items()}
    own = objects or DenseMap(**none)
    for name, part in parts.items():
        before = getattr(own, name)
        whole = part is not None and before is not None
        parts[name] = np.concatenate([before, part]) if whole else None
    # The points of every node: its own, and its part of the mesh.
    connected = [i for i, indices in enumerate(mesh['connections']) if len(indices)]
    rows = {i + 1: masks[i] + len(own.points) for i in connected}
    assert own.instances is not None
    for node, found in group_rows_by_id(own.instances).items():
        rows[node] = np.concatenate([found, rows.get(node, np.zeros(0, np.int64))])
    nodes = sorted(rows)
    membership = make_membership([rows[node] for node in nodes], nodes) if nodes else None
    return DenseMap(**parts, membership=membership)


def read_graph(path: Path, is_payload: bool = False) -> dict[str, Any]:
    """Read objects, edges and mesh of a file or payload, in the fence; MapError if unreadable."""
    import spark_dsg

    kind = spark_dsg.DynamicSceneGraph
    with errors_as(MapError, f'{path} is not a scene graph that spark-dsg reads', _READING_ERRORS):
        graph = kind.from_binary(path.read_bytes()) if is_payload else kind.load(str(path))
        return _read_plain(graph)


def _read_plain(graph: Any) -> dict[str, Any]:
    layers = {i: graph.get_layer(i) for i in sorted(_LAYERS) if graph.has_layer(i)}
    spaces = {i: graph.get_labelspace(i, 0) for i in _LAYERS}
    names = {i: dict(space.labels_to_names) if space else {} for i, space in spaces.items()}
    nodes = [
        (i, node)
        for i, layer in layers.items()
        for node in sorted(layer.nodes, key=lambda node: node.id.value)
    ]
    known = {node.id.value for _, node in nodes}
    connections = [
        tuple(map(_format_symbol, pair))
        for layer in layers.values()
        for pair in sorted((edge.source, edge.target) for edge in layer.edges)
        if known.issuperset(pair)
    ]
    mesh = graph.mesh if graph.has_mesh() else None
    return {
        'objects': [
            {**vars(_read_object(node, names[i], known)), 'kind': _LAYERS[i].value}
            for i, node in nodes
        ],
        'connections': connections,
        'extras': {'source_nodes': int(graph.num_nodes()), 'source_edges': int(graph.num_edges())},
        'mesh': {
            'vertices': np.array(mesh.get_vertices(), np.float64),
            'labels': np.array(mesh.get_labels(), np.int64),
            'names': list(names[2].items()),
            'connections': [
                np.array(getattr(node.attributes, 'mesh_connections', ()), np.int64)
                for _, node in nodes
            ],
        }
        if mesh is not None and mesh.num_vertices()
        else None,
    }


def _format_symbol(value: int) -> str:
    import spark_dsg

    return str(spark_dsg.NodeSymbol(value).str())


def _read_object(node: Any, names: dict[int, str], known: set[int]) -> SourceObject:
    attributes, parent = node.attributes, node.get_parent()
    made = SourceObject(_format_symbol(node.id.value))
    given = str(getattr(attributes, 'name', '') or '')
    label = names.get(getattr(attributes, 'semantic_label', -1)) or given
    made.labels = [(label, float('nan'))]
    if given and given != label:
        made.attributes['name'] = given
    if parent is not None and parent in known:
        made.parent = _format_symbol(parent)
    box = getattr(attributes, 'bounding_box', None)
    if box is not None and box.is_valid():
        local = _CORNERS * np.asarray(box.dimensions, np.float64) / 2
        rotation = np.asarray(box.world_R_center, np.float64)
        made.corners = local @ rotation.T + np.asarray(box.world_P_center, np.float64)
    else:
        made.center_and_size = (np.asarray(attributes.position).tolist(), (0.0, 0.0, 0.0))
    _take_mesh(made, attributes)
    # A copy: spark-dsg hands out memory of the graph.
    feature = np.array(getattr(attributes, 'semantic_feature', ()), np.float32).ravel()
    if feature.size and np.any(feature):
        made.features['clip'] = feature
    return made


def _take_mesh(made: SourceObject, attributes: Any) -> None:
    """Take the mesh of a Khronos object, with vertices relative to the centre of its box."""
    mesh = getattr(attributes, 'mesh', None)
    mesh = mesh() if callable(mesh) else mesh
    if mesh is None or not mesh.num_vertices():
        return
    vertices = np.array(mesh.get_vertices(), np.float64)
    made.points = vertices[:3].T + np.asarray(attributes.bounding_box.world_P_center, np.float64)
    made.colors = scale_colors(vertices[3:6].T, unit_range=True) if len(vertices) >= 6 else None
    seen = getattr(attributes, 'first_observed_ns', None)
    made.observations = 0 if seen is None else len(seen)
