"""Maps of objects without edges: BeyondBareQueries and DualMap."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.documents import read_text
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.assembly import Encoder, Method, SourceObject, assemble
from osmabench_ros.maps.pickles import CLASS, load_pickle
from osmabench_ros.maps.semantic_map import SemanticMap

DUALMAP = Method('dualmap', World.Z_UP, {'clip': Encoder('MobileCLIP-S2', 'datacompdr')})

_DUALMAP_KEYS = {CLASS, 'uid', 'pcd_points', 'pcd_colors', 'clip_ft', 'class_id', 'nav_goal'}
BBQ = Method(
    'bbq',
    World.HABITAT,
    {
        'clip': Encoder('EVA02-B-16', 'merged2b_s8b_b131k', templates=('an image of {}',)),
        'dino': Encoder('dinov2_vits14_reg', text_comparable=False),
    },
)

_BBQ_KEYS = {
    'id', 'num_detections', 'mask', 'descriptor', 'clip_ft', 'pcd_np', 'bbox_np', 'pcd_color_np',
}  # fmt: skip


def import_bbq(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a BBQ map, raw or with the CLIP features that OSMa-Bench adds.

    `path` is a folder with one `*.pkl.gz` of objects and, if they were captioned, one `*.json` of
    nodes; or the .pkl.gz, with the .json of the same name next to it. The default world is
    Habitat's. BBQ paints all points of an object in a random colour, so they come without colour.
    """
    pickle = source.find_file(path, ('*.pkl.gz',), 'BBQ map', besides=('meta.pkl.gz',))
    names = [f'{pickle.name.removesuffix(".pkl.gz")}.json', *(['*.json'] if path.is_dir() else [])]
    captions = source.find_any_file(pickle.parent, names, 'nodes')
    items = source.load_object_pickle(pickle)['objects']
    objects = [_read_bbq_object(item, i, pickle) for i, item in enumerate(items)]

    def describe(node: Any) -> None:
        if not 0 <= node['id'] < len(objects):
            text = f'a node has id {node["id"]}, but the map has {len(objects)} objects'
            raise MapError(f'{captions}: {text}; they are of different runs')
        objects[node['id']].captions = [str(node.get('description') or '')]

    if captions:
        source.read_each(source.read_json(captions), captions, describe)
    return assemble(
        BBQ,
        options,
        objects,
        source_sha256=source.hash_files(pickle, captions),
        extras=source.keep_unknown({str(i): item for i, item in enumerate(items)}, _BBQ_KEYS),
    )


def _read_bbq_object(item: Any, index: int, pickle: Path) -> SourceObject:
    where, features = f'{pickle}: objects[{index}]', {'clip': 'clip_ft', 'dino': 'descriptor'}
    made = source.read_object(item, str(index), where, features)
    made.colors = None
    if isinstance(item.get('id'), list):  # the frames in which it was seen
        made.observations = len(item['id'])
    return made


def import_dualmap(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a DualMap map.

    `path` is a folder with one `<uuid>.pkl` per object, and `class_names.json` (a list, or an
    object of id to name) or `class_names.txt` (one per line), copied from the file that DualMap's
    configuration names, if class ids are to get their names. The default world is z up.
    """
    pickles = sorted(path.glob('*.pkl')) if path.is_dir() else []
    if not pickles:
        raise MapError(f'{path} has no DualMap map; expected a folder with <uuid>.pkl files')
    name_file = source.find_any_file(
        path, ('class_names.txt', 'class_names.json'), 'file of class names'
    )
    names = {} if name_file is None else _read_class_names(name_file)
    states = {file.stem: _read_state(file) for file in pickles}
    objects = [_read_dualmap_object(file, states[file.stem], names) for file in pickles]
    digest = source.hash_files(*pickles, name_file)
    extras = source.keep_unknown(states, _DUALMAP_KEYS)
    return assemble(DUALMAP, options, objects, source_sha256=digest, extras=extras)


def _read_class_names(path: Path) -> dict[int, str]:
    if path.suffix == '.txt':
        return dict(enumerate(read_text(path, MapError).splitlines()))
    listed = source.read_json(path)
    names = source.read_each(listed, path, str)
    ids = source.read_each(list(listed), path, int) if isinstance(listed, dict) else None
    return dict(zip(ids or range(len(names)), names, strict=True))


def _read_state(file: Path) -> Mapping[str, Any]:
    state = load_pickle(file)
    if not isinstance(state, Mapping) or 'pcd_points' not in state:
        raise MapError(f'{file} holds no DualMap object: it has no "pcd_points"')
    return state


def _read_dualmap_object(
    file: Path, state: Mapping[str, Any], names: Mapping[int, str]
) -> SourceObject:
    points, colors = source.read_colored_points(state, 'pcd_points', 'pcd_colors', str(file))
    uid = state.get('uid')
    class_id = state.get('class_id')
    made = SourceObject(
        str(uid) if isinstance(uid, uuid.UUID | str) else file.stem, points=points, colors=colors
    )
    if state.get('nav_goal') is True:
        made.attributes['navigation_goal'] = True
    if isinstance(class_id, int):
        made.attributes['source_class_id'] = float(class_id)
        made.labels = [(names.get(class_id, ''), float('nan'))]
    feature = source.read_vector(state, 'clip_ft', str(file))
    if feature is not None and np.any(feature):
        made.features['clip'] = feature
    return made
