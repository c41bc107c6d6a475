"""BeyondBareQueries: objects with DINO descriptors and captions, no edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.assembly import Encoder, Method, SourceObject, assemble
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
    nodes; or the .pkl.gz, with the .json of the same name next to it. The default world is
    Habitat's. BBQ paints all points of an object in a random colour, so they come without colour.
    """
    pickle = source.find_file(path, ('*.pkl.gz',), 'BBQ map', besides=('meta.pkl.gz',))
    names = [f'{pickle.name.removesuffix(".pkl.gz")}.json', *(['*.json'] if path.is_dir() else [])]
    captions = source.find_any_file(pickle.parent, names, 'nodes')
    items = source.load_object_pickle(pickle)['objects']
    objects = [_read_object(item, i, f'{pickle}: objects[{i}]') for i, item in enumerate(items)]

    def describe(node: Any) -> None:
        if not 0 <= node['id'] < len(objects):
            raise MapError(
                f'{captions}: a node has id {node["id"]}, but the map has {len(objects)} objects; '
                'nodes and objects belong to different runs'
            )
        objects[node['id']].captions = [str(node.get('description') or '')]

    if captions:
        source.read_each(source.read_json(captions), captions, describe)
    return assemble(
        METHOD,
        options,
        objects,
        source_sha256=source.hash_files(pickle, captions),
        extras=source.keep_unknown({str(i): item for i, item in enumerate(items)}, _KNOWN),
    )


def _read_object(item: Any, index: int, where: str) -> SourceObject:
    made = source.read_object(item, str(index), where, {'clip': 'clip_ft', 'dino': 'descriptor'})
    made.colors = None
    if isinstance(item.get('id'), list):  # the frames in which it was seen
        made.observations = len(item['id'])
    return made
