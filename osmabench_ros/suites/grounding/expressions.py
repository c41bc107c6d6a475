"""Referring expressions without viewpoint: a row for each clue, questions, and answers of maps."""

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap
from osmabench_ros.metrics.similarity import cosine_similarity
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.suite import TextEncoder
from osmabench_ros.vqa.answering.answerer import OneByOne
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.english import definite, without_adjectives, without_article
from osmabench_ros.vqa.exact.generation import with_neighbour_margins
from osmabench_ros.vqa.exact.view import SceneView, label_of, shuffled
from osmabench_ros.vqa.graph_index import Embedder, GraphIndex, centre_distance_m
from osmabench_ros.vqa.questions import Answer, AnswerType, Inquiry, Question, make_question

SUITE, GENERATOR = 'grounding', 'grounding/1'
DEFAULT_TARGETS = 30
TOLERANCE = 0.75
"""1 minus the IoU from which on a box is right."""

BETWEEN_M = 0.5
"""An object between two others is this close to the line of their centres, seen from above."""

_BETWEEN_SHARE = (0.2, 0.8)
_MARGIN_M = 0.25
"""By this much the next object must be nearer or farther than the one that is meant."""

_SIZE_RATIO = 1.2
_ANCHORS = 6
_UNKNOWN = math.inf


class ClueKind(str, Enum):
    """The clue that distinguishes an object from others of its kind; 'class' without others."""

    CLASS = 'class'
    ATTRIBUTE = 'attribute'
    RELATION = 'relation'
    BETWEEN = 'between'
    DISTANCE = 'distance'
    ORDER = 'order'
    SIZE = 'size'


class Length(str, Enum):
    """Lengths of expressions of one target, each with one more clause."""

    SHORT = 'short'
    MEDIUM = 'medium'
    LONG = 'long'


def off_between_m(box: AxisAlignedBox, first: AxisAlignedBox, second: AxisAlignedBox) -> float:
    """Return by how much a box misses being between two others, below 0 if it is.

    Its centre, seen from above, is between 0.2 and 0.8 of the way between theirs, and at most
    BETWEEN_M next to it.
    """
    start = first.center[:2]
    way = (second.center - first.center)[:2]
    length = float(np.linalg.norm(way))
    if length < 1e-6:
        return _UNKNOWN
    offset = box.center[:2] - start
    along = float(offset @ way) / length
    across = abs(float(way[0] * offset[1] - way[1] * offset[0])) / length
    low, high = (share * length for share in _BETWEEN_SHARE)
    return max(low - along, along - high, across - BETWEEN_M)


def _measure_distance(box: AxisAlignedBox, anchor: AxisAlignedBox) -> float:
    return float(np.linalg.norm(box.center - anchor.center))


def _measure_height(box: AxisAlignedBox) -> float:
    return float(box.size[2])


@dataclass(frozen=True)
class Clue:
    """A kind of clause: its words with places for the anchors, and its meaning.

    `measure` returns the quantity of a box, given the boxes of the anchors; without it the graph
    has the relation. The object that is meant has the `position` in ascending order among its
    kind; without one, a quantity of at most 0.
    """

    kind: ClueKind
    text: str
    measure: Callable[..., float] | None = None
    position: int | None = None

    def find_misses(self, values: Sequence[float]) -> list[float]:
        """Return how far quantities are from the one that is meant, 0 where the clause holds."""
        if self.position is None:
            return [max(0.0, value) for value in values]
        known = sorted(value for value in values if value < _UNKNOWN)
        if not -len(known) <= self.position < len(known):
            return [1.0] * len(values)
        meant = known.index(known[self.position])
        return [
            float(abs(known.index(value) - meant)) if value < _UNKNOWN else float(len(values))
            for value in values
        ]

    def is_clear(self, own: float, others: Sequence[float]) -> bool:
        """Return whether a quantity is the one that is meant by a margin."""
        if self.position is None:
            return own < -_MARGIN_M / 2 and all(x > _MARGIN_M / 2 for x in others)
        if self.kind is ClueKind.SIZE:
            return all(max(own, x) >= _SIZE_RATIO * min(own, x) for x in others)
        return all(abs(own - x) >= _MARGIN_M for x in others)


