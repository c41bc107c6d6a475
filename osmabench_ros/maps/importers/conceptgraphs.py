"""ConceptGraphs: branch main with its language-model scene graph, and branch ali-dev."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.assembly import VIT_H, Method, SourceEdge, SourceObject, assemble
from osmabench_ros.maps.semantic_map import IN_SCENE_GRAPH, SemanticMap
from osmabench_ros.semantics.scene_graph import NodeKind

_CLIP = replace(VIT_H, templates=('an image of {}',))
METHOD = Method('conceptgraphs', World.HABITAT, {'clip': _CLIP, 'text': VIT_H})

_PICKLES = (
    'pcd_saves/full_pcd_*_post.pkl.gz', 'pcd_saves/full_pcd_*.pkl.gz', 'full_pcd_*_post.pkl.gz',
    'full_pcd_*.pkl.gz', 'pcd_*.pkl.gz', 'map/pcd_*.pkl.gz', 'exps/*/pcd_*.pkl.gz',
)  # fmt: skip
_GRAPHS = ('scene_graph.json', 'sg_cache/scene_graph.json')
_KNOWN = {
    'pcd_np', 'pcd_color_np', 'bbox_np', 'clip_ft', 'text_ft', 'mask', 'num_detections',
    'class_name', 'class_id', 'is_background', 'id', 'curr_obj_num', 'captions',
    'consolidated_caption', 'caption_dict', 'contain_number', 'inst_color', 'xyxy', 'pixel_area',
    'color_path', 'image_idx', 'mask_idx', 'conf', 'n_points',
}  # fmt: skip


_NONE, _FAILED = 'none of these', 'FAIL'
_DIRECTIONS = {'a on b': ('on', False), 'b on a': ('on', True),
               'a in b': ('in', False), 'b in a': ('in', True)}  # fmt: skip
_WORDS = {'on top of': 'on', 'inside': 'in', 'inside of': 'in', 'beneath': 'under'}


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a ConceptGraphs map.

    `path` is the folder of a scene (`pcd_saves/full_pcd_*.pkl.gz`, with
    `sg_cache/scene_graph.json` and `sg_cache/cfslam_object_relations.json` if they were made), the
    folder of an ali-dev experiment (`pcd_*.pkl.gz`, `obj_json_*.json`, `edge_json_*.json`), a
    .pkl.gz, or only a scene_graph.json. The default world is Habitat's, as OSMa-Bench leaves the
    poses. Objects that the scene graph left out have the attribute ``in_scene_graph: False``.
    """
    file = source.find_file(path, (*_PICKLES, *_GRAPHS), 'ConceptGraphs map')
    if file.suffix == '.json':
        return _import_graph(file, options)
    data = source.load_object_pickle(file)
    if any('curr_obj_num' in item for item in data['objects'] if isinstance(item, Mapping)):
        return _import_ali_dev(data, file, options)
    return _import_main(data, file, path if path.is_dir() else file.parent.parent, options)


def _import_main(
    data: Mapping[str, Any], pickle: Path, folder: Path, options: ImportOptions
) -> SemanticMap:
    objects = _read_objects(data, 'objects', pickle)
    graph = source.find_any_file(folder, ('sg_cache/scene_graph.json',), 'scene graph')
    relations = None
    edges = list[SourceEdge]()
    notes = _keep_rest(data)
    if graph is not None:
        described = _read_graph(graph)
        _describe(objects, described, graph)
        relations, edges, skipped = _read_relations(graph, list(described))
        notes |= skipped
    for item in _read_objects(data, 'bg_objects', pickle):
        item.source_id, item.kind = f'background {item.source_id}', NodeKind.BACKGROUND
        objects.append(item)
    digest = source.hash_files(pickle, graph, relations)
    return assemble(METHOD, options, objects, edges, source_sha256=digest, extras=notes)


def _read_objects(data: Mapping[str, Any], part: str, pickle: Path) -> list[SourceObject]:
    """Return the objects of a part of a pickle, by their places."""
    objects = []
    for i, item in enumerate(data.get(part) or ()):
        features = {'clip': 'clip_ft', 'text': 'text_ft'}
        made = source.read_object(item, str(i), f'{pickle}: {part}[{i}]', features)
        made.labels = _count_votes(item, data.get('class_names'))
        made.kind = NodeKind.BACKGROUND if item.get('is_background') else NodeKind.OBJECT
        objects.append(made)
    return objects


def _count_votes(
    item: Mapping[str, Any], class_names: Sequence[str] | None
) -> list[tuple[str, float]]:
    """Return the classes of the detections with their fractions, most frequent first."""
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


def _read_graph(path: Path) -> dict[str, SourceObject]:
    """Return tags, captions and boxes by id from scene_graph.json; an id is a place in the map."""

    def read(item: Any) -> SourceObject:
        tags = [str(item['object_tag']), *map(str, item.get('possible_tags') or ())]
        sizes = item['bbox_center'], item['bbox_extent']
        center, extent = ([float(value) for value in values] for values in sizes)
        return SourceObject(
            str(int(item['id'])),
            labels=[(tag, float('nan')) for tag in dict.fromkeys(tags) if tag],
            captions=[str(item.get('caption') or '')],
            center_and_size=(center, extent),
            attributes={'box_is_approximate': True},
        )

    listed = source.read_each(source.read_json(path), path, read)
    nodes = {item.source_id: item for item in listed}
    if len(nodes) != len(listed):
        raise MapError(f'{path}: an id occurs more than once')
    return nodes


