"""The ground truth for question generators: seen objects with unambiguous names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.images import select_evenly
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import NO_INSTANCE, LabelSet, normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.vqa import english
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.ways import FloorWays
from osmabench_ros.vqa.graph_index import GraphIndex, group_nodes
from osmabench_ros.vqa.kinds import Kind, Query
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import AnswerValue, AnyCategory

MOST_VIEWS = 60
_WIDTH_CELLS = 48
_NEAREST_M = 0.1
_SLACK_M, _SLACK_SHARE = 0.1, 0.03


@lru_cache(maxsize=1)
def find_glimpsed_instances(truth: GroundTruth) -> frozenset[int]:
    """Return instances that a map may contain although they do not count as seen."""
    seen = frozenset(truth.seen_instances)
    found = set(np.unique(truth.surface.instances).tolist())
    found |= {
        edge.source
        for edge in truth.graph.edges
        if edge.type in (RelationType.ON.value, RelationType.IN.value)
        and edge.target in seen
        and truth.graph.by_id[edge.target].kind is NodeKind.OBJECT
    }
    found |= _in_view(truth, frozenset(truth.graph.by_id) - seen - found)
    return frozenset(found) - seen - {NO_INSTANCE}


def _in_view(truth: GroundTruth, doubtful: frozenset[int]) -> set[int]:
    clouds = (truth.surface, truth.unseen)
    points = np.concatenate([np.asarray(cloud.points, np.float32) for cloud in clouds])
    instances = np.concatenate([cloud.instances for cloud in clouds])
    asked = np.flatnonzero(np.isin(instances, sorted(doubtful)))
    found: set[int] = set()
    # Neighbouring poses show nearly the same.
    for pose in select_evenly(truth.camera_poses, MOST_VIEWS) if len(asked) else ():
        showing = _nearest(truth, points, pose)
        found.update(np.unique(instances[asked[showing[asked]]]).tolist())
    return found


def _nearest(truth: GroundTruth, points: NDArray[np.float32], pose: Pose) -> NDArray[np.bool_]:
    """Return which points no other point hides, in an image of cells wider than their gaps."""
    camera = truth.intrinsics
    turned = (points - pose.translation.astype(np.float32)) @ pose.rotation.astype(np.float32)
    depth = turned[:, 2]
    scale = _WIDTH_CELLS / camera.width
    shape = (max(1, round(camera.height * scale)), _WIDTH_CELLS)
    safe = np.where(depth > _NEAREST_M, depth, 1.0)
    columns = np.floor((turned[:, 0] / safe * camera.fx + camera.cx + 0.5) * scale)
    rows = np.floor((turned[:, 1] / safe * camera.fy + camera.cy + 0.5) * scale)
    inside = (depth > _NEAREST_M) & (columns >= 0) & (columns < shape[1])
    inside &= (rows >= 0) & (rows < shape[0])
    cells = (rows[inside] * shape[1] + columns[inside]).astype(np.int64)
    buffer = np.full(shape[0] * shape[1], np.inf, np.float32)
    np.minimum.at(buffer, cells, depth[inside])
    showing = np.zeros(len(points), bool)
    showing[inside] = depth[inside] <= buffer[cells] * (1 + _SLACK_SHARE) + _SLACK_M
    return showing


Item = TypeVar('Item')
Nodes = Sequence[SceneNode]
Term = SceneNode | Nodes | str | float


@dataclass(frozen=True)
class Draft:
    """A question before it is worded and chosen, and the nodes that its answer rests on.

    An answer that is given before the graph is asked has to be the answer of the graph, which
    gives the nodes too if there are none; a number may be wrong by `tolerance`.
    """

    query: Query
    category: AnyCategory
    nodes: tuple[int, ...] = ()
    answer: AnswerValue | None = None
    tolerance: float = 0.0


class SceneView:
    """The seen part of a ground-truth graph, with instance ids as ids.

    Objects not in `seen_ids` do not exist for any question. A map may have `glimpsed_ids`: a
    question is left out if they would change its answer, or if it differs in the graphs in `also`,
    such as the graph of the visible parts, in any but the first of the `ways`, or in any but the
    first of the heights of floors in `storeys_m`. No question is about structure of the label set;
    its classes may be asked for without an object. Nothing is asked about ways without `ways`, nor
    about storeys unless there are two.
    """

    def __init__(
        self,
        graph: SceneGraph,
        seen_ids: Collection[int],
        glimpsed_ids: Collection[int] = (),
        label_set: LabelSet | None = None,
        also: Collection[SceneGraph] = (),
        ways: Sequence[FloorWays] = (),
        storeys_m: Sequence[tuple[float, ...]] = (),
    ) -> None:
        self.graph = graph
        self.graphs = (graph, *also)
        self.ways = ways
        self.storeys_m = storeys_m
        self.index = GraphIndex(graph, seen_ids)
        self.wide = GraphIndex(graph, {*seen_ids, *glimpsed_ids})
        own = [] if label_set is None else label_set.structure_names
        building = [node.label for node in graph.of_kind(NodeKind.BACKGROUND) if node.label]
        self.structure = {normalised_name(label) for label in (*own, *building)}
        offered = () if label_set is None else label_set.by_name
        self.vocabulary = {normalised_name(label) for label in offered}
        self.reader = self._read(self.index)
        self.wide_reader = self._read(self.wide)
        self.others = [
            *(self._read(GraphIndex(other, seen_ids)) for other in also),
            *(self._read(self.index, number) for number in range(1, len(ways))),
            *(self._read(self.index, 0, number) for number in range(1, len(storeys_m))),
        ]

    def _read(self, index: GraphIndex, ways: int = 0, storeys: int = 0) -> GraphReader:
        """Return a reader of an index, with ways and heights of floors by their numbers."""
        return GraphReader(
            index.graph,
            self.vocabulary | set(index.by_label),
            index=index,
            ways=self.ways[ways] if self.ways else None,
            storeys_m=lambda: self.storeys_m[storeys] if self.storeys_m else (),
        )

    @classmethod
    def of_path(cls, truth: GroundTruth, **more: Any) -> SceneView:
        """Return the objects that a path saw, and the ones that a map may have glimpsed."""
        glimpsed = find_glimpsed_instances(truth)
        return cls(truth.evaluated_graph, truth.seen_instances, glimpsed, truth.label_set, **more)

    @cached_property
    def _rivals(self) -> Mapping[str, tuple[SceneNode, ...]]:
        """All objects that a map may have, by label."""
        return group_nodes((node for node in self.wide.things if node.label), label_of)

    @cached_property
    def objects(self) -> tuple[SceneNode, ...]:
        """Seen objects with a label that questions may be about, in order of id."""
        return tuple(
            node
            for node in sorted(self.index.things, key=lambda node: node.id)
            if node.kind is NodeKind.OBJECT and node.label and label_of(node) not in self.structure
        )

    @cached_property
    def by_label(self) -> Mapping[str, tuple[SceneNode, ...]]:
        """Those objects by label, labels in order."""
        return dict(sorted(group_nodes(self.objects, label_of).items()))

    @cached_property
    def groups(self) -> Mapping[str, tuple[SceneNode, ...]]:
        """Those of each label if no other of the scene means the same, e.g. sofa and couch."""
        head = knowledge().canonical
        heads = Counter(map(head, self._rivals))
        return {label: group for label, group in self.by_label.items() if heads[head(label)] == 1}

    @cached_property
    def names(self) -> Mapping[int, str]:
        """Shortest phrase that means exactly one seen object, by id; some objects have none."""
        return {
            node.id: name
            for label, nodes in self.groups.items()
            for node in nodes
            if (name := _find_telling_name(label, node, self._rivals[label]))
        }

    @cached_property
    def named(self) -> tuple[SceneNode, ...]:
        """Objects that have an unambiguous name."""
        return tuple(node for node in self.objects if node.id in self.names)

    @cached_property
    def named_boxed(self) -> tuple[SceneNode, ...]:
        """Those that have a box as well."""
        return tuple(node for node in self.named if node.box is not None)

    def name(self, node: SceneNode) -> str:
        """Return the unambiguous name of a node of `named`."""
        return self.names[node.id]

    def names_material(self, phrase: str) -> bool:
        """Return whether a phrase calls an object by its material."""
        labels = filter(phrase.endswith, (*self.by_label, *self.vocabulary))
        label = max(labels, key=len, default=phrase.split()[-1])
        return not set(phrase.removesuffix(label).split()).isdisjoint(english.MATERIALS.values())

    def ask(
        self,
        kind: Kind,
        *terms: Term,
        phrases: Sequence[str] = (),
        answer: AnswerValue | None = None,
        nodes: Nodes = (),
    ) -> Iterator[Draft]:
        """Yield the draft of a question if its answer is clear; a truth value is yes or no.

        Its terms are nodes of `named` and groups of all nodes of a label, in the order of the
        phrases, unless these are given, and the word or number.
        """
        if not kind.clear(self.reader, *terms):
            return
        nouns = [term for term in terms if not isinstance(term, (str, float))]
        names = (self.name(n) if isinstance(n, SceneNode) else label_of(n[0]) for n in nouns)
        word = next((term for term in terms if isinstance(term, str)), '')
        number = next((term for term in terms if isinstance(term, float)), None)
        query = Query(kind, (*names, *phrases), word, number)
        given = ('no', 'yes')[answer] if isinstance(answer, bool) else answer
        yield Draft(query, kind.category, tuple(node.id for node in nodes), given)

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Plausible classes that the scene, seen or not, does not have, best first.

        None of them is another word for a present object, such as mug for cup.
        """
        everything = {normalised_name(node.label) for node in self.graph.nodes if node.label}
        words = {word for label in everything for word in label.split()}
        taken = {knowledge().name(label) for label in everything}
        taken |= {a for pair in knowledge().alike if taken & set(pair) for a in pair}

        def plausible(label: str) -> bool:
            own = knowledge().name(label)
            return not words & set(label.split()) and own not in taken

        offered = {knowledge().spelt(label) for label in self.vocabulary - self.structure}
        own = sorted(filter(plausible, offered))
        common = [label for label in knowledge().household if plausible(label)]
        return (*own, *(label for label in common if label not in own))


