"""Index of a scene graph by label, relation and box, for questions."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.language.embedding import Embedder
from osmabench_ros.semantics import scene_graph
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa import english
from osmabench_ros.vqa.knowledge import knowledge

_MATERIAL_WORDS = frozenset(english.MATERIALS) | frozenset(english.MATERIALS.values())

# Cosine of the bundled sentence embedder from which two labels count as one class.
#
# All pairs of different household classes of `knowledge.yaml` lie below it (armchair and chair
# come closest, 0.73); sofa and couch have 0.86, lamp and floor lamp 0.80.
SIMILARITY_THRESHOLD = 0.74


class LabelMatcher:
    """Finds the labels of one map that a noun means.

    A noun of the map's own vocabulary (empty if open) means exactly that label. For any other
    noun, labels with the same spelling or the same head of synonyms match, and if there is none
    and there is an embedder, those with a cosine similarity of at least SIMILARITY_THRESHOLD.
    """

    def __init__(
        self,
        labels: Iterable[str],
        vocabulary: Iterable[str] = (),
        embedder: Embedder | None = None,
    ) -> None:
        self._labels = tuple(sorted({normalised_name(label) for label in labels}))
        self._vocabulary = frozenset(normalised_name(label) for label in vocabulary)
        self._embedder = embedder

    def matching(self, noun: str) -> frozenset[str]:
        """Return the labels of the map that a noun means, possibly none."""
        return self.same(noun) or self.similar(noun)

    def same(self, noun: str) -> frozenset[str]:
        """Return the labels that are the noun or a synonym of it."""
        noun = normalised_name(noun)
        if noun in self._vocabulary:
            return frozenset({noun}.intersection(self._labels))
        canonical = knowledge().canonical
        return frozenset(label for label in self._labels if canonical(label) == canonical(noun))

    def similar(self, noun: str) -> frozenset[str]:
        """Return the labels with a close embedding; none for a noun of the vocabulary."""
        noun = normalised_name(noun)
        if noun in self._vocabulary or self._embedder is None or not self._labels:
            return frozenset()
        cosine = self._embedder.embed(self._labels) @ self._embedder.embed([noun])[0]
        return frozenset(self._labels[i] for i in np.flatnonzero(cosine >= SIMILARITY_THRESHOLD))


_SYMMETRIC = (scene_graph.RelationType.NEXT_TO.value, scene_graph.RelationType.NEAR.value)
_IMPLIED = {scene_graph.RelationType.NEAR.value: (scene_graph.RelationType.NEXT_TO.value,)}
_REVERSED = {scene_graph.RelationType.UNDER.value: scene_graph.RelationType.ON.value}


class GraphIndex:
    """Index of the objects of a scene graph, or of those in `ids`."""

    def __init__(self, graph: scene_graph.SceneGraph, ids: Iterable[int] | None = None) -> None:
        allowed = None if ids is None else set(ids)
        self.graph = graph
        self.things: tuple[scene_graph.SceneNode, ...] = tuple(
            node
            for node in graph.nodes
            if node.kind in scene_graph.THINGS and (allowed is None or node.id in allowed)
        )
        self.by_id: Mapping[int, scene_graph.SceneNode] = {node.id: node for node in self.things}

    @cached_property
    def by_label(self) -> Mapping[str, tuple[scene_graph.SceneNode, ...]]:
        """Things by normalised best label; those without a label are left out."""
        labelled = (node for node in self.things if node.label)
        return group_nodes(labelled, lambda node: normalised_name(node.label))

    @cached_property
    def pairs(self) -> Mapping[str, frozenset[tuple[int, int]]]:
        """Source and target of each relation by its kind; both ways if it is symmetric."""
        pairs: dict[str, set[tuple[int, int]]] = {}
        for edge in self.graph.edges:
            if edge.source not in self.by_id or edge.target not in self.by_id:
                continue
            kind = ' '.join(edge.type.lower().replace('_', ' ').split())
            pairs.setdefault(kind, set()).add((edge.source, edge.target))
            if kind in _SYMMETRIC:
                pairs[kind].add((edge.target, edge.source))
        return {kind: frozenset(found) for kind, found in pairs.items()}

    def related(self, relation: str, source: int, target: int) -> bool:
        """Return whether `source relation target` holds; 'next to' and 'near' are symmetric."""
        kinds = (relation, *_IMPLIED.get(relation, ()))
        reverse = self.pairs.get(_REVERSED.get(relation, ''), ())
        found = any((source, target) in self.pairs.get(kind, ()) for kind in kinds)
        return found or (target, source) in reverse

    def sources(self, relation: str, target: int) -> tuple[int, ...]:
        """Return the objects that have a relation to `target`, in order of id."""
        return tuple(self._ends.get((relation, target, 1), ()))

    def targets(self, relation: str, source: int) -> tuple[int, ...]:
        """Return the objects that `source` has a relation to, in order of id."""
        return tuple(self._ends.get((relation, source, 0), ()))

    @cached_property
    def _ends(self) -> Mapping[tuple[str, int, int], list[int]]:
        """Objects by relation, related object, and whether that is the source (0) or target."""
        groups: dict[tuple[str, int, int], list[int]] = {}
        for relation, pairs in self.pairs.items():
            for source, target in sorted(pairs):
                groups.setdefault((relation, source, 0), []).append(target)
                groups.setdefault((relation, target, 1), []).append(source)
        return groups

    def connected(self, first: int, second: int, relations: Iterable[str] | None = None) -> bool:
        """Return whether any relation, or one of some, joins two objects, either way."""
        return any(
            pair in self.pairs.get(relation, ())
            for relation in (self.pairs if relations is None else relations)
            for pair in ((first, second), (second, first))
        )

    @cached_property
    def _boxed(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        nodes = [
            n for n in self.things if n.kind is scene_graph.NodeKind.OBJECT and n.box is not None
        ]
        ids = np.array([n.id for n in nodes], np.int64)
        lows = np.array([n.known_box.minimum for n in nodes]).reshape(-1, 3)
        highs = np.array([n.known_box.maximum for n in nodes]).reshape(-1, 3)
        return ids, lows, highs

    def space_above_m(self, node: scene_graph.SceneNode) -> float:
        """Return the height from an object's top to the next one over it; inf if none."""
        if self.sources(scene_graph.RelationType.ON.value, node.id):
            return 0.0
        ids, lows, highs = self._boxed
        box = node.known_box
        over = (lows[:, :2] < box.maximum[:2]).all(1) & (highs[:, :2] > box.minimum[:2]).all(1)
        over &= (lows[:, 2] > box.maximum[2] - 0.02) & (ids != node.id)
        return float(max(0.0, lows[over, 2].min(initial=np.inf) - box.maximum[2]))

    def floor_height_m(self, node: scene_graph.SceneNode) -> float:
        """Return the height of the floor under an object; the lowest point known if none is."""
        centre, lows_m = node.known_box.center, self._boxed[1][:, 2].tolist()
        floors = (floor.box for floor in self.by_label.get('floor', ()))
        under_m = [
            float(box.maximum[2])
            for box in floors
            if box is not None
            and box.maximum[2] <= centre[2]
            and box.contains(np.array([*centre[:2], box.maximum[2]]))
        ]
        return max(under_m, default=min(lows_m, default=0.0))


