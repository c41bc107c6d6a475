"""BeyondBareQueries: objects with DINO descriptors and captions, no edges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import Encoder, Method, SourceObject, assemble
from osmabench_ros.maps.importers.source_files import (
    a_file,
    digest_of,
    load_object_pickle,
    object_of,
    read_json,
    the_file,
    unknown_data,
)
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method(
    'bbq',
    World.HABITAT,
    {
        'clip': Encoder('EVA02-B-16', 'merged2b_s8b_b131k', templates=('an image of {}',)),
        'dino': Encoder('dinov2_vits14_reg', text_comparable=False),
    },
)

_KNOWN = {
    'id', 'num_detections', 'mask', 'descriptor', 'clip_ft', 'pcd_np', 'bbox_np', 'pcd_color_np',
}  # fmt: skip


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a BBQ map, raw or with the CLIP features that OSMa-Bench adds.

    `path` is a folder with one `*.pkl.gz` of objects and, if they were captioned, one `*.json` of
    nodes; or the .pkl.gz, with the .json of the same name beside it. The default world is
    Habitat's. BBQ paints points with a random colour an object, so they come without colour.
    """
    if path.is_dir():
        pickle = the_file(path, ('*.pkl.gz',), 'BBQ map', besides=('meta.pkl.gz',))
        nodes = a_file(path, (f'{pickle.name.removesuffix(".pkl.gz")}.json', '*.json'), 'nodes')
    else:
        pickle = path
        nodes = a_file(path.parent, (f'{path.name.removesuffix(".pkl.gz")}.json',), 'nodes')
    items = load_object_pickle(pickle)['objects']
    objects = [_object(item, i, f'{pickle}: objects[{i}]') for i, item in enumerate(items)]
    if nodes:
        _describe(objects, read_json(nodes), nodes)
    files = [file for file in (pickle, nodes) if file]
    unknown = unknown_data({str(i): item for i, item in enumerate(items)}, _KNOWN)
    return assemble(
        METHOD,
        options,
        objects,
        source_sha256=digest_of(files, pickle.parent),
        extras={'objects': unknown} if unknown else {},
    )


def _object(item: Any, index: int, where: str) -> SourceObject:
    made = object_of(item, str(index), where, {'clip': 'clip_ft', 'dino': 'descriptor'})
    made.colors = None
    frames = item.get('id')
    if isinstance(frames, list):
        made.observations = len(frames)
    return made


def _describe(objects: list[SourceObject], listed: Any, path: Path) -> None:
    if not isinstance(listed, list):
        raise MapError(f'{path} holds no list of nodes')
    for i, node in enumerate(listed):
        if not isinstance(node, Mapping) or not isinstance(node.get('id'), int):
            raise MapError(f'{path}: node {i} has no id')
        if not 0 <= node['id'] < len(objects):
            raise MapError(
                f'{path}: node {i} has id {node["id"]}, but the map has {len(objects)} objects; '
                'nodes and objects belong to different runs'
            )
        objects[node['id']].captions = [str(node.get('description') or '')]
