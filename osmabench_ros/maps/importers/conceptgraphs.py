"""ConceptGraphs: branch main with its language-model scene graph, and branch ali-dev."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    a_file,
    digest_of,
    load_object_pickle,
    object_of,
    plain,
    read_json,
    unknown_data,
)
from osmabench_ros.maps.semantic_map import IN_SCENE_GRAPH, SemanticMap
from osmabench_ros.semantics.scene_graph import NodeKind

METHOD = Method(
    'conceptgraphs',
    World.HABITAT,
    {
        'clip': Encoder('ViT-H-14', 'laion2b_s32b_b79k', templates=('an image of {}',)),
        'text': Encoder('ViT-H-14', 'laion2b_s32b_b79k'),
    },
)

_PICKLES = (
    'pcd_saves/full_pcd_*_post.pkl.gz', 'pcd_saves/full_pcd_*.pkl.gz', 'full_pcd_*_post.pkl.gz',
    'full_pcd_*.pkl.gz', 'pcd_*.pkl.gz', 'map/pcd_*.pkl.gz', 'exps/*/pcd_*.pkl.gz',
)  # fmt: skip
_KNOWN = {
    'pcd_np', 'pcd_color_np', 'bbox_np', 'clip_ft', 'text_ft', 'mask', 'num_detections',
    'class_name', 'class_id', 'is_background', 'id', 'curr_obj_num', 'captions',
    'consolidated_caption', 'caption_dict', 'contain_number', 'inst_color', 'xyxy', 'pixel_area',
    'color_path', 'image_idx', 'mask_idx', 'conf', 'n_points',
}  # fmt: skip


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a ConceptGraphs map.

    `path` is the folder of a scene (`pcd_saves/full_pcd_*.pkl.gz`, with
    `sg_cache/scene_graph.json` and `sg_cache/cfslam_object_relations.json` if they were made), the
    folder of an ali-dev experiment (`pcd_*.pkl.gz`, `obj_json_*.json`, `edge_json_*.json`), a
    .pkl.gz, or a scene_graph.json alone. The default world is Habitat's, as OSMa-Bench leaves the
    poses. Objects that the scene graph left out have the attribute ``in_scene_graph: False``.
    """
    if path.suffix == '.json':
        return _graph_only(path, options)
    pickle = path if path.is_file() else a_file(path, _PICKLES, 'ConceptGraphs map')
    if pickle is None:
        graphs = ('scene_graph.json', 'sg_cache/scene_graph.json')
        graph_file = a_file(path, graphs, 'ConceptGraphs map')
        if graph_file is None:
            raise MapError(
                f'{path} has no ConceptGraphs map; expected pcd_saves/full_pcd_*.pkl.gz (main), '
                'pcd_*.pkl.gz (ali-dev), or sg_cache/scene_graph.json for the graph alone'
            )
        return _graph_only(graph_file, options)
    data = load_object_pickle(pickle)
    if any('curr_obj_num' in item for item in data['objects'] if isinstance(item, Mapping)):
        return _ali_dev(data, pickle, options)
    return _main(data, pickle, path, options)


def _main(
    data: Mapping[str, Any], pickle: Path, path: Path, options: ImportOptions
) -> SemanticMap:
    folder = path if path.is_dir() else pickle.parent.parent
    graph_file = a_file(folder, ('sg_cache/scene_graph.json',), 'scene graph')
    described = described_nodes(read_json(graph_file), graph_file) if graph_file else {}
    class_names = data.get('class_names')
    objects = [
        _object(item, str(i), f'{pickle}: objects[{i}]', class_names)
        for i, item in enumerate(data['objects'])
    ]
    if described:
        _describe(objects, described, str(graph_file))
    background = data.get('bg_objects') or []
    for i, item in enumerate(background):
        made = _object(item, f'background {i}', f'{pickle}: bg_objects[{i}]', class_names)
        made.kind = NodeKind.BACKGROUND
        objects.append(made)
    edges: list[SourceEdge] = []
    notes = _extras(data)
    relation_file = a_file(folder, ('sg_cache/cfslam_object_relations.json',), 'relations')
    if relation_file and described:
        order = list(described)
        edges, skipped = language_model_edges(read_json(relation_file), order, relation_file)
        notes['relations_without_an_edge'] = skipped
    files = [file for file in (pickle, graph_file, relation_file) if file]
    return assemble(METHOD, options, objects, edges, source_sha256=_digest(files), extras=notes)


