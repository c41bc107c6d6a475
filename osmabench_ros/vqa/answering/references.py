"""Resolves noun phrases of questions to nodes of a map."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from osmabench_ros.semantics.scene_graph import SceneNode
from osmabench_ros.vqa.english import (
    ADJECTIVES,
    COLORS,
    MATERIALS,
    basic_color,
    color_name,
    confusable,
    material_noun,
)
from osmabench_ros.vqa.graph_index import GraphIndex, LabelMatcher

_MATERIAL_WORDS = frozenset(MATERIALS) | frozenset(MATERIALS.values())


@dataclass(frozen=True, eq=False)
class Referents:
    """Things a phrase may mean, best observed first, and if the map lacks the attribute."""

    nodes: tuple[SceneNode, ...]
    attribute_unknown: bool = False


class ReferenceResolver:
    """Resolves noun phrases in one map."""

    def __init__(self, index: GraphIndex, matcher: LabelMatcher) -> None:
        self._index = index
        self._matcher = matcher
        self._found: dict[str, Referents] = {}

    def resolve(self, phrase: str) -> Referents:
        """Return the nodes that a phrase such as 'red wooden chair' means."""
        if phrase not in self._found:
            self._found[phrase] = self._search(phrase)
        return self._found[phrase]

    def _search(self, phrase: str) -> Referents:
        words = phrase.split()
        cuts = [cut for cut in range(len(words)) if set(words[:cut]) <= ADJECTIVES]
        # 'glass door' may be a label itself; 'red chair' only looks like one to an embedder, so
        # similarity is asked about bare nouns first.
        for match, order in (
            (self._matcher.same, cuts),
            (self._matcher.similar, cuts[::-1]),
        ):
            for cut in order:
                nodes = self._named(match(' '.join(words[cut:])))
                if nodes:
                    return _with_attributes(nodes, words[:cut])
        return Referents(())

    def _named(self, labels: frozenset[str]) -> tuple[SceneNode, ...]:
        nodes = [node for label in sorted(labels) for node in self._index.by_label[label]]
        return tuple(sorted(nodes, key=_reliability))


def _reliability(node: SceneNode) -> tuple[float, float, int]:
    score = node.labels[0].score if node.labels else math.nan
    return (-node.observations, 0.0 if math.isnan(score) else -score, node.id)


def _with_attributes(nodes: tuple[SceneNode, ...], adjectives: list[str]) -> Referents:
    material = next((material_noun(w) for w in adjectives if w in MATERIALS.values()), '')
    color = ' '.join(word for word in adjectives if word not in MATERIALS.values())
    unknown = False
    for key, wanted, alike in (
        ('color', color, confusable),
        ('material', material, _same_material),
    ):
        if not wanted:
            continue
        values = {node.id: attribute(node, key) for node in nodes}
        unknown = unknown or None in values.values()
        nodes = _matching(nodes, values, wanted, alike)
    return Referents(nodes, unknown and not nodes)


def _same_material(first: str, second: str) -> bool:
    return material_noun(first) == material_noun(second)


def _matching(
    nodes: tuple[SceneNode, ...],
    values: Mapping[int, str | None],
    wanted: str,
    alike: Callable[[str, str], bool],
) -> tuple[SceneNode, ...]:
    """Return the nodes whose value may be the wanted one, the same basic colour first."""
    found = [
        (basic_color(value) != basic_color(wanted), node)
        for node in nodes
        if (value := values[node.id]) is not None and alike(value, wanted)
    ]
    return tuple(node for _, node in sorted(found, key=lambda pair: pair[0]))


def attribute(node: SceneNode, key: str) -> str | None:
    """Return the colour or material of a node, or the only one in its caption, else None."""
    value = node.attributes.get(key)
    if isinstance(value, str) and value:
        return value
    words = {word for caption in node.captions for word in re.findall(r'[a-z]+', caption.lower())}
    known = frozenset(COLORS) if key == 'color' else _MATERIAL_WORDS
    normal = color_name if key == 'color' else material_noun
    values = {normal(word) for word in words & known}
    return values.pop() if len(values) == 1 else None
