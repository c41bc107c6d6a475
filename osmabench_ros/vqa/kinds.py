"""The kinds of questions: one row each, with wordings, value, tolerance, and when it is clear."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle, product
from math import inf
from typing import Any

import numpy as np

from osmabench_ros.errors import ConfigError
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.vqa.answering.execution import (
    GraphAnswer,
    GraphReader,
    SilentError,
    answer_from,
)
from osmabench_ros.vqa.english import basic_color, confusable, is_one_material, material_noun
from osmabench_ros.vqa.graph_index import GraphIndex, attribute, centre_distance_m
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import AnswerType, AnyCategory, Category, SpatialCategory

# Objects with heights that differ by less than this are equally tall.
ALIKE_M = 0.15

# Objects with centres this near to one line are in a row.
ROW_M = 0.3

# Rooms are about as large if the larger area is at most so many times the smaller one.
ROOMS_RATIO = 1.25

# Places of objects that are symmetric differ by less than this from mirror images.
MIRRORED_M = 0.15

# A length is only asked about if it differs from the threshold by at least this much.
MARGIN_M = 0.2

_DOUBT_M = (-MARGIN_M, MARGIN_M)
_FIT_M, _RISE_M = 0.1, 0.4
_CLOSER_RATIO, _LONGEST_GAP_M = 1.5, 2.5
_RATIO = {'taller': 1.4, 'wider': 1.4, 'bulkier': 2.0}

# The published ones of Space3D-Bench.
COORDINATE_TOLERANCE_M, WALK_TOLERANCE_M = 0.1, 0.5

ON, IN = RelationType.ON.value, RelationType.IN.value
NEXT_TO, ATTACHED = RelationType.NEXT_TO.value, RelationType.ATTACHED_TO.value

# Returns the answer of a graph to a query; raises SilentError if the graph does not say.
Find = Callable[[GraphReader, 'Query'], GraphAnswer]

Nodes = Sequence[SceneNode]
# Returns a value from the reader, what each phrase means, and the word or number, if any.
Value = Callable[..., Any]

# Returns whether an answer is clear enough to be asked for, from the same arguments.
Clear = Callable[..., bool]

# Returns the node or nodes that a phrase means.
Read = Callable[[GraphReader, str], Any]

SOURCES, TARGETS = GraphIndex.sources, GraphIndex.targets
ONE, BOXED, CANDIDATES = GraphReader.one, GraphReader.boxed, GraphReader.related_candidates
ALL, SEVERAL = GraphReader.existing, GraphReader.several


def _find(value: Value, *reads: Read) -> Find:
    """Return how to find a value of what phrases mean, each read in its way, else with a box."""

    def find(g: GraphReader, query: Query) -> GraphAnswer:
        ways = zip(query.phrases, cycle(reads or (BOXED,)), strict=False)
        meant = [read(g, phrase) for phrase, read in ways]
        words = [word for word in (query.word, query.number) if word not in ('', None)]
        groups = [[item] if isinstance(item, SceneNode) else item for item in meant]
        return answer_from(value(g, *meant, *words), *chain.from_iterable(groups))

    return find


def _is_always_clear(*_: object) -> bool:
    return True


def _exclude(measure: Value, low: float, high: float) -> Clear:
    return lambda *terms: not low < measure(*terms) < high


# Columns of a kind: type, how to find the answer, both tolerances, when it is clear.
Columns = tuple[AnswerType, Find, float, float, Clear]


def _measure(
    measure: Value, least: float, absolute: float, relative: float, *reads: Read
) -> Columns:
    """Ask for a quantity of at least so much."""
    clear = _exclude(measure, -inf, least)
    return AnswerType.NUMBER, _find(measure, *reads), absolute, relative, clear


def _at_most(
    measure: Value, limit: float, doubt: tuple[float, float] | None = None, *reads: Read
) -> Columns:
    """Ask whether a quantity is at most a limit, unless it is a third to twice of it."""
    find = _find(lambda *terms: measure(*terms) <= limit, *reads)
    clear = _exclude(measure, *(doubt or (limit / 3, 2 * limit)))
    return AnswerType.YES_NO, find, 0.0, 0.0, clear


def _exceed(measure: Value, sign: int) -> Value:
    return lambda g, first, second, *rest: (
        sign * measure(g, first, *rest) > sign * measure(g, second, *rest)
    )


def _choose(measure: Value, sign: int, clear: Clear = _is_always_clear) -> Columns:
    """Ask for the one of two objects of which a quantity, times a sign, is larger."""
    find_first = _find(_exceed(measure, sign))

    def find(g: GraphReader, query: Query) -> GraphAnswer:
        found = find_first(g, query)
        return replace(found, value=query.phrases[0 if found.value == 'yes' else 1])

    return AnswerType.TEXT, find, 0.0, 0.0, clear


def _test(test: Callable[..., bool]) -> tuple[AnswerType, Find]:
    find = _find(lambda _, *found: test(*map(bool, found)), lambda g, p: g.existing(p)[:1])
    return AnswerType.YES_NO, find


def _read_as(key: str, read: Callable[..., str | bool]) -> Find:
    """Return how to find an attribute, read by a function of it, and of the word if any."""

    def find(g: GraphReader, query: Query) -> GraphAnswer:
        words = (query.word,) if query.word else ()
        for node in g.candidates(query.phrases[0]):
            known = attribute(node, key)
            if known is not None:
                return answer_from(read(known, *words), node)
        raise SilentError(f'the map gives no {key} for {query.phrases[0]}')

    return find


def _answer_relation(g: GraphReader, query: Query) -> GraphAnswer:
    pairs = [*product(*map(g.related_candidates, query.phrases))]
    related = (pair for pair in pairs if g.index.related(query.word, *(node.id for node in pair)))
    return _answer_by_case(related, pairs[0])


def _answer_by_case(cases: Iterable[Nodes], otherwise: Nodes) -> GraphAnswer:
    """Return yes with the nodes of the first case, else no with others."""
    first = next(iter(cases), None)
    return answer_from(first is not None, *(first or otherwise))


def _find_related(
    relation: str, related: Callable[[GraphIndex, str, int], tuple[int, ...]]
) -> tuple[AnswerType, Find]:
    def find(g: GraphReader, query: Query) -> GraphAnswer:
        for node in g.related_candidates(query.phrases[0]):
            others = [g.index.by_id[i] for i in related(g.index, relation or query.word, node.id)]
            named = [other for other in others if other.label]
            for other in sorted(named, key=lambda other: other.kind is not NodeKind.OBJECT)[:1]:
                return answer_from(knowledge().spelt(normalised_name(other.label)), node, other)
        raise SilentError(f'the map names nothing {relation or query.word} for {query.phrases[0]}')

    return AnswerType.TEXT, find


def _find_usable(relation: str) -> Find:
    def find(g: GraphReader, query: Query) -> GraphAnswer:
        nodes = g.related_candidates(query.phrases[0])
        by_id, sources = g.index.by_id, g.index.sources
        pairs = ((node, by_id[i]) for node in nodes for i in sources(relation, node.id))
        usable = (pair for pair in pairs if _is_usable(pair[1], query.word))
        return _answer_by_case(usable, nodes[:1])

    return find


def _count_usable(g: GraphReader, query: Query) -> GraphAnswer:
    nodes = [node for node in g.index.things if _is_usable(node, query.word)]
    return answer_from(len(nodes), *nodes)


def _is_usable(node: SceneNode, affordance: str) -> bool:
    return bool(node.label) and knowledge().affords(normalised_name(node.label), affordance)


def _is_loaded(g: GraphReader, nodes: Nodes) -> bool:
    return any(g.index.sources(ON, node.id) for node in nodes)


def _is_bare(g: GraphReader, nodes: Nodes) -> bool:
    return not _is_loaded(g, nodes)


def _count_with(g: GraphReader, query: Query) -> GraphAnswer:
    node = g.one(query.phrases[1])
    room = g.room(node)
    inside = [item for item in g.existing(query.phrases[0]) if item.parent == room.id]
    return answer_from(len(inside), *inside, node)


def _count_around(g: GraphReader, query: Query) -> GraphAnswer:
    node = g.related_candidates(query.phrases[1])[0]
    neighbours = set(g.index.sources(NEXT_TO, node.id))
    found = [item for item in g.existing(query.phrases[0]) if item.id in neighbours]
    return answer_from(len(found), *found, node)


def _count_lack(_: GraphReader, first: Nodes, second: Nodes) -> int:
    return len(second) - len(first)


def _height_m(_: GraphReader, node: SceneNode) -> float:
    return float(node.known_box.size[2])


def _distance_m(_: GraphReader, first: SceneNode, second: SceneNode) -> float:
    return centre_distance_m(first, second)


def _extent(_: GraphReader, node: SceneNode, comparative: str) -> float:
    """Return the quantity of a comparative of `knowledge.COMPARATIVES`."""
    box = node.known_box
    return {
        'taller': float(box.size[2]),
        'bulkier': box.volume,
        'wider': float(box.size[:2].max()),
        'higher up': float(box.center[2]),
    }[comparative]


def _is_far_more(g: GraphReader, first: SceneNode, second: SceneNode, word: str) -> bool:
    if word == 'higher up':
        # Feet and top of one are above feet and top of the other, too.
        boxes = (first.known_box, second.known_box)
        low, high = sorted(boxes, key=lambda box: float(box.center[2]))
        ends_m = (high.minimum[2] - low.minimum[2], high.maximum[2] - low.maximum[2])
        return bool(high.center[2] - low.center[2] >= _RISE_M and min(ends_m) >= _RISE_M / 2)
    less, more = sorted(_extent(g, node, word) for node in (first, second))
    return less > 0 and more / less >= _RATIO[word] and (word == 'bulkier' or more - less >= 0.1)


def compare_clearly(first: float, second: float, ratio: float, least: float) -> int:
    """Return -1 if the first is smaller by so much, 1 if the second is, 0 if neither is."""
    near, far = sorted((first, second))
    if far < max(near * ratio, near + least):
        return 0
    return -1 if first < second else 1


def _is_far_closer(_: GraphReader, first: SceneNode, second: SceneNode, to: SceneNode) -> bool:
    """Return whether the object with the nearer centre has the nearer surface too."""
    one_m, other_m = (centre_distance_m(node, to) for node in (first, second))
    one_gap_m, other_gap_m = (n.known_box.measure_gap(to.known_box) for n in (first, second))
    by_centre = compare_clearly(one_m, other_m, _CLOSER_RATIO, 0.5)
    return by_centre != 0 and by_centre == compare_clearly(
        one_gap_m, other_gap_m, _CLOSER_RATIO, 0.3
    )


def _exceed_reach_m(g: GraphReader, node: SceneNode, reach_m: float) -> float:
    return float(node.known_box.maximum[2]) - g.index.floor_height_m(node) - reach_m


def _gap_m(first: SceneNode, second: SceneNode) -> float:
    """Return the horizontal distance between two boxes in metres, 0 if they overlap from above."""
    one, other = first.known_box, second.known_box
    gaps = np.maximum(one.minimum, other.minimum) - np.minimum(one.maximum, other.maximum)
    return float(np.linalg.norm(np.maximum(gaps[:2], 0.0)))


def _is_passed(_: GraphReader, first: SceneNode, second: SceneNode, width_m: float) -> bool:
    return _gap_m(first, second) >= width_m


def _is_clear_gap(_: GraphReader, first: SceneNode, second: SceneNode, width_m: float) -> bool:
    gap_m = _gap_m(first, second)
    return gap_m <= _LONGEST_GAP_M and abs(gap_m - width_m) >= MARGIN_M


def _exceed_space_m(g: GraphReader, node: SceneNode, height_m: float) -> float:
    return height_m - g.index.space_above_m(node)


def _round_center(_: GraphReader, node: SceneNode) -> tuple[float, ...]:
    return tuple(np.round(node.known_box.center, 3).tolist())


def _area_ratio(g: GraphReader, *nodes: SceneNode) -> float:
    low, high = sorted(g.room_area_m2(node) for node in nodes)
    return high / low if low else inf


def _is_one_room(g: GraphReader, first: SceneNode, second: SceneNode) -> bool:
    return g.room(first).id == g.room(second).id


def _bends_m(g: GraphReader, first: SceneNode, second: SceneNode) -> tuple[float, float]:
    """Return how far the way is left and right of the straight line between its ends."""
    line_m = g.line_m(first, second)
    offsets = line_m[:, :2] - line_m[0, :2]
    chord = offsets[-1] / max(1e-9, float(np.linalg.norm(offsets[-1])))
    left = chord[0] * offsets[:, 1] - chord[1] * offsets[:, 0]
    return float(max(0.0, left.max())), float(max(0.0, -left.min()))


def _name_side(g: GraphReader, first: SceneNode, second: SceneNode) -> str:
    left_m, right_m = _bends_m(g, first, second)
    return 'left' if left_m > right_m else 'right'


def _is_bent_clearly(g: GraphReader, first: SceneNode, second: SceneNode) -> bool:
    less_m, more_m = sorted(_bends_m(g, first, second))
    return more_m >= 1.0 and less_m <= 0.3


def _height_spread_m(_: GraphReader, nodes: Nodes) -> float:
    """Return the difference in height between the tallest and the lowest of boxed objects."""
    return float(np.ptp([node.known_box.size[2] for node in nodes]))


def _off_line_m(_: GraphReader, nodes: Nodes) -> float:
    """Return how far the centre of an object is from the best line through all, from above."""
    centers = np.array([node.known_box.center[:2] for node in nodes])
    offsets = centers - centers.mean(axis=0)
    axes = np.linalg.svd(offsets)[2]
    return float(np.abs(offsets @ axes[1]).max())


def _mirror_error_m(_: GraphReader, pair: Nodes, about: SceneNode) -> float:
    """Return how far one of two is from the mirror image of the other about an object's middle.

    The mirror is upright along an axis of the world, the one of two that fits better. It
    parts the two: otherwise there is no such image, and the error is infinite.
    """
    if len(pair) > 2:
        raise SilentError(f'the map has more than two of "{normalised_name(pair[0].label)}"')
    one, other, middle = (node.known_box.center[:2] for node in (*pair, about))
    errors = [inf]
    for axis in (0, 1):
        if (one[axis] - middle[axis]) * (other[axis] - middle[axis]) < 0:
            image = other.copy()
            image[axis] = 2 * middle[axis] - other[axis]
            errors.append(float(np.linalg.norm(image - one)))
    return min(errors)


def _slack_m(_: GraphReader, upper: SceneNode, lower: SceneNode) -> float:
    """Return by how much the top of a box is larger than the footprint of another, turned to fit.

    That is the smaller of the differences of the short edges and of the long ones.
    """
    edges = (np.sort(node.known_box.size[:2]) for node in (lower, upper))
    return float(np.subtract(*edges).min())


def _jut_out_m(g: GraphReader, upper: SceneNode, lower: SceneNode) -> float:
    return -_slack_m(g, upper, lower)


def _is_one_fitting(g: GraphReader, one: SceneNode, other: SceneNode, lower: SceneNode) -> bool:
    low, high = sorted(_slack_m(g, upper, lower) for upper in (one, other))
    return low <= -_FIT_M and high >= _FIT_M


YES_NO, INTEGER, NUMBER = AnswerType.YES_NO, AnswerType.INTEGER, AnswerType.NUMBER
TEXT, COORDINATES = AnswerType.TEXT, AnswerType.COORDINATES
(
    EXISTENCE, _ABSENCE, LOGICAL, MEASUREMENT, ATTRIBUTES, SPATIAL, FUNCTIONAL, COMPARISON,
    REACHABILITY, AFFORDANCE, PRECONDITION,
) = Category  # fmt: skip
LOCATION, EXTENT, _RELATION, NAVIGATION, PATTERN, PREDICTION = SpatialCategory


# Returns the named objects of a `SceneView` for each question.
Draw = Callable[[Any], Iterable[tuple[SceneNode, ...]]]

# All kinds by name, of other packages too; their wordings are understood.
KINDS: dict[str, Kind] = {}


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of question by its name; of both tolerances, relative too, the larger one holds.

    In wordings {0:a} is "a red chair", {0:the} "the red chair", {0:s} "red chairs" and {0:bare}
    "red chair"; {relation}, {color}, {material}, {more}, {done} and {side} are words of closed
    lists, {facing} says which objects are at sides of the scene; {number} is metres. Questions
    are asked about the objects that the kind draws, or without `draw` a source in `vqa.exact`, if
    the answer is `clear`.
    """

    value: str
    category: AnyCategory
    answer_type: AnswerType
    find: Find
    absolute: float = 0.0
    relative: float = 0.0
    clear: Clear = _is_always_clear
    draw: Draw | None = None
    wordings: tuple[str, ...] = ()

    def __call__(self, *wordings: str) -> Kind:
        """Return the kind with wordings, which are understood from now on.

        Raises ConfigError if there is another kind with the name.
        """
        kind = replace(self, wordings=wordings)
        if KINDS.get(self.value, kind).wordings != wordings:
            raise ConfigError(f'there is another kind of question "{self.value}"; rename one')
        KINDS[self.value] = kind
        return kind

    def __set_name__(self, owner: type, name: str) -> None:
        """Keep the name of a bundled kind, by which wordings are chosen."""
        object.__setattr__(self, '_place', f'{owner.__name__}.{name}')

    def __repr__(self) -> str:
        """Return the name."""
        return f'<{getattr(self, "_place", "Kind")}: {self.value!r}>'

    def tolerance(self, value: object) -> float:
        """Return how far off an answer may be."""
        size = value if isinstance(value, (int, float)) else 0.0
        return round(max(self.absolute, self.relative * size), 3)