def _object(
    item: Any, source_id: str, where: str, class_names: Sequence[str] | None
) -> SourceObject:
    made = object_of(item, source_id, where, {'clip': 'clip_ft', 'text': 'text_ft'})
    made.labels = _voted_labels(item, class_names)
    if item.get('is_background'):
        made.kind = NodeKind.BACKGROUND
    return made


def _voted_labels(
    item: Mapping[str, Any], class_names: Sequence[str] | None
) -> list[tuple[str, float]]:
    """Return the classes of the detections with their shares, most frequent first."""
    names = item.get('class_name')
    if isinstance(names, str):
        return [(names, float('nan'))]
    if not isinstance(names, list):
        ids = item.get('class_id')
        if not isinstance(ids, list) or class_names is None:
            return []
        names = [class_names[i] for i in ids if isinstance(i, int) and 0 <= i < len(class_names)]
    counts = Counter(str(name) for name in names)
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(name, count / len(names)) for name, count in ranked]


def _describe(
    objects: Sequence[SourceObject], described: Mapping[str, Mapping[str, Any]], where: str
) -> None:
    """Give objects the tags and captions of the scene graph; ids are indices into the map."""
    known = {item.source_id: item for item in objects}
    for source_id in described:
        if source_id not in known:
            raise MapError(
                f'{where} names object {source_id}, but the map has {len(objects)} objects; '
                'graph and map belong to different runs'
            )
    for item in objects:
        node = described.get(item.source_id)
        item.attributes[IN_SCENE_GRAPH] = node is not None
        if node is not None:
            item.labels = [(tag, float('nan')) for tag in node['tags']] or item.labels
            item.captions = [node['caption']]


def _ali_dev(data: Mapping[str, Any], pickle: Path, options: ImportOptions) -> SemanticMap:
    folder = pickle.parent
    suffix = pickle.name.removeprefix('pcd_').removesuffix('.pkl.gz')
    objects = []
    for i, item in enumerate(data['objects']):
        where = f'{pickle}: objects[{i}]'
        made = _object(item, str(item.get('curr_obj_num', i)), where, data.get('class_names'))
        made.captions = [str(item.get('consolidated_caption') or '')]
        if item.get('id') is not None:
            made.attributes['uuid'] = str(item['id'])
        objects.append(made)
    edge_file = a_file(folder, (f'edge_json_{suffix}.json', 'edge_json_*.json'), 'edges')
    object_file = a_file(folder, (f'obj_json_{suffix}.json', 'obj_json_*.json'), 'objects')
    if object_file:
        _take_captions(objects, read_json(object_file))
    if edge_file:
        edges = frame_edges(read_json(edge_file), edge_file)
    else:
        edges = _pickled_edges(data, [item.source_id for item in objects], pickle)
    files = [file for file in (pickle, edge_file, object_file) if file]
    return assemble(
        METHOD, options, objects, edges, source_sha256=_digest(files), extras=_extras(data)
    )


def _take_captions(objects: Sequence[SourceObject], listed: Any) -> None:
    entries = listed.values() if isinstance(listed, Mapping) else ()
    captions = {
        str(entry.get('id')): entry.get('object_caption')
        for entry in entries
        if isinstance(entry, Mapping)
    }
    for item in objects:
        if not any(item.captions) and captions.get(item.source_id):
            item.captions = [str(captions[item.source_id])]


def _pickled_edges(
    data: Mapping[str, Any], order: Sequence[str], pickle: Path
) -> list[SourceEdge]:
    """Return edges of the pickle; their ids are indices into the list of objects."""
    stored = data.get('edges')
    stored = stored.get('edges') if isinstance(stored, Mapping) else stored
    edges = []
    for i, edge in enumerate(stored or ()):
        try:
            source, target = order[edge['obj1_index']], order[edge['obj2_index']]
            edges.append(SourceEdge(source, target, str(edge['rel_type'])))
        except (IndexError, KeyError, TypeError) as error:
            raise MapError(f'{pickle}: edges[{i}] is malformed: {error!r}') from error
    return edges


