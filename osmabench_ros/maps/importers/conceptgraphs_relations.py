"""The scene-graph files of ConceptGraphs, which number objects in two ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importers.source_model import SourceEdge

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