CLUES: Mapping[str, Clue] = {
    'on': Clue(ClueKind.RELATION, 'on {0}'),
    'next to': Clue(ClueKind.RELATION, 'next to {0}'),
    'between': Clue(ClueKind.BETWEEN, 'between {0} and {1}', off_between_m),
    **{
        word: Clue(kind, f'{word} {{0}} of its kind', _measure_distance, position)
        for word, kind, position in (
            ('closest to', ClueKind.DISTANCE, 0),
            ('farthest from', ClueKind.DISTANCE, -1),
            ('second closest to', ClueKind.ORDER, 1),
            ('third closest to', ClueKind.ORDER, 2),
        )
    },
    **{
        word: Clue(ClueKind.SIZE, f'the {word} of its kind', measure, position)
        for word, measure, position in (
            ('largest', lambda box: box.volume, -1),
            ('smallest', lambda box: box.volume, 0),
            ('tallest', _measure_height, -1),
            ('lowest', _measure_height, 0),
        )
    },
}
"""The kinds of clauses by their words."""

_CLAUSE = re.compile(
    ',? (?:'
    + '|'.join(
        f'(?P<{word.replace(" ", "_")}>{clue.text.format("the (.+?)", "the (.+?)")})'
        for word, clue in CLUES.items()
    )
    + ')(?=,|$)'
)


@dataclass(frozen=True)
class Clause:
    """One statement of an expression: a word of CLUES, and its anchors as bare noun phrases."""

    word: str
    phrases: tuple[str, ...] = ()

    @property
    def clue(self) -> Clue:
        """The meaning."""
        return CLUES[self.word]

    @property
    def text(self) -> str:
        """The words."""
        return self.clue.text.format(*map(definite, self.phrases))

    def measure(
        self, index: GraphIndex, nodes: Sequence[SceneNode], anchors: Sequence[SceneNode | None]
    ) -> list[float]:
        """Return the quantity of each of some objects of a graph, `inf` if it is unknown."""
        measure = self.clue.measure
        if measure is None:
            ids = [anchor.id for anchor in anchors if anchor is not None]
            return [
                -1.0 if any(index.related(self.word, node.id, key) for key in ids) else 1.0
                for node in nodes
            ]
        boxes = [None if anchor is None else anchor.box for anchor in anchors]
        return [
            _UNKNOWN if None in (node.box, *boxes) else measure(node.box, *boxes) for node in nodes
        ]


@dataclass(frozen=True)
class Expression:
    """A noun phrase without article, such as 'red chair', with clauses that all hold."""

    phrase: str
    clauses: tuple[Clause, ...] = ()

    @property
    def text(self) -> str:
        """The words, e.g. 'the red chair between the table and the window'."""
        said = [definite(self.phrase), *(clause.text for clause in self.clauses)]
        if len(said) > 1 and self.clauses[0].clue.kind is not ClueKind.SIZE:
            said[:2] = [' '.join(said[:2])]
        return ', '.join(said)

    def rank_objects(self, reader: GraphReader) -> list[SceneNode]:
        """Return the objects of the kind that is named, best first.

        Those for which most of the expression holds come first, then by how little they miss it.
        An adjective that the map cannot check is left aside.
        """
        named = reader.all_named(self.phrase)
        nodes = reader.all_named(without_adjectives(self.phrase)) or named
        fits = {node.id for node in named} or {node.id for node in nodes}
        found = [[float(node.id not in fits) for node in nodes]]
        for clause in self.clauses:
            anchors = [reader.named(phrase) for phrase in clause.phrases]
            values = clause.measure(reader.index, nodes, anchors)
            found.append(clause.clue.find_misses(values))

        def count_misses(number: int) -> tuple[int, float]:
            """Return how many clauses an object misses, and by how much."""
            misses = [row[number] for row in found]
            return sum(miss > 0 for miss in misses), sum(min(x, 1e6) for x in misses)

        return [nodes[i] for i in sorted(range(len(nodes)), key=count_misses)]