def label_of(node: SceneNode) -> str:
    """Return the best label of a node as questions spell it."""
    return knowledge().spelt(normalised_name(node.label))


def _is_mixed(node: SceneNode) -> bool:
    return knowledge().canonical(label_of(node)) in knowledge().mixed


def color_of(node: SceneNode) -> str:
    """Return the colour of a node, '' if unknown or if its parts differ."""
    if _is_mixed(node):
        return ''
    return english.color_name(str(node.attributes.get('color', '')))


def plain_color_of(node: SceneNode) -> str:
    """Return the colour of a node, '' if unknown, mixed, or with a shade, which light changes."""
    color = color_of(node)
    return color if color in english.BASIC_COLORS else ''


def material_of(node: SceneNode) -> str:
    """Return the material noun of a node, '' if unknown, mixed, or not one the questions use."""
    if _is_mixed(node):
        return ''
    noun = english.material_noun(str(node.attributes.get('material', '')))
    return noun if noun in english.MATERIALS else ''


def _find_telling_name(label: str, node: SceneNode, rivals: Sequence[SceneNode]) -> str:
    """Return a label after the fewest attributes that its rivals do not have, else ''."""
    color, material = plain_color_of(node), material_of(node)
    for said in (('', ''), (color, ''), ('', material), (color, material)):
        if all(_differs(other, *said) for other in rivals if other is not node):
            return ' '.join(filter(None, (said[0], english.MATERIALS.get(said[1]), label)))
    return ''


def _differs(other: SceneNode, color: str, material: str) -> bool:
    far_color = color and color_of(other) and not english.confusable(color, color_of(other))
    return bool(far_color or (material and material_of(other) not in ('', material)))


def shuffled(rng: np.random.Generator, items: Iterable[Item]) -> list[Item]:
    """Return items in a seeded order."""
    pool = list(items)
    return [pool[i] for i in rng.permutation(len(pool))]


def sample_pairs(
    rng: np.random.Generator, items: Sequence[Item], limit: int
) -> Iterator[tuple[Item, Item]]:
    """Yield up to `limit` ordered pairs of different items, seeded, each at most once."""
    total = len(items) * (len(items) - 1)
    if total <= 0:
        return
    chosen = rng.choice(total, size=min(limit, total), replace=False)
    for number in chosen.tolist():
        first, second = divmod(number, len(items) - 1)
        yield items[first], items[second + (second >= first)]
