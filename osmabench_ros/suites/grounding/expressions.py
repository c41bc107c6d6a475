"""Referring expressions without viewpoint: a row for each clue, questions, and answers of maps."""

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations, product
from typing import Any

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.language.embedding import Embedder
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
from osmabench_ros.vqa.graph_index import centre_distance_m
from osmabench_ros.vqa.questions import Answer, AnswerType, Inquiry, Question, make_question

SUITE, GENERATOR = 'grounding', 'grounding/1'
DEFAULT_TARGETS = 30
# 1 minus the IoU from which on a box is right.
TOLERANCE = 0.75

# An object between two others is this close to the line of their centres, seen from above.
BETWEEN_M = 0.5

_BETWEEN_SHARE = (0.2, 0.8)
# By this much the next object must be nearer or farther than the one that is meant.
_MARGIN_M = 0.25

# By this much, as logarithms, it must be larger or smaller.
_RATIO = math.log(1.2)

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


# Lengths of the expressions of a target, each with one more clause.
LENGTHS = ('short', 'medium', 'long')


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


@dataclass(frozen=True)
class Clue:
    """A kind of clause: its words with places for the anchors, and its meaning.

    `measure` returns the quantity of a box, given the boxes of the anchors; without it the graph
    has the relation. The object that is meant has the `position` in ascending order among its
    kind; without one, a quantity of at most 0. It is so clearly by the `margin`.
    """

    kind: ClueKind
    text: str
    measure: Callable[..., float] | None = None
    position: int | None = None
    margin: float = _MARGIN_M


def _measure_m(box: AxisAlignedBox, anchor: AxisAlignedBox) -> float:
    return math.dist(box.center, anchor.center)


def _measure_volume(box: AxisAlignedBox) -> float:
    return math.log(max(box.volume, 1e-9))


def _measure_height(box: AxisAlignedBox) -> float:
    return math.log(max(box.size[2], 1e-9))


# The kinds of clauses by their words.
CLUES: Mapping[str, Clue] = {
    'on': Clue(ClueKind.RELATION, 'on {}'),
    'next to': Clue(ClueKind.RELATION, 'next to {}'),
    'between': Clue(ClueKind.BETWEEN, 'between {} and {}', off_between_m, margin=_MARGIN_M / 2),
    'closest to': Clue(ClueKind.DISTANCE, 'closest to {} of its kind', _measure_m, 0),
    'farthest from': Clue(ClueKind.DISTANCE, 'farthest from {} of its kind', _measure_m, -1),
    'second closest to': Clue(ClueKind.ORDER, 'second closest to {} of its kind', _measure_m, 1),
    'third closest to': Clue(ClueKind.ORDER, 'third closest to {} of its kind', _measure_m, 2),
    'largest': Clue(ClueKind.SIZE, 'the largest of its kind', _measure_volume, -1, _RATIO),
    'smallest': Clue(ClueKind.SIZE, 'the smallest of its kind', _measure_volume, 0, _RATIO),
    'tallest': Clue(ClueKind.SIZE, 'the tallest of its kind', _measure_height, -1, _RATIO),
    'lowest': Clue(ClueKind.SIZE, 'the lowest of its kind', _measure_height, 0, _RATIO),
}

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
    def text(self) -> str:
        """The words."""
        return CLUES[self.word].text.format(*map(definite, self.phrases))

    def rate(self, reader: GraphReader, nodes: Sequence[SceneNode]) -> list[float]:
        """Return by how much each object of a kind misses the statement, at most 0 if it holds.

        An object that holds a position does so by the distance to the next one; others miss it by
        so many places. It is `inf` where the map does not know a quantity that has none.
        """
        clue = CLUES[self.word]
        anchors = [reader.named(phrase) for phrase in self.phrases]
        if clue.measure is None:
            ids = [anchor.id for anchor in anchors if anchor is not None]
            related = (any(reader.index.related(self.word, n.id, x) for x in ids) for n in nodes)
            return [-1.0 if found else 1.0 for found in related]
        boxes = [None if anchor is None else anchor.box for anchor in anchors]
        values = [
            _UNKNOWN if None in (node.box, *boxes) else clue.measure(node.box, *boxes)
            for node in nodes
        ]
        if clue.position is None:
            return values
        known = sorted(value for value in values if value < _UNKNOWN)
        if not -len(known) <= clue.position < len(known):
            return [1.0] * len(nodes)
        meant = known[clue.position]
        gaps = sorted(abs(value - meant) for value in (*known, _UNKNOWN))
        places = {value: abs(known.index(value) - known.index(meant)) for value in known}
        return [float(places.get(value, len(nodes))) or -gaps[1] for value in values]


@dataclass(frozen=True)
class Expression:
    """A noun phrase without article, such as 'red chair', with clauses that all hold."""

    phrase: str
    clauses: tuple[Clause, ...] = ()

    @property
    def text(self) -> str:
        """The words, e.g. 'the red chair between the table and the window'."""
        said = [definite(self.phrase), *(clause.text for clause in self.clauses)]
        if len(said) > 1 and CLUES[self.clauses[0].word].kind is not ClueKind.SIZE:
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
        found += [clause.rate(reader, nodes) for clause in self.clauses]

        def count_misses(number: int) -> tuple[int, float]:
            """Return how many clauses an object misses, and by how much."""
            misses = [row[number] for row in found if row[number] > 0]
            return len(misses), sum(min(miss, 1e6) for miss in misses)

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


def ask_for_box(
    scene: str, corners: tuple[float, ...], provenance: Mapping[str, str], **more: Any
) -> Question:
    """Return the question for the `target` that the `expression` of a provenance means."""
    return make_question(
        SUITE, scene, asked(provenance['expression']), AnswerType.BOX, corners,
        nodes=(int(provenance['target']),), tolerance=TOLERANCE, provenance=provenance, **more,
    )  # fmt: skip