def read_expression(text: str) -> Expression | None:
    """Return the meaning of an expression, None if it is worded otherwise."""
    start = _CLAUSE.search(text)
    head = text if start is None else text[: start.start()]
    clauses = []
    end = len(head)
    while match := _CLAUSE.match(text, end):
        end = match.end()
        _, *phrases = (group for group in match.groups() if group is not None)
        assert match.lastgroup is not None
        word = match.lastgroup.replace('_', ' ')
        clauses.append(Clause(word, tuple(without_article(f'the {x}') for x in phrases)))
    if not head.startswith('the ') or end != len(text):
        return None
    return Expression(without_article(head), tuple(clauses))


def asked(expression: str) -> str:
    """Return the question for the object that an expression means."""
    return f'Which thing is meant by "{expression}"? Name its node, or give its box.'


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
    parts = truth.visible_graph
    graphs = [truth.evaluated_graph, truth.graph]
    if parts is not None:
        graphs += [parts, *with_neighbour_margins(truth.evaluated_graph)]
    ids = {node.id for node in view.wide.things}
    indices = [GraphIndex(graph, ids) for graph in graphs]
    rng = np.random.default_rng([seed, 23])
    pools: dict[ClueKind, list[tuple[_Target, Expression, list[Clause]]]] = {
        kind: [] for kind in ClueKind
    }
    for node in shuffled(rng, view.objects):
        target = _Target(node, view, indices)
        truths = shuffled(rng, target.list_truths())
        for kind, short in shuffled(rng, target.distinguish(truths)):
            rest = [clause for clause in truths if clause not in short.clauses]
            pools[kind].append((target, short, rest))
    turns = deque((kind, iter(pool)) for kind, pool in pools.items())
    questions: list[Question] = []
    meant: set[int] = set()
    while turns and len(meant) < targets:
        kind, pool = turns.popleft()
        chosen = next((item for item in pool if item[0].node.id not in meant), None)
        if chosen is None:
            continue
        turns.append((kind, pool))
        target, short, rest = chosen
        meant.add(target.node.id)
        box = (target.node if parts is None else parts.by_id[target.node.id]).known_box
        for length, expression in _lengthen(short, rest):
            questions.append(
                make_question(
                    SUITE,
                    scene,
                    asked(expression),
                    AnswerType.BOX,
                    tuple(round(x, 3) for x in (*box.minimum.tolist(), *box.maximum.tolist())),
                    category=kind.value,
                    nodes=(target.node.id,),
                    tolerance=TOLERANCE,
                    provenance={
                        'generator': GENERATOR,
                        'seed': str(seed),
                        'expression': expression,
                        'target': str(target.node.id),
                        'length': length.value,
                        'same_class': str(len(target.kin)),
                    },
                )
            )
    return questions


def _lengthen(short: Expression, rest: Sequence[Clause]) -> Iterator[tuple[Length, str]]:
    """Yield an expression with each more clause, as far as there are."""
    for more, length in enumerate(Length):
        expression = Expression(short.phrase, (*short.clauses, *rest[:more]))
        # An expression that reads back otherwise, as a name has an "and", is not asked.
        if len(rest) < more or read_expression(expression.text) != expression:
            return
        yield length, expression.text


