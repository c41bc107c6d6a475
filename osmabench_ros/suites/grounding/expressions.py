"""Referring expressions without viewpoint: their words, and their meaning in a scene graph."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import RelationType, SceneNode
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.english import definite, without_adjectives, without_article

BETWEEN_M = 0.5
"""What is between two things lies this close to the line of their centres, seen from above."""

_BETWEEN_SHARE = (0.2, 0.8)
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


_PLACES = {'closest to': 0, 'second closest to': 1, 'third closest to': 2, 'farthest from': -1}
_SIZES = {'largest': -1, 'smallest': 0, 'tallest': -1, 'lowest': 0}
"""Position of what a superlative means, things in ascending order."""

_RELATIONS = (RelationType.ON.value, RelationType.NEXT_TO.value)
_CLAUSE = re.compile(
    r',? (?:'
    r'(?P<between>between) the (?P<first>.+?) and the (?P<second>.+?)'
    rf'|(?P<relation>{"|".join(_RELATIONS)}) the (?P<other>.+?)'
    rf'|(?P<place>{"|".join(_PLACES)}) the (?P<anchor>.+?) of its kind'
    rf'|the (?P<size>{"|".join(_SIZES)}) of its kind'
    r')(?=,|$)'
)
_QUOTED = re.compile(r'"(.+)"')


@dataclass(frozen=True)
class Clause:
    """One statement of an expression; phrases without article are of the objects that it names.

    `word` is 'between', a relation, or a superlative such as 'closest to' or 'largest'.
    """

    word: str
    phrases: tuple[str, ...] = ()

    @property
    def kind(self) -> ClueKind:
        """What kind of clue it is."""
        if self.word in _RELATIONS:
            return ClueKind.RELATION
        if self.word in _SIZES:
            return ClueKind.SIZE
        ordered = self.word not in ('closest to', 'farthest from')
        found = ClueKind.ORDER if ordered else ClueKind.DISTANCE
        return ClueKind.BETWEEN if self.word == 'between' else found

    @property
    def text(self) -> str:
        """The words."""
        named = ' and '.join(map(definite, self.phrases))
        if self.word in _SIZES:
            return f'the {self.word} of its kind'
        tail = ' of its kind' if self.word in _PLACES else ''
        return f'{self.word} {named}{tail}'

    @property
    def position(self) -> int | None:
        """Place of the target among its kind in ascending order; None for others."""
        return {**_PLACES, **_SIZES}.get(self.word)


@dataclass(frozen=True)
class Expression:
    """A noun phrase without article, such as 'red chair', with clauses that all hold."""

    phrase: str
    clauses: tuple[Clause, ...] = ()

    @property
    def text(self) -> str:
        """The words, e.g. 'the red chair between the table and the window'."""
        said = [definite(self.phrase), *(clause.text for clause in self.clauses)]
        if len(said) > 1 and self.clauses[0].kind is not ClueKind.SIZE:
            said[:2] = [' '.join(said[:2])]
        return ', '.join(said)


def read_expression(text: str) -> Expression | None:
    """Return the meaning of an expression, None if it is worded otherwise."""
    start = _CLAUSE.search(text)
    head = text if start is None else text[: start.start()]
    clauses, end = [], len(head)
    while match := _CLAUSE.match(text, end):
        said, end = match.groupdict(), match.end()
        word = said['between'] or said['relation'] or said['place'] or said['size']
        named = (said['first'], said['second'], said['other'], said['anchor'])
        clauses.append(Clause(word, tuple(without_article(f'the {x}') for x in named if x)))
    if not head.startswith('the ') or end != len(text):
        return None
    return Expression(without_article(head), tuple(clauses))


def asked(expression: str) -> str:
    """Return the question for the object that an expression means."""
    return f'Which thing is meant by "{expression}"? Name its node, or give its box.'


def quoted(question: str) -> str:
    """Return the expression in a question, all of it if nothing is quoted."""
    match = _QUOTED.search(question)
    return question if match is None else match[1]


def off_between_m(box: AxisAlignedBox, first: AxisAlignedBox, second: AxisAlignedBox) -> float:
    """Return by how much a box misses being between two others, below 0 if it is.

    Its centre, seen from above, is between 0.2 and 0.8 of the way between theirs, and at most
    BETWEEN_M next to it.
    """
    start, way = first.center[:2], (second.center - first.center)[:2]
    length = float(np.linalg.norm(way))
    if length < 1e-6:
        return _UNKNOWN
    offset = box.center[:2] - start
    along = float(offset @ way) / length
    beside = abs(float(way[0] * offset[1] - way[1] * offset[0])) / length
    low, high = (share * length for share in _BETWEEN_SHARE)
    return max(low - along, along - high, beside - BETWEEN_M)


def measured(clause: Clause, box: AxisAlignedBox, anchors: Sequence[AxisAlignedBox]) -> float:
    """Return the quantity of a clause: metres between centres, a volume, a height, or a miss."""
    if clause.word == 'between':
        return off_between_m(box, *anchors)
    if clause.word in _PLACES:
        return float(np.linalg.norm(box.center - anchors[0].center))
    return box.volume if clause.word in ('largest', 'smallest') else float(box.size[2])


class ExpressionReader:
    """Finds what expressions mean in one scene graph."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader

    def misses(
        self, clause: Clause, nodes: Sequence[SceneNode], anchors: Sequence[SceneNode | None]
    ) -> list[float]:
        """Return how far each of some objects is from fulfilling a clause, 0 where it holds."""
        if clause.word in _RELATIONS:
            related = self._reader.index.related
            ids = [anchor.id for anchor in anchors if anchor is not None]
            return [float(not any(related(clause.word, n.id, i) for i in ids)) for n in nodes]
        boxes = [anchor.box for anchor in anchors if anchor is not None and anchor.box is not None]
        if len(boxes) < len(clause.phrases):
            return [1.0] * len(nodes)
        values = [
            _UNKNOWN if node.box is None else measured(clause, node.box, boxes) for node in nodes
        ]
        if clause.position is None:
            return [max(0.0, value) for value in values]
        known = sorted(value for value in values if value < _UNKNOWN)
        if not -len(known) <= clause.position < len(known):
            return [1.0] * len(nodes)
        meant = known.index(known[clause.position])
        return [
            float(abs(known.index(value) - meant)) if value < _UNKNOWN else float(len(nodes))
            for value in values
        ]

    def ranked(self, expression: Expression) -> list[SceneNode]:
        """Return the objects of the kind that is named, best first.

        Those for which most of the expression holds come first, then by how little they miss it.
        An adjective that the map cannot check is left aside.
        """
        named = self._reader.all_named(expression.phrase)
        nodes = self._reader.all_named(without_adjectives(expression.phrase)) or named
        if not nodes:
            return []
        fits = {node.id for node in named} or {node.id for node in nodes}
        found = [[float(node.id not in fits) for node in nodes]]
        for clause in expression.clauses:
            anchors = [self._reader.named(phrase) for phrase in clause.phrases]
            found.append(self.misses(clause, nodes, anchors))

        def off(number: int) -> tuple[int, float, int]:
            """Return how many clauses an object misses, by how much, and its number."""
            misses = [row[number] for row in found]
            return sum(miss > 0 for miss in misses), sum(min(x, 1e6) for x in misses), number

        return [nodes[i] for i in sorted(range(len(nodes)), key=off)]
