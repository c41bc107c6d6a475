"""Referring expressions about any scene, each with exactly one target, at three lengths."""

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import combinations, product

import numpy as np

from osmabench_ros.semantics.scene_graph import SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.grounding.expressions import (
    Clause,
    ClueKind,
    Expression,
    ExpressionReader,
    asked,
    measured,
    read_expression,
)
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.english import MATERIALS
from osmabench_ros.vqa.exact.generation import with_neighbour_margins
from osmabench_ros.vqa.exact.view import SceneView, label_of, shuffled
from osmabench_ros.vqa.graph_index import centre_distance_m
from osmabench_ros.vqa.questions import AnswerType, Question, make_question

SUITE = 'grounding'
GENERATOR = 'grounding/1'
DEFAULT_TARGETS = 30
TOLERANCE = 0.75
"""Of the box: a verdict is right from an IoU of 0.25 on."""

HARD_DISTRACTORS = 2
"""From so many others of its kind on a target is hard, as in ReferIt3D."""

_MARGIN_M = 0.25
"""By this much the next thing must be nearer or farther than the one that is meant."""

_SIZE_RATIO = 1.2
_ANCHORS = 6


class Length(str, Enum):
    """Lengths of expressions of one target, each with one more clause."""

    SHORT = 'short'
    MEDIUM = 'medium'
    LONG = 'long'


def grounding_questions(
    truth: GroundTruth, *, scene: str, seed: int, targets: int = DEFAULT_TARGETS
) -> list[Question]:
    """Generate referring expressions about the objects that a path saw, reproducible by seed.

    There are `targets` objects, each with up to three expressions, and as many of each
    `ClueKind` as possible. The answer is the box of the visible part of the target, the category
    the `ClueKind` that distinguishes it from others of its kind. The provenance has `target`
    (instance id), `length` (`Length`), `same_class` (how many of its kind there are) and
    `expression`. The first part of each expression holds only for the target, by a margin, for
    whole objects and visible parts, and all that follows holds for the target too.
    """
    view = SceneView.of_path(truth)
    describer = _Describer(truth, view)
    rng = np.random.default_rng([seed, 23])
    by_kind: dict[ClueKind, list[tuple[SceneNode, Expression, list[Clause]]]] = {
        k: [] for k in ClueKind
    }
    for node in shuffled(rng, view.objects):
        truths = shuffled(rng, describer.truths(node))
        for kind, short in shuffled(rng, describer.distinguishing(node, truths)):
            rest = [clause for clause in truths if clause not in short.clauses]
            by_kind[kind].append((node, short, rest))
    questions: list[Question] = []
    meant: set[int] = set()
    pools = [iter(pool) for pool in by_kind.values() if pool]
    while pools and len(meant) < targets:
        for pool in tuple(pools):
            chosen = next((item for item in pool if item[0].id not in meant), None)
            if chosen is None:
                pools.remove(pool)
            elif len(meant) < targets:
                meant.add(chosen[0].id)
                questions += describer.questions(*chosen, scene=scene, seed=seed)
    return questions