class _Target:
    """An object with the clauses that are true of it, and of no other of its kind.

    `kin` are all objects of its kind that a map may have, it first; the anchors are objects of
    other kinds by name, the nearest first.
    """

    def __init__(self, node: SceneNode, view: SceneView, indices: Sequence[GraphIndex]) -> None:
        self.node = node
        self._view = view
        self._indices = indices
        label = label_of(node)
        self._label = label
        others = [n for n in view.wide.things if n.id != node.id and n.label]
        self.kin = [node, *(other for other in others if label_of(other) == label)]
        known = [index.graph.by_id.get(node.id) for index in indices]
        self._is_known = all(item is not None and item.box is not None for item in known)
        named = [n for n in view.named_boxed if label_of(n) != label and self._is_seeable(n)]
        if self._is_known:
            named.sort(key=lambda other: centre_distance_m(other, node))
        self._anchors = {view.name(anchor): anchor for anchor in named[:_ANCHORS]}

    def _is_seeable(self, node: SceneNode) -> bool:
        """Return whether a node has a name without a material, which no camera sees."""
        name = self._view.names.get(node.id)
        return name is not None and not self._view.names_material(name)

    def list_truths(self) -> list[Clause]:
        """Return clauses that are clearly true of the object, with its kind and its attributes."""
        clauses = [
            Clause(word, phrases)
            for word, clue in CLUES.items()
            if clue.position is None or len(self.kin) >= 2 + max(0, clue.position)
            for phrases in combinations(self._anchors, clue.text.count('{'))
        ]
        return [x for x in clauses if self._is_known and self._is_true(x, alone=False)]

    def _is_true(self, clause: Clause, *, alone: bool) -> bool:
        """Return whether a clause is clearly true of the object, maybe only of it, everywhere."""
        clue = clause.clue
        anchors = [self._anchors[name] for name in clause.phrases]
        seen = [n for n in self.kin if n.id in self._view.index.by_id]
        # A map may have objects that were hardly seen, or not.
        for index, things in product(self._indices, (self.kin, seen)):
            nodes, ends = (
                [index.graph.by_id.get(n.id, n) for n in part] for part in (things, anchors)
            )
            values = clause.measure(index, nodes, ends)
            off, *others_off = clue.find_misses(values)
            if off > 0 or (alone and 0.0 in others_off):
                return False
            compared = values[1:] if alone or clue.position is not None else []
            if not clue.is_clear(values[0], [x for x in compared if x < _UNKNOWN]):
                return False
        return True

    def distinguish(self, truths: Sequence[Clause]) -> Iterator[tuple[ClueKind, Expression]]:
        """Yield short expressions that mean the object and no other, by kind."""
        if self._view.has_rival(self._label) or not self._is_known:
            return
        if len(self.kin) == 1:
            yield ClueKind.CLASS, Expression(self._label)
            return
        if self._is_seeable(self.node):
            yield ClueKind.ATTRIBUTE, Expression(self._view.name(self.node))
        for clause in truths:
            if self._is_true(clause, alone=True):
                yield clause.clue.kind, Expression(self._label, (clause,))


Ranking = Callable[[str], Sequence[SceneNode] | None]
"""Returns the objects that an expression may mean, best first; None where it is not understood."""


class RankingAnswerer(OneByOne):
    """Answers with the objects that an expression may mean, the best one first.

    `rank_map` returns the function that ranks the objects of a map.
    """

    def __init__(self, name: str, rank_map: Callable[[SemanticMap], Ranking]) -> None:
        self.name = name
        self._rank_map = rank_map

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return the answerer with the objects that an expression may mean."""
        rank = self._rank_map(semantic_map)

        def answer_inquiry(item: Inquiry) -> Answer:
            quoted = re.search('"(.+)"', item.text)
            found = rank(quoted[1] if quoted else item.text)
            note = '' if found else 'the map has nothing of this kind'
            if found is None:
                note = 'the wording is not one that the rules know'
            ids = tuple(node.id for node in found or ())
            return Answer(item.id, None, self.name, ids, note)

        return answer_inquiry


def rank_by_clauses(semantic_map: SemanticMap, *, embedder: Embedder | None = None) -> Ranking:
    """Return what counts which clauses of an expression hold for each object of the kind."""
    reader = GraphReader.of_map(semantic_map, embedder)

    def rank(text: str) -> Sequence[SceneNode] | None:
        expression = read_expression(text)
        return None if expression is None else expression.rank_objects(reader)

    return rank


def rank_by_features(semantic_map: SemanticMap, *, encoder: TextEncoder) -> Ranking:
    """Return what ranks objects by the cosine of their features with an expression."""
    found = find_featured(semantic_map)
    if found is None:
        return lambda _: ()
    space, nodes = found
    rows: NDArray[np.float32] = space.vectors[[node.feature_row or 0 for node in nodes]]

    def rank(text: str) -> Sequence[SceneNode]:
        alike = cosine_similarity(rows, encoder(space, [text]))[:, 0]
        return [nodes[i] for i in np.argsort(-alike, kind='stable').tolist()]

    return rank


def find_featured(semantic_map: SemanticMap) -> tuple[FeatureSpace, list[SceneNode]] | None:
    """Return a feature space with a text encoder, and the objects with a row in it, if any."""
    objects = semantic_map.graph.of_kind(NodeKind.OBJECT)
    for space in semantic_map.feature_spaces.values():
        own = [x for x in objects if x.feature_row is not None and x.feature_space == space.name]
        if space.text_comparable and own:
            return space, own
    return None