def _describe(
    objects: Sequence[SourceObject], described: Mapping[str, SourceObject], path: Path
) -> None:
    """Give objects the tags and captions of the scene graph."""
    known = {item.source_id for item in objects}
    if strange := [source_id for source_id in described if source_id not in known]:
        text = f'{path} names object {strange[0]}, but the map has {len(objects)} objects'
        raise MapError(f'{text}; they are of different runs')
    for item in objects if described else ():
        node = described.get(item.source_id)
        item.attributes[IN_SCENE_GRAPH] = node is not None
        if node is not None:
            item.labels, item.captions = node.labels or item.labels, node.captions


def _read_relations(
    graph: Path, order: Sequence[str]
) -> tuple[Path | None, list[SourceEdge], dict[str, Any]]:
    """Return the file of relations with its edges; its ids are places in the scene graph."""
    path = graph.with_name('cfslam_object_relations.json')
    if not path.is_file():
        return None, [], {}
    skipped: Counter[str] = Counter()

    def read(item: Any) -> SourceEdge | None:
        places = [item[key]['id'] for key in ('object1', 'object2')]
        if min(places) < 0:
            raise ValueError('an id is negative')
        ends = [order[place] for place in places]
        text = str(item.get('object_relation', _FAILED))
        if text in (_NONE, _FAILED):
            skipped[text] += 1
            return None
        kind, turned = _DIRECTIONS.get(text, (text, False))
        start, end = ends[::-1] if turned else ends
        return SourceEdge(start, end, kind, str(item.get('reason', '')))

    edges = source.read_each(source.read_json(path), path, read)
    return path, [edge for edge in edges if edge], {'relations_without_an_edge': dict(skipped)}


def _import_graph(path: Path, options: ImportOptions) -> SemanticMap:
    """Read nodes without points: boxes rounded to 0.1 m that have lost their rotation."""
    described = _read_graph(path)
    relations, edges, notes = _read_relations(path, list(described))
    objects = list(described.values())
    digest = source.hash_files(path, relations)
    return assemble(METHOD, options, objects, edges, source_sha256=digest, extras=notes)


def _import_ali_dev(data: Mapping[str, Any], pickle: Path, options: ImportOptions) -> SemanticMap:
    suffix = pickle.name.removeprefix('pcd_').removesuffix('.pkl.gz')
    edge_file, object_file = (
        source.find_any_file(
            pickle.parent, (f'{part}_json_{suffix}.json', f'{part}_json_*.json'), what
        )
        for part, what in (('edge', 'edges'), ('obj', 'objects'))
    )
    captions: dict[str, Any] = {}
    if object_file:
        listed = source.read_json(object_file)
        pairs = source.read_each(
            listed, object_file, lambda item: (str(item['id']), item.get('object_caption'))
        )
        captions = dict(pairs)
    objects = _read_objects(data, 'objects', pickle)
    for i, (made, item) in enumerate(zip(objects, data['objects'], strict=True)):
        made.source_id = str(item.get('curr_obj_num', i))
        caption = item.get('consolidated_caption') or captions.get(made.source_id)
        made.captions = [str(caption or '')]
        if item.get('id') is not None:
            made.attributes['uuid'] = str(item['id'])
    if edge_file:
        edges = source.read_each(source.read_json(edge_file), edge_file, _read_edge)
    else:
        edges = _read_pickled_edges(data, [item.source_id for item in objects], pickle)
    digest = source.hash_files(pickle, edge_file, object_file)
    return assemble(METHOD, options, objects, edges, source_sha256=digest, extras=_keep_rest(data))


def _read_edge(item: Any) -> SourceEdge:
    """Return an edge of edge_json_*.json, with the ids of obj_json_*.json."""
    relation = str(item['relationship'])
    seen = item.get('num_detections')
    text = str(item.get('edge_description') or relation)
    return SourceEdge(
        str(item['object_1_id']),
        str(item['object_2_id']),
        _WORDS.get(relation.strip().lower(), relation),
        text if seen is None else f'{text} (seen {seen} times)',
    )


def _read_pickled_edges(
    data: Mapping[str, Any], order: Sequence[str], pickle: Path
) -> list[SourceEdge]:
    """Return edges of the pickle; their ids are indices into the list of objects."""
    stored = data.get('edges')
    stored = stored.get('edges') if isinstance(stored, Mapping) else stored

    def read(edge: Any) -> SourceEdge:
        start, end = (order[edge[f'obj{i}_index']] for i in (1, 2))
        return SourceEdge(start, end, str(edge['rel_type']))

    return source.read_each(stored or [], f'{pickle}: edges', read)


def _keep_rest(data: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        key: source.make_plain(data[key])
        for key in ('cfg', 'class_names')
        if data.get(key) is not None
    }
    objects = {str(i): item for i, item in enumerate(data['objects'])}
    return kept | source.keep_unknown(objects, _KNOWN)