class _Describer:
    """States clauses that are true of objects, and clauses that are true of only one."""

    def __init__(self, truth: GroundTruth, view: SceneView) -> None:
        self._view, self._truth = view, truth
        parts = truth.visible_graph
        fair = truth.fair_graph
        graphs = [fair, truth.graph, *([] if parts is None else [parts])]
        self._graphs = [*graphs, *(with_neighbour_margins(fair) if parts is not None else [])]
        things = {node.id for node in view.wide.things}
        vocabulary = tuple(truth.label_set.by_name)
        self._readers = [
            ExpressionReader(GraphReader(g, vocabulary, ids=things)) for g in self._graphs
        ]

    def _list_kin(self, node: SceneNode) -> list[SceneNode]:
        """Return all objects of a kind that a map may have, the one itself first."""
        label = label_of(node)
        things = self._view.wide.things
        others = [n for n in things if n.id != node.id and n.label and label_of(n) == label]
        return [node, *others]

    def _list_anchors(self, node: SceneNode) -> list[SceneNode]:
        """Return named objects of other kinds, the nearest first; no name by hidden attributes."""
        named = [
            n
            for n in self._view.named_boxed
            if label_of(n) != label_of(node) and _is_seeable(self._view.name(n), n)
        ]
        return sorted(named, key=lambda other: centre_distance_m(other, node))[:_ANCHORS]

    def _is_known(self, node: SceneNode) -> bool:
        known = [graph.by_id.get(node.id) for graph in self._graphs]
        return all(item is not None and item.box is not None for item in known)

    def truths(self, node: SceneNode) -> list[Clause]:
        """Return clauses that are clearly true of an object, with its kind and its attributes."""
        if not self._is_known(node):
            return []
        anchors = self._list_anchors(node)
        names = [self._view.name(anchor) for anchor in anchors]
        clauses = [Clause(word, (name,)) for word, name in product(('on', 'next to'), names)]
        clauses += [Clause('between', pair) for pair in combinations(names, 2)]
        kin = len(self._list_kin(node))
        places = ['closest to', 'farthest from', 'second closest to', 'third closest to']
        if kin > 1:
            clauses += [Clause(word, (name,)) for word in places[:kin] for name in names]
            clauses += [Clause(word) for word in ('largest', 'smallest', 'tallest', 'lowest')]
        by_name = dict(zip(names, anchors, strict=True))
        return [item for item in clauses if self._is_true(item, node, by_name, alone=False)]

    def _is_true(
        self, clause: Clause, node: SceneNode, named: dict[str, SceneNode], *, alone: bool
    ) -> bool:
        """Return whether a clause is clearly true of an object, maybe only of it, everywhere."""
        kin = self._list_kin(node)
        seen = [n for n in kin if n.id in self._view.index.by_id]
        # A map may have objects that were hardly seen, or not.
        for (graph, reader), things in product(
            zip(self._graphs, self._readers, strict=True), (kin, seen)
        ):
            nodes = [graph.by_id.get(n.id, n) for n in things]
            anchors = [graph.by_id.get(named[name].id, named[name]) for name in clause.phrases]
            misses = reader.misses(clause, nodes, anchors)
            if misses[0] > 0 or (alone and any(miss == 0 for miss in misses[1:])):
                return False
            if not _is_clear(clause, nodes, anchors, alone=alone):
                return False
        return True

    def distinguishing(
        self, node: SceneNode, truths: Sequence[Clause]
    ) -> Iterator[tuple[ClueKind, Expression]]:
        """Yield short expressions that mean an object and no other, by kind."""
        label = label_of(node)
        if self._view.has_rival(label) or not self._is_known(node):
            return
        if len(self._list_kin(node)) == 1:
            yield ClueKind.CLASS, Expression(label)
            return
        name = self._view.names.get(node.id, '')
        if name and _is_seeable(name, node):
            yield ClueKind.ATTRIBUTE, Expression(name)
        named = {self._view.name(anchor): anchor for anchor in self._list_anchors(node)}
        for clause in truths:
            if self._is_true(clause, node, named, alone=True):
                yield clause.kind, Expression(label, (clause,))

    def questions(
        self,
        node: SceneNode,
        short: Expression,
        rest: Sequence[Clause],
        *,
        scene: str,
        seed: int,
    ) -> Iterator[Question]:
        """Yield the questions for a target, each with one more clause, as far as there are."""
        parts = self._truth.visible_graph
        box = (node if parts is None else parts.by_id[node.id]).known_box
        answer = tuple(round(x, 3) for x in (*box.minimum.tolist(), *box.maximum.tolist()))
        kind = ClueKind.ATTRIBUTE if short.phrase != label_of(node) else ClueKind.CLASS
        kind = short.clauses[0].kind if short.clauses else kind
        for more, length in enumerate(Length):
            expression = Expression(short.phrase, (*short.clauses, *rest[:more]))
            # What reads back otherwise, such as a name with "and" in it, is not asked.
            if len(rest) < more or read_expression(expression.text) != expression:
                return
            yield make_question(
                SUITE, scene, asked(expression.text), AnswerType.BOX, answer,
                category=kind.value, nodes=(node.id,), tolerance=TOLERANCE,
                provenance={
                    'generator': GENERATOR,
                    'seed': str(seed),
                    'expression': expression.text,
                    'target': str(node.id),
                    'length': length.value,
                    'same_class': str(len(self._list_kin(node))),
                },
            )  # fmt: skip


def _is_clear(
    clause: Clause, nodes: Sequence[SceneNode], anchors: Sequence[SceneNode], *, alone: bool
) -> bool:
    """Return whether the first object is the one that a clause means by a margin."""
    if clause.kind is ClueKind.RELATION:
        return True
    boxes = [anchor.known_box for anchor in anchors]
    own, *others = (measured(clause, node.box, boxes) for node in nodes if node.box is not None)
    if clause.kind is ClueKind.BETWEEN:
        return own < -_MARGIN_M / 2 and (not alone or all(x > _MARGIN_M / 2 for x in others))
    if clause.kind is ClueKind.SIZE:
        return all(max(own, x) >= _SIZE_RATIO * min(own, x) for x in others)
    return all(abs(own - x) >= _MARGIN_M for x in others)


def _is_seeable(name: str, node: SceneNode) -> bool:
    """Return whether a name says no material, which no camera sees."""
    words = name.removesuffix(label_of(node)).split()
    return not set(words).intersection(MATERIALS.values())
