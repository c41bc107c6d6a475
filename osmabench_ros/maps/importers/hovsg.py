"""HOV-SG: floors, rooms and objects with a CLIP embedding each, y up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import (
    Encoder,
    Method,
    SourceEdge,
    SourceObject,
    assemble,
)
from osmabench_ros.maps.importers.source_files import (
    digest_of,
    numbers_of,
    read_json,
    read_points,
    unknown_data,
)
from osmabench_ros.maps.pickles import load_torch
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType

METHOD = Method(
    'hovsg',
    World.HABITAT,
    {
        'clip': Encoder(
            'ViT-H-14', 'laion2b_s32b_b79k', templates=('{}', 'There is the {} in the scene.')
        )
    },
)

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
            return _graph(folder, options)
    if (path / 'mask_feats.pt').is_file() and (path / 'objects').is_dir():
        return _flat(path, options)
    raise MapError(
        f'{path} has no HOV-SG map; expected graph/floors, graph/rooms and graph/objects, '
        'or mask_feats.pt and objects/pcd_<i>.ply'
    )


def _graph(folder: Path, options: ImportOptions) -> SemanticMap:
    used: list[Path] = []
    objects: list[SourceObject] = []
    contents: dict[str, Any] = {}
    for layer, kind, parent in (
        ('floors', NodeKind.FLOOR, None),
        ('rooms', NodeKind.ROOM, 'floor_id'),
        ('objects', NodeKind.OBJECT, 'room_id'),
    ):
        for file in sorted((folder / layer).glob('*.json')):
            used.append(file)
            data = read_json(file)
            cloud = file.with_suffix('.ply')
            if cloud.is_file():
                used.append(cloud)
            objects.append(_node(data, file, kind, parent, cloud if cloud.is_file() else None))
            contents[objects[-1].source_id] = data
    known = {item.source_id for item in objects}
    for item in objects:
        if item.parent is not None and item.parent not in known:
            item.parent = None
    edges = [
        SourceEdge(item.source_id, item.parent, RelationType.PART_OF.value)
        for item in objects
        if item.parent is not None
    ]
    if not any(item.kind is NodeKind.OBJECT for item in objects):
        raise MapError(f'{folder} has no objects/<id>.json')
    return assemble(
        METHOD,
        options,
        objects,
        edges,
        source_sha256=digest_of(used, folder),
        extras={'nodes': unknown_data(contents, _KNOWN)},
    )


def _node(
    data: Any, file: Path, kind: NodeKind, parent: str | None, cloud: Path | None
) -> SourceObject:
    if not isinstance(data, Mapping):
        raise MapError(f'{file} holds no object')
    made = SourceObject(f'{kind.value} {file.stem}', kind=kind)
    if data.get('name'):
        made.labels = [(str(data['name']), float('nan'))]
    if parent and data.get(parent) is not None:
        above = NodeKind.FLOOR if kind is NodeKind.ROOM else NodeKind.ROOM
        made.parent = f'{above.value} {data[parent]}'
    made.attributes = {
        f'{key}_m': float(data[key])
        for key in ('room_height', 'room_zero_level', 'floor_height', 'floor_zero_level')
        if isinstance(data.get(key), int | float)
    }
    corners = _corners(data.get('vertices'))
    made.corners = corners if corners is not None and len(corners) == 8 else None
    if cloud is not None:
        _take_cloud(made, cloud)
    if made.points is None and made.center_and_size is None and corners is not None:
        made.center_and_size = _bounds(corners)
    embedding = data.get('embedding')
    if isinstance(embedding, list) and embedding:
        made.features['clip'] = _feature(embedding, file)
    return made


def _take_cloud(made: SourceObject, cloud: Path) -> None:
    """Give objects their points; rooms and floors get bounds only."""
    points, colors = read_points(cloud)
    if made.kind is NodeKind.OBJECT:
        made.points, made.colors = points, colors
    elif len(points):
        made.center_and_size = _bounds(points)


def _bounds(points: NDArray[np.float64]) -> tuple[Sequence[float], Sequence[float]]:
    low, high = points.min(axis=0), points.max(axis=0)
    return ((low + high) / 2).tolist(), (high - low).tolist()


def _corners(values: Any) -> NDArray[np.float64] | None:
    try:
        corners = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return None
    usable = corners.ndim == 2 and corners.shape[1] == 3 and len(corners) > 0
    return corners if usable and np.isfinite(corners).all() else None


def _feature(values: list[Any], file: Path) -> NDArray[np.float32]:
    try:
        return np.asarray(values, np.float32).ravel()
    except (TypeError, ValueError) as error:
        raise MapError(f'{file}: "embedding" holds no numbers') from error


def _flat(path: Path, options: ImportOptions) -> SemanticMap:
    clouds = [path / 'objects' / f'pcd_{i}.ply' for i in range(len(_listed(path)))]
    for cloud in clouds:
        if not cloud.is_file():
            raise MapError(f'{cloud} does not exist; the segments must be numbered without gaps')
    features = numbers_of(load_torch(path / 'mask_feats.pt'), f'{path}/mask_feats.pt')
    if features.ndim != 2 or len(features) != len(clouds):
        raise MapError(
            f'{path}/mask_feats.pt holds features {features.shape}, '
            f'{path}/objects has {len(clouds)} segments'
        )
    objects = []
    for i, cloud in enumerate(clouds):
        points, colors = read_points(cloud)
        made = SourceObject(str(i), points=points, colors=colors)
        if np.any(features[i]):
            made.features['clip'] = features[i]
        objects.append(made)
    digest = digest_of([*clouds, path / 'mask_feats.pt'], path)
    return assemble(METHOD, options, objects, source_sha256=digest)


def _listed(path: Path) -> list[Path]:
    found = sorted((path / 'objects').glob('pcd_*.ply'))
    if not found:
        raise MapError(f'{path}/objects has no pcd_<i>.ply')
    return found
