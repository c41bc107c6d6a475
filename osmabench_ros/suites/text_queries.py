"""The texts that OpenLex3D asks a map with: its prompt list, and queries for objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from osmabench_ros.base.limits.documents import read_json, read_text
from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.tiers import EXCLUDED_SYNONYMS, TieredLabels, TieredObject, stripped

Level = Literal['l0', 'l1', 'all']
"""Queries by synonym, by depiction and synonym, or both; as OpenLex3D calls them."""

_PARTS: Mapping[Level, Sequence[int]] = {'l0': (0,), 'l1': (1,), 'all': (0, 1)}


@dataclass(frozen=True)
class TextQuery:
    """A text and the ids of all objects that bear it; an id stands there as often as labels do."""

    text: str
    object_ids: tuple[int, ...]


def read_prompts(path: Path) -> list[str]:
    """Read a prompt_list.txt of OpenLex3D: a prompt a line, spaces around it taken away.

    Raises MetricError if the file cannot be read or holds no line.
    """
    prompts = [line.strip() for line in read_text(path, MetricError).splitlines()]
    if not prompts:
        raise MetricError(f'{path}: holds no prompts; write one a line')
    return prompts


def queries_of(labels: TieredLabels, level: Level) -> list[TextQuery]:
    """Return every label of a level, with the objects that bear it.

    Level 0 asks for each synonym, level 1 for each depiction followed by each synonym, such as
    "flower cushion". Names of parts of a building are not asked for. A text of both levels is
    two queries, as in the mapping files of OpenLex3D.
    """
    found: dict[tuple[int, str], list[int]] = {}
    for part in _PARTS[level]:
        for item in labels.objects.values():
            for text in _texts(item, part):
                if stripped(text) not in EXCLUDED_SYNONYMS:
                    found.setdefault((part, text), []).append(item.object_id)
    return [TextQuery(text, tuple(ids)) for (_, text), ids in found.items()]


def _texts(item: TieredObject, part: int) -> Iterator[str]:
    if part == 0:
        yield from item.synonyms
        return
    for depiction in item.depictions:
        yield from (f'{depiction} {synonym}' for synonym in item.synonyms)


def read_queries(path: Path) -> list[TextQuery]:
    """Read a gt_categories_query_to_object_mapping_{l0,l1,all}.json of OpenLex3D.

    It holds texts with object ids for each level. Raises MetricError, which names the file and
    the query, if it is missing or malformed.
    """
    levels: Any = read_json(path, MetricError)
    if not isinstance(levels, dict) or not all(isinstance(x, dict) for x in levels.values()):
        raise MetricError(f'{path}: must map levels to queries, {{"level0": {{"sofa": [3, 7]}}}}')
    found = []
    for level, queries in levels.items():
        for text, ids in queries.items():
            if not isinstance(ids, list) or any(type(item) is not int for item in ids):
                raise MetricError(f'{path}: {level}: "{text}" must have a list of object ids')
            found.append(TextQuery(text, tuple(ids)))
    if not found:
        raise MetricError(f'{path}: holds no queries')
    return found