def _graph_only(path: Path, options: ImportOptions) -> SemanticMap:
    """Read nodes without points: boxes rounded to 0.1 m that have lost their rotation."""
    described = described_nodes(read_json(path), path)
    objects = [
        SourceObject(
            source_id,
            labels=[(tag, float('nan')) for tag in node['tags']],
            captions=[node['caption']],
            center_and_size=(node['center'], node['extent']),
            attributes={'box_is_approximate': True},
        )
        for source_id, node in described.items()
    ]
    edges: list[SourceEdge] = []
    files, notes = [path], {}
    relations = path.with_name('cfslam_object_relations.json')
    if relations.is_file():
        files.append(relations)
        edges, skipped = language_model_edges(read_json(relations), list(described), relations)
        notes['relations_without_an_edge'] = skipped
    return assemble(METHOD, options, objects, edges, source_sha256=_digest(files), extras=notes)


def _extras(data: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: plain(data[key]) for key in ('cfg', 'class_names') if data.get(key) is not None}
    unknown = unknown_data({str(i): item for i, item in enumerate(data['objects'])}, _KNOWN)
    return {**kept, 'objects': unknown} if unknown else kept


def _digest(files: Sequence[Path]) -> str:
    common = files[0].parent
    while not all(file.is_relative_to(common) for file in files):
        common = common.parent
    return digest_of(files, common)


_NONE = 'none of these'
_FAILED = 'FAIL'
_DIRECTIONS = {'a on b': ('on', False), 'b on a': ('on', True),
               'a in b': ('in', False), 'b in a': ('in', True)}  # fmt: skip
_WORDS = {'on top of': 'on', 'inside': 'in', 'inside of': 'in', 'beneath': 'under'}


def described_nodes(listed: Any, path: Path) -> dict[str, dict[str, Any]]:
    """Return tags, caption, centre, extent by id of scene_graph.json; MapError if malformed.

    An `id` is the object's place in the whole map; relations use the place in the file.
    """
    if not isinstance(listed, list):
        raise MapError(f'{path} holds no list of nodes')
    nodes: dict[str, dict[str, Any]] = {}
    for i, item in enumerate(listed):
        try:
            tags = [str(item['object_tag']), *map(str, item.get('possible_tags') or ())]
            nodes[str(int(item['id']))] = {
                'tags': list(dict.fromkeys(tag for tag in tags if tag)),
                'caption': str(item.get('caption') or ''),
                'center': [float(value) for value in item['bbox_center']],
                'extent': [float(value) for value in item['bbox_extent']],
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MapError(f'{path}: node {i} is malformed: {error!r}') from error
    if len(nodes) != len(listed):
        raise MapError(f'{path}: an id occurs more than once')
    return nodes


def language_model_edges(
    relations: Any, order: Sequence[str], path: Path
) -> tuple[list[SourceEdge], dict[str, int]]:
    """Return edges of cfslam_object_relations.json, whose ids are places in `order`."""
    edges: list[SourceEdge] = []
    skipped: dict[str, int] = {}
    for i, item in enumerate(relations if isinstance(relations, list) else ()):
        try:
            ends = [order[_index(item[key]['id'])] for key in ('object1', 'object2')]
            text = str(item.get('object_relation', _FAILED))
        except (IndexError, KeyError, TypeError, AttributeError) as error:
            raise MapError(f'{path}: relation {i} is malformed: {error!r}') from error
        if text in (_NONE, _FAILED):
            skipped[text] = skipped.get(text, 0) + 1
            continue
        kind, turned = _DIRECTIONS.get(text, (text, False))
        source, target = reversed(ends) if turned else ends
        edges.append(SourceEdge(source, target, kind, str(item.get('reason', ''))))
    return edges, skipped


def _index(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f'{value!r} is no id')
    return value


def frame_edges(listed: Any, path: Path) -> list[SourceEdge]:
    """Return edges of ali-dev's edge_json_*.json, whose ids are those of obj_json_*.json."""
    edges = []
    for key, item in listed.items() if isinstance(listed, Mapping) else ():
        try:
            relation = str(item['relationship'])
            seen = item.get('num_detections')
            text = str(item.get('edge_description') or relation)
            edges.append(
                SourceEdge(
                    str(item['object_1_id']),
                    str(item['object_2_id']),
                    _WORDS.get(relation.strip().lower(), relation),
                    text if seen is None else f'{text} (seen {seen} times)',
                )
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise MapError(f'{path}: {key} is malformed: {error!r}') from error
    return edges