class QueryKind:
    """The bundled kinds of questions."""

    EXISTS = Kind('exists', EXISTENCE, *_test(lambda a: a))(
        'Is there {0:a} in the scene?',
        'Is there {0:a} here?',
        'Does the scene contain {0:a}?',
        'Could one find {0:a} in this place?',
        'Is {0:a} present in the scene?',
    )
    ABSENT = Kind('absent', EXISTENCE, *_test(lambda a: not a))(
        'Is the scene without {0:a}?',
        'Is it true that there is no {0:bare} here?',
        'Is {0:a} missing from the scene?',
        'Would one search this place for {0:a} in vain?',
    )
    BOTH = Kind('both exist', LOGICAL, *_test(lambda a, b: a and b))(
        'Is there {0:a} AND {1:a}?',
        'Does the scene contain both {0:a} and {1:a}?',
        'Are {0:a} and {1:a} both present?',
    )
    EITHER = Kind('either exists', LOGICAL, *_test(lambda a, b: a or b))(
        'Is there {0:a} OR {1:a}?',
        'Is at least one of these two present: {0:a} or {1:a}?',
        'Does the scene contain {0:a} or {1:a}, or both?',
    )
    FIRST_ONLY = Kind('only the first exists', LOGICAL, *_test(lambda a, b: a and not b))(
        'Is there {0:a} but NOT {1:a}?',
        'Does the scene contain {0:a} and no {1:bare}?',
    )
    NEITHER = Kind('neither exists', LOGICAL, *_test(lambda a, b: not (a or b)))(
        'Is there NEITHER {0:a} NOR {1:a}?',
        'Are {0:a} and {1:a} both missing?',
    )
    COUNT = Kind('count', MEASUREMENT, INTEGER, _find(lambda _, nodes: len(nodes), ALL))(
        'How many {0:s} are there?',
        'How many {0:s} are in the scene?',
        'What is the number of {0:s} in the scene?',
        'Counting all {0:s} here, what is the total?',
    )
    MORE_OF = Kind('more of the first', COMPARISON, *_at_most(_count_lack, -1, (-2, 2), ALL))(
        'Are there more {0:s} than {1:s}?',
        'Do {0:s} outnumber {1:s} here?',
    )
    HEIGHT = Kind('height in metres', MEASUREMENT, *_measure(_height_m, 0.2, 0.1, 0.15))(
        'How tall is {0:the} in metres?',
        'What is the height of {0:the} in metres, from its lowest to its highest point?',
        'How many metres does {0:the} measure from bottom to top?',
    )
    DISTANCE = Kind('distance in metres', MEASUREMENT, *_measure(_distance_m, 0.6, 0.3, 0.15))(
        'How far apart are the centres of {0:the} and {1:the} in metres?',
        'What is the distance in metres between the centre of {0:the} and that of {1:the}?',
    )
    COLOR_OF = Kind('colour of', ATTRIBUTES, TEXT, _read_as('color', basic_color))(
        'What color is {0:the}?',
        'What is the color of {0:the}?',
        'Which color does {0:the} have?',
    )
    HAS_COLOR = Kind('has colour', ATTRIBUTES, YES_NO, _read_as('color', confusable))(
        'Is {0:the} {color}?',
        'Is {color} the color of {0:the}?',
        'Does {0:the} have the color {color}?',
    )
    MATERIAL_OF = Kind('material of', ATTRIBUTES, TEXT, _read_as('material', material_noun))(
        'What is {0:the} made of?',
        'Which material is {0:the} made of?',
        'What is the material of {0:the}?',
    )
    HAS_MATERIAL = Kind('has material', ATTRIBUTES, YES_NO, _read_as('material', is_one_material))(
        'Is {0:the} made of {material}?',
        'Is {material} the material of {0:the}?',
    )
    RELATED = Kind('related', SPATIAL, YES_NO, _answer_relation)(
        'Is {0:the} {relation} {1:the}?',
        'Is it true that {0:the} is {relation} {1:the}?',
        'Would one find {0:the} {relation} {1:the}?',
    )
    RELATED_TO = Kind('what is related to', SPATIAL, *_find_related('', SOURCES))(
        'What is {relation} {0:the}?',
        'Which object is {relation} {0:the}?',
        'What can be found {relation} {0:the}?',
    )
    SUPPORT_OF = Kind('what supports', FUNCTIONAL, *_find_related(ON, TARGETS))(
        'Which object supports {0:the}?',
        'What serves as support for {0:the}?',
        'What bears the weight of {0:the}?',
    )
    SUPPORTED_BY = Kind('what is supported by', FUNCTIONAL, *_find_related(ON, SOURCES))(
        'Which object does {0:the} support?',
        'What does {0:the} serve as support for?',
    )
    CONTAINER_OF = Kind('what contains', FUNCTIONAL, *_find_related(IN, TARGETS))(
        'Which object contains {0:the}?',
        'What does {0:the} lie inside of?',
        'What serves as container for {0:the}?',
    )
    FIXED_TO = Kind('what is it attached to', FUNCTIONAL, *_find_related(ATTACHED, TARGETS))(
        'What is {0:the} fixed to?',
        'Which object holds {0:the} in place?',
    )
    WHICH_MORE = Kind('which is more', COMPARISON, *_choose(_extent, 1, _is_far_more))(
        'Which is {more}: {0:the} or {1:the}?',
        'Which of the two is {more}, {0:the} or {1:the}?',
        'Comparing {0:the} with {1:the}, which is {more}?',
    )
    IS_MORE = Kind(
        'is the first more', COMPARISON, YES_NO, _find(_exceed(_extent, 1)), clear=_is_far_more
    )(
        'Is {0:the} {more} than {1:the}?',
        'Compared with {1:the}, is {0:the} {more}?',
    )
    CLOSER = Kind('which is closer', COMPARISON, *_choose(_distance_m, -1, _is_far_closer))(
        'Which is closer to {2:the}: {0:the} or {1:the}?',
        'Starting from {2:the}, which is nearer: {0:the} or {1:the}?',
    )
    REACHABLE = Kind('top within reach', REACHABILITY, *_at_most(_exceed_reach_m, 0, _DOUBT_M))(
        'Can a gripper that reaches {number} m above the floor touch the top of {0:the}?',
        'Is the top of {0:the} within reach of an arm that ends {number} m above the floor?',
    )
    PASSABLE = Kind(
        'gap wide enough', REACHABILITY, YES_NO, _find(_is_passed), clear=_is_clear_gap
    )(
        'Is the gap between {0:the} and {1:the} wide enough for a robot of {number} m?',
        'Could a robot {number} m wide drive between {0:the} and {1:the}?',
    )
    CLEARANCE = Kind('free space above', REACHABILITY, *_at_most(_exceed_space_m, 0, _DOUBT_M))(
        'Are the {number} m above {0:the} free of other objects?',
        'Is there at least {number} m between the top of {0:the} and the next object above?',
    )
    AFFORDS_ON = Kind('usable thing on', AFFORDANCE, YES_NO, _find_usable(ON))(
        'Is there anything on {0:the} that can be {done}?',
        'Does {0:the} bear anything that can be {done}?',
    )
    AFFORDS_NEAR = Kind('usable thing next to', AFFORDANCE, YES_NO, _find_usable(NEXT_TO))(
        'Is there something next to {0:the} that can be {done}?',
        'Can anything next to {0:the} be {done}?',
    )
    AFFORDS_COUNT = Kind('count of usable things', AFFORDANCE, INTEGER, _count_usable)(
        'How many objects of the scene can be {done}?',
        'What is the number of objects here that can be {done}?',
    )
    LOADED = Kind('must be cleared', PRECONDITION, YES_NO, _find(_is_loaded, CANDIDATES))(
        'Must anything be taken off {0:the} before it can be carried away?',
        'Does {0:the} have to be cleared before a robot moves it?',
    )
    UNLOADED = Kind('can be moved at once', PRECONDITION, YES_NO, _find(_is_bare, CANDIDATES))(
        'Is {0:the} bare on top, so that it can be carried away at once?',
        'Can a robot move {0:the} without first taking something off it?',
    )
    OPEN_FIRST = Kind('what must be opened', PRECONDITION, *_find_related(IN, TARGETS))(
        'What must be opened before {0:the} can be taken out?',
        'Which object has to be opened to get at {0:the}?',
    )
    CENTER = Kind(
        'coordinates of the centre',
        MEASUREMENT,
        COORDINATES,
        _find(_round_center),
        COORDINATE_TOLERANCE_M,
    )(
        'What are the coordinates of the centre of {0:the} in metres?',
        'Where is the centre of {0:the}, as x, y and z in metres?',
    )
    SAME_ROOM = Kind('in one room', LOCATION, YES_NO, _find(_is_one_room, ONE))(
        'Are {0:the} and {1:the} in the same room?',
        'Do {0:the} and {1:the} stand in one room?',
    )
    COUNT_WITH = Kind('count in the room with', EXTENT, INTEGER, _count_with)(
        'How many {0:s} are in the room with {1:the}?',
        'In the room with {1:the}, how many {0:s} are there?',
    )
    ROOM_AREA = Kind(
        'floor area of the room with',
        EXTENT,
        *_measure(GraphReader.room_area_m2, 0.0, 0.0, 0.2, ONE),
    )(
        'What is the floor area in square metres of the room with {0:the}?',
        'How many square metres of floor are in the room with {0:the}?',
    )
    WALK = Kind(
        'length of the way', NAVIGATION, NUMBER, _find(GraphReader.walk_m), WALK_TOLERANCE_M
    )(
        'What is the navigable distance in metres between {0:the} and {1:the}?',
        'How long is the shortest way for a robot from {0:the} to {1:the} in metres?',
    )
    WALK_CLOSER = Kind('which way is shorter', NAVIGATION, *_choose(GraphReader.walk_m, -1))(
        'Which is the shorter way for a robot from {2:the}: to {0:the} or to {1:the}?',
        'Driving off at {2:the}, is the way shorter to {0:the} or to {1:the}?',
    )
    ROUND = Kind('count next to', PATTERN, INTEGER, _count_around)(
        'How many {0:s} stand right next to {1:the}?',
        'What is the number of {0:s} right next to {1:the}?',
    )
    ALIKE = Kind('all equally tall', PATTERN, *_at_most(_height_spread_m, ALIKE_M, None, SEVERAL))(
        'Are all {0:s} of the scene equally tall?',
        'Do all {0:s} here have one and the same height?',
    )
    ROW = Kind('all in a row', PATTERN, *_at_most(_off_line_m, ROW_M, None, SEVERAL))(
        'Do all {0:s} of the scene stand in one straight line?',
        'Are all {0:s} here lined up in a row?',
    )
    FITS_ON = Kind('would fit on', PREDICTION, *_at_most(_jut_out_m, 0, (-_FIT_M, _FIT_M)))(
        'Would {0:the} fit on top of {1:the} without jutting out?',
        'If {0:the} were put onto {1:the}, would it lie there without jutting out?',
    )
    WALK_SIDE = Kind(
        'side that the way bends to', NAVIGATION, TEXT, _find(_name_side), clear=_is_bent_clearly
    )(
        'On the shortest way for a robot from {0:the} to {1:the}, to which side does it turn '
        'off the straight line, left or right?',
        'Does the shortest way for a robot from {0:the} to {1:the} lie left or right of the '
        'straight line?',
    )
    ROOMS_ALIKE = Kind(
        'rooms about as large', PATTERN, *_at_most(_area_ratio, ROOMS_RATIO, (1.1, 1.5), ONE)
    )(
        'Is the room with {0:the} about as large as the room with {1:the}?',
        'Do the room with {0:the} and the room with {1:the} have similar floor areas?',
    )
    MIRRORED = Kind(
        'symmetric about', PATTERN, *_at_most(_mirror_error_m, MIRRORED_M, None, SEVERAL, BOXED)
    )(
        'Do the two {0:s} of the scene stand symmetrically about {1:the}?',
        'Are the two {0:s} here mirror images in their places on both sides of {1:the}?',
    )
    WHICH_FITS = Kind('which would fit on', PREDICTION, *_choose(_slack_m, 1, _is_one_fitting))(
        'Which would fit on top of {2:the} without jutting out: {0:the} or {1:the}?',
        'Put onto {2:the}, which would lie there without jutting out: {0:the} or {1:the}?',
    )
    UPSTAIRS = Kind('on an upper floor', SPATIAL, YES_NO, _find(lambda g, x: g.storey(x) > 0))(
        'Is {0:the} upstairs?',
        'Does one have to go upstairs to get to {0:the}?',
    )
    FLOOR_OF = Kind('number of the floor', MEASUREMENT, INTEGER, _find(GraphReader.storey))(
        'On which floor is {0:the}, counted from 0 at the bottom?',
        'What is the number of the floor with {0:the}, where the lowest is 0?',
    )


@dataclass(frozen=True)
class Query:
    """A question's meaning.

    Phrases are singular noun phrases without article, e.g. ``'red wooden chair'``; `word` is the
    relation, colour, material, comparative or affordance the kind needs, `number` is in metres.
    """

    kind: Kind
    phrases: tuple[str, ...] = ()
    word: str = ''
    number: float | None = None
