"""HOV-SG: floors, rooms and objects with CLIP embeddings, y up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import assembly
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.pickles import load_torch
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.scene_graph import NodeKind

_CLIP = replace(assembly.VIT_H, templates=('{}', 'There is the {} in the scene.'))
METHOD = assembly.Method('hovsg', World.HABITAT, {'clip': _CLIP})

_LAYERS = {'floors': NodeKind.FLOOR, 'rooms': NodeKind.ROOM, 'objects': NodeKind.OBJECT}
_KNOWN = {
    'floor_id', 'room_id', 'object_id', 'name', 'vertices', 'embedding', 'rooms', 'objects',
    'room_height', 'room_zero_level', 'floor_height', 'floor_zero_level',
}  # fmt: skip


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a HOV-SG graph, or its flat segments.

    `path` is a folder with `graph/{floors,rooms,objects}/<id>.{json,ply}` (or that `graph`
    folder); or with `mask_feats.pt` and `objects/pcd_<i>.ply` when no graph was built. The default
    world is Habitat's, y up. Objects lie in rooms, rooms in floors: as parents and as edges "part
    of".
    """
    for folder in (path / 'graph', path):
        if (folder / 'objects').is_dir() and (folder / 'rooms').is_dir():
            return _import_graph(folder, options)
    if (path / 'mask_feats.pt').is_file() and (path / 'objects').is_dir():
        return _import_segments(path, options)
    graph = 'graph/floors, graph/rooms and graph/objects'
    segments = 'mask_feats.pt and objects/pcd_<i>.ply'
    raise MapError(f'{path} has no HOV-SG map; expected {graph}, or {segments}')


def _import_graph(folder: Path, options: ImportOptions) -> SemanticMap:
    used: list[Path] = []
    objects: dict[str, assembly.SourceObject] = {}
    contents: dict[str, Any] = {}
    for layer, kind in _LAYERS.items():
        for file in sorted((folder / layer).glob('*.json')):
            data = source.read_json(file)
            cloud = file.with_suffix('.ply')
            if not isinstance(data, Mapping):
                raise MapError(f'{file} holds no object')
            made = _read_node(data, file, kind)
            if cloud.is_file():
                points, colors = source.read_points(cloud)
                if kind is NodeKind.OBJECT:  # rooms and floors get bounds only
                    made.points = points
                    made.colors = colors
                    made.center_and_size = None
                elif len(points):
                    made.center_and_size = _find_bounds(points)
            used += [file, cloud] if cloud.is_file() else [file]
            objects[made.source_id], contents[made.source_id] = made, data
    if all(item.kind is not NodeKind.OBJECT for item in objects.values()):
        raise MapError(f'{folder} has no objects/<id>.json')
    for item in objects.values():
        item.parent = item.parent if item.parent in objects else None
    nodes = list(objects.values())
    return assembly.assemble(
        METHOD,
        options,
        nodes,
        list(assembly.link_parents(nodes)),
        source_sha256=source.hash_files(*used),
        extras=source.keep_unknown(contents, _KNOWN, 'nodes'),
    )


def _read_node(data: Mapping[str, Any], file: Path, kind: NodeKind) -> assembly.SourceObject:
    made = assembly.SourceObject(f'{kind.value} {file.stem}', kind=kind)
    made.labels = [(str(data.get('name') or ''), float('nan'))]
    above = {NodeKind.ROOM: NodeKind.FLOOR, NodeKind.OBJECT: NodeKind.ROOM}.get(kind)
    if above is not None:
        made.parent = f'{above.value} {data.get(f"{above.value}_id")}'
    heights = ('room_height', 'room_zero_level', 'floor_height', 'floor_zero_level')
    made.attributes = {
        f'{key}_m': float(data[key]) for key in heights if isinstance(data.get(key), int | float)
    }
    corners = _read_corners(data.get('vertices'))
    if corners is not None:
        made.corners = corners if len(corners) == 8 else None
        made.center_and_size = _find_bounds(corners)
    feature = source.read_vector(data, 'embedding', str(file)) if data.get('embedding') else None
    if feature is not None:
        made.features['clip'] = feature
    return made


def _find_bounds(points: NDArray[np.float64]) -> tuple[Sequence[float], Sequence[float]]:
    box = AxisAlignedBox.around(points)
    return box.center.tolist(), box.size.tolist()


def _read_corners(values: Any) -> NDArray[np.float64] | None:
    try:
        corners = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return None
    usable = corners.ndim == 2 and corners.shape[1] == 3 and len(corners) > 0
    return corners if usable and np.isfinite(corners).all() else None


def _import_segments(path: Path, options: ImportOptions) -> SemanticMap:
    count = len(list((path / 'objects').glob('pcd_*.ply')))
    clouds = [path / 'objects' / f'pcd_{i}.ply' for i in range(count)]
    feature_file = path / 'mask_feats.pt'
    features = source.check_numbers(load_torch(feature_file), str(feature_file))
    if features.ndim != 2 or len(features) != count:
        held = f'{feature_file} holds features {features.shape}'
        raise MapError(f'{held}, {path}/objects has {count} segments')
    objects = []
    for i, cloud in enumerate(clouds):
        points, colors = source.read_points(cloud)  # they must be numbered without gaps
        made = assembly.SourceObject(str(i), points=points, colors=colors)
        if np.any(features[i]):
            made.features['clip'] = features[i]
        objects.append(made)
    digest = source.hash_files(*clouds, feature_file)
    return assembly.assemble(METHOD, options, objects, source_sha256=digest)