def keep_nodes(
    graph: scene_graph.SceneGraph, is_kept: Callable[[scene_graph.SceneNode], bool]
) -> scene_graph.SceneGraph:
    """Return a graph of some nodes, without edges to others; other parents become None."""
    ids = {node.id for node in graph.nodes if is_kept(node)}
    nodes = tuple(
        node if node.parent is None or node.parent in ids else replace(node, parent=None)
        for node in graph.nodes
        if node.id in ids
    )
    edges = tuple(edge for edge in graph.edges if {edge.source, edge.target} <= ids)
    return replace(graph, nodes=nodes, edges=edges)


def group_nodes(
    nodes: Iterable[scene_graph.SceneNode], key: Callable[[scene_graph.SceneNode], str]
) -> dict[str, tuple[scene_graph.SceneNode, ...]]:
    """Return nodes by a key, in their order."""
    groups: dict[str, list[scene_graph.SceneNode]] = {}
    for node in nodes:
        groups.setdefault(key(node), []).append(node)
    return {name: tuple(group) for name, group in groups.items()}


def centre_distance_m(first: scene_graph.SceneNode, second: scene_graph.SceneNode) -> float:
    """Return the distance between the centres of two boxes in metres."""
    return float(np.linalg.norm(first.known_box.center - second.known_box.center))


def attribute(node: scene_graph.SceneNode, key: str) -> str | None:
    """Return the colour or material of a node, or the only one in its caption, else None."""
    value = node.attributes.get(key)
    if isinstance(value, str) and value:
        return value
    words = {word for caption in node.captions for word in re.findall(r'[a-z]+', caption.lower())}
    known = frozenset(english.COLORS) if key == 'color' else _MATERIAL_WORDS
    normal = english.color_name if key == 'color' else english.material_noun
    values = {normal(word) for word in words & known}
    return values.pop() if len(values) == 1 else None