def grounding_questions(
    truth: GroundTruth, *, scene: str, seed: int, targets: int = DEFAULT_TARGETS
) -> list[Question]:
    """Generate referring expressions about the objects that a path saw, reproducible by seed.

    There are `targets` objects, each with up to three expressions, and as many of each
    `ClueKind` as possible. The answer is the box of the visible part of the target, the category
    the `ClueKind` that distinguishes it from others of its kind. The provenance has `target`
    (instance id), `length` (of LENGTHS), `same_class` (how many of its kind there are) and
    `expression`. The first part of each expression holds only for the target, by a margin, for
    whole objects and visible parts, and all that follows holds for the target too.
    """
    view = SceneView.of_path(truth)
    parts = truth.visible_graph
    graphs = [truth.evaluated_graph, truth.graph]
    if parts is not None:
        graphs += [parts, *with_neighbour_margins(truth.evaluated_graph)]
    # A map may have objects that were hardly seen, or not.
    readers = [
        GraphReader(graph, view.vocabulary, ids=index.by_id)
        for graph, index in product(graphs, (view.wide, view.index))
    ]
    rng = np.random.default_rng([seed, 23])
    pools: dict[ClueKind, list[tuple[SceneNode, Expression, list[Clause]]]] = {
        kind: [] for kind in ClueKind
    }
    for node in shuffled(rng, view.objects):
        for kind, short, rest in shuffled(rng, _distinguish(node, view, readers, rng)):
            pools[kind].append((node, short, rest))
    turns = deque((kind, iter(pool)) for kind, pool in pools.items())
    questions: list[Question] = []
    meant: set[int] = set()
    while turns and len(meant) < targets:
        kind, pool = turns.popleft()
        chosen = next((item for item in pool if item[0].id not in meant), None)
        if chosen is None:
            continue
        turns.append((kind, pool))
        target, short, rest = chosen
        meant.add(target.id)
        box = (target if parts is None else parts.by_id[target.id]).known_box
        same_class = len(readers[0].all_named(label_of(target)))
        corners = tuple(round(x, 3) for x in (*box.minimum.tolist(), *box.maximum.tolist()))
        for more, length in enumerate(LENGTHS):
            expression = Expression(short.phrase, (*short.clauses, *rest[:more]))
            # An expression that reads back otherwise, as a name has an "and", is not asked.
            if len(rest) < more or read_expression(expression.text) != expression:
                break
            provenance = {
                'generator': GENERATOR,
                'seed': str(seed),
                'expression': expression.text,
                'target': str(target.id),
                'length': length,
                'same_class': str(same_class),
            }
            questions.append(ask_for_box(scene, corners, provenance, category=kind.value))
    return questions


def _is_seeable(node: SceneNode, view: SceneView) -> bool:
    """Return whether an object has a name without a material, which no camera sees."""
    return node.id in view.names and not view.names_material(view.names[node.id])


def _distinguish(
    node: SceneNode, view: SceneView, readers: Sequence[GraphReader], rng: np.random.Generator
) -> Iterator[tuple[ClueKind, Expression, list[Clause]]]:
    """Yield short expressions that mean an object and no other, by kind, with more true clauses.

    There are none unless all maps have a box of the object under its name.
    """
    label = label_of(node)
    kin = [reader.all_named(label) for reader in readers]
    if not all(any(x.id == node.id and x.box is not None for x in nodes) for nodes in kin):
        return
    anchors = [n for n in view.named_boxed if label_of(n) != label and _is_seeable(n, view)]
    anchors.sort(key=lambda other: centre_distance_m(other, node))
    names = [view.name(anchor) for anchor in anchors[:_ANCHORS]]
    clauses = [
        Clause(word, phrases)
        for word, clue in CLUES.items()
        if clue.position is None or len(kin[0]) >= 2 + max(0, clue.position)
        for phrases in combinations(names, clue.text.count('{'))
    ]
    truths = shuffled(rng, (clause for clause in clauses if _is_true(clause, node, readers)))
    if label not in view.groups:
        return
    if len(kin[0]) == 1:
        yield ClueKind.CLASS, Expression(label), truths
        return
    if _is_seeable(node, view):
        yield ClueKind.ATTRIBUTE, Expression(view.name(node)), truths
    for clause in truths:
        if _is_true(clause, node, readers, only=True):
            rest = [other for other in truths if other != clause]
            yield CLUES[clause.word].kind, Expression(label, (clause,)), rest


def _is_true(
    clause: Clause, node: SceneNode, readers: Sequence[GraphReader], *, only: bool = False
) -> bool:
    """Return whether a clause is clearly true of an object, maybe only of it, in all maps."""
    margin = CLUES[clause.word].margin
    for reader in readers:
        kin = reader.all_named(label_of(node))
        missed = dict(zip((x.id for x in kin), clause.rate(reader, kin), strict=True))
        if missed.pop(node.id) > -margin:
            return False
        if only and min(missed.values(), default=_UNKNOWN) < margin:
            return False
    return True


# Returns the objects that an expression may mean, best first; None where it is not understood.
Ranking = Callable[[str], Sequence[SceneNode] | None]


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
            return Answer(item.id, None, self.name, tuple(node.id for node in found or ()), note)

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
    space, nodes = find_featured(semantic_map) or (None, [])

    def rank(text: str) -> Sequence[SceneNode]:
        if space is None:
            return ()
        rows = space.vectors[[node.feature_row or 0 for node in nodes]]
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
