"""The kinds of questions: one row each, with wordings and the value as a function of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from osmabench_ros.errors import ConfigError
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.vqa import graph_index
from osmabench_ros.vqa.answering.execution import (
    GraphAnswer,
    GraphReader,
    SilentError,
    answer_from,
    attribute,
)
from osmabench_ros.vqa.english import basic_color, confusable, material_noun
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import AnswerType, AnswerValue, Category, SpatialCategory

ALIKE_M = 0.15
"""Objects whose heights differ by less than this are equally tall."""

ROW_M = 0.3
"""Objects whose centres are this near to one line are in a row."""

ROOMS_RATIO = 1.25
"""Rooms are about as large if the area of neither is larger than that of the other so often."""

MIRRORED_M = 0.15
"""Places of objects that are symmetric differ by less than this from mirror images."""

COORDINATE_TOLERANCE_M, WALK_TOLERANCE_M = 0.1, 0.5
"""The published ones of Space3D-Bench."""

ON, IN = RelationType.ON.value, RelationType.IN.value
NEXT_TO, ATTACHED = RelationType.NEXT_TO.value, RelationType.ATTACHED_TO.value

Find = Callable[[GraphReader, 'Query'], GraphAnswer]
"""Returns the answer of a graph to a query; raises SilentError if the graph does not say."""

Value = Callable[..., AnswerValue]
"""Returns a value from the reader, the objects of the phrases, and the word or the number."""


def _find_box(value: Value) -> Find:
    return lambda g, query: _answer_value(g, query, [g.boxed(p) for p in query.phrases], value)


def _find_named(value: Value) -> Find:
    return lambda g, query: _answer_value(g, query, [g.one(p) for p in query.phrases], value)


def _find_several(value: Value) -> Find:
    return lambda g, query: _answer_value(g, query, g.several(query.phrases[0]), value)


def _wrap(value: Value) -> Value:
    """Return a value that needs no reader as one that is given it."""
    return lambda _, *arguments: value(*arguments)


def _answer_value(
    g: GraphReader, query: Query, nodes: Sequence[SceneNode], value: Value
) -> GraphAnswer:
    said = (query.word,) if query.word else ()
    numbers = () if query.number is None else (query.number,)
    return answer_from(value(g, *nodes, *said, *numbers), *nodes)


def _choose(is_first: Value) -> Find:
    def find(g: GraphReader, query: Query) -> GraphAnswer:
        found = _find_box(is_first)(g, query)
        return replace(found, value=query.phrases[0 if found.value == 'yes' else 1])

    return find


def _test(test: Callable[..., bool]) -> Find:
    def find(g: GraphReader, query: Query) -> GraphAnswer:
        found = [g.existing(phrase) for phrase in query.phrases]
        first = (node for nodes in found for node in nodes[:1])
        return answer_from(test(*map(bool, found)), *first)

    return find


def _count(g: GraphReader, query: Query) -> GraphAnswer:
    nodes = g.existing(query.phrases[0])
    return answer_from(len(nodes), *nodes)


def _compare_counts(g: GraphReader, query: Query) -> GraphAnswer:
    first, second = (g.existing(phrase) for phrase in query.phrases)
    return answer_from(len(first) > len(second), *first, *second)


def _find_attribute(key: str) -> Find:
    normal = {'color': basic_color, 'material': material_noun}[key]

    def find(g: GraphReader, query: Query) -> GraphAnswer:
        for node in g.candidates(query.phrases[0]):
            value = attribute(node, key)
            if value is None:
                continue
            if not query.word:
                return answer_from(normal(value), node)
            same = normal(value) == normal(query.word)
            return answer_from(confusable(value, query.word) if key == 'color' else same, node)
        raise SilentError(f'the map gives no {key} for {query.phrases[0]}')

    return find


def _answer_relation(g: GraphReader, query: Query) -> GraphAnswer:
    g.need_relations()
    sources, targets = (g.candidates(phrase) for phrase in query.phrases)
    for source in sources:
        for target in targets:
            if g.index.related(query.word, source.id, target.id):
                return answer_from(True, source, target)
    return answer_from(False, sources[0], targets[0])


def _find_source(relation: str) -> Find:
    return lambda g, query: _find_neighbour(g, query, relation or query.word, g.index.sources)


def _find_target(relation: str) -> Find:
    return lambda g, query: _find_neighbour(g, query, relation, g.index.targets)


def _find_neighbour(
    g: GraphReader,
    query: Query,
    relation: str,
    related: Callable[[str, int], tuple[int, ...]],
) -> GraphAnswer:
    g.need_relations()
    for node in g.candidates(query.phrases[0]):
        others = [g.index.by_id[i] for i in related(relation, node.id)]
        named = [other for other in others if other.label]
        objects = [other for other in named if other.kind is NodeKind.OBJECT]
        for other in (objects or named)[:1]:
            return answer_from(knowledge().spelt(normalised_name(other.label)), node, other)
    raise SilentError(f'the map names nothing {relation} for {query.phrases[0]}')


def _find_usable(relation: str) -> Find:
    def find(g: GraphReader, query: Query) -> GraphAnswer:
        g.need_relations()
        nodes = g.candidates(query.phrases[0])
        for node in nodes:
            for other in g.index.sources(relation, node.id):
                if _is_usable(g.index.by_id[other], query.word):
                    return answer_from(True, node, g.index.by_id[other])
        return answer_from(False, nodes[0])

    return find


def _count_usable(g: GraphReader, query: Query) -> GraphAnswer:
    nodes = [node for node in g.index.things if _is_usable(node, query.word)]
    return answer_from(len(nodes), *nodes)


def _is_usable(node: SceneNode, affordance: str) -> bool:
    return bool(node.label) and knowledge().affords(normalised_name(node.label), affordance)


def _find_load(wanted: bool) -> Find:
    def find(g: GraphReader, query: Query) -> GraphAnswer:
        g.need_relations()
        nodes = g.candidates(query.phrases[0])
        return answer_from(any(g.index.sources(ON, n.id) for n in nodes) is wanted, *nodes)

    return find


def _count_with(g: GraphReader, query: Query) -> GraphAnswer:
    node = g.one(query.phrases[1])
    room = g.room(node)
    inside = [item for item in g.existing(query.phrases[0]) if item.parent == room.id]
    return answer_from(len(inside), *inside, node)


def _round(g: GraphReader, query: Query) -> GraphAnswer:
    g.need_relations()
    node = g.one(query.phrases[1])
    beside = set(g.index.sources(NEXT_TO, node.id))
    found = [item for item in g.existing(query.phrases[0]) if item.id in beside]
    return answer_from(len(found), *found, node)


def _answer_symmetry(g: GraphReader, query: Query) -> GraphAnswer:
    nodes = g.several(query.phrases[0])
    about = g.boxed(query.phrases[1])
    if len(nodes) > 2:
        raise SilentError(f'the map has more than two of "{query.phrases[0]}"')
    return answer_from(graph_index.mirror_error_m(nodes, about) <= MIRRORED_M, *nodes, about)


def _is_larger(first: SceneNode, second: SceneNode, word: str) -> bool:
    return (graph_index.extent(first, word) or 0.0) > (graph_index.extent(second, word) or 0.0)


def _is_closer(first: SceneNode, second: SceneNode, origin: SceneNode) -> bool:
    return graph_index.centre_distance_m(first, origin) < graph_index.centre_distance_m(
        second, origin
    )


def _is_reached(g: GraphReader, node: SceneNode, number: float) -> bool:
    return float(node.known_box.maximum[2]) - g.index.floor_height_m(node) <= number


def _is_clear(g: GraphReader, node: SceneNode, number: float) -> bool:
    return g.index.space_above_m(node) >= number


def _get_height_m(node: SceneNode) -> float:
    return float(node.known_box.size[2])


def _round_center(node: SceneNode) -> AnswerValue:
    return tuple(np.round(node.known_box.center, 3).tolist())


def _is_one_room(g: GraphReader, first: SceneNode, second: SceneNode) -> bool:
    return g.room(first).id == g.room(second).id


def _is_area_alike(g: GraphReader, *nodes: SceneNode) -> bool:
    areas = [g.room_area_m2(node) for node in nodes]
    return max(areas) <= ROOMS_RATIO * min(areas)


def _is_nearer_walk(g: GraphReader, a: SceneNode, b: SceneNode, origin: SceneNode) -> bool:
    return g.walk_m(origin, a) < g.walk_m(origin, b)


def _walk_side(g: GraphReader, first: SceneNode, second: SceneNode) -> str:
    left_m, right_m = graph_index.bends_m(g.line_m(first, second))
    return 'left' if left_m > right_m else 'right'


def _is_fitting(upper: SceneNode, lower: SceneNode) -> bool:
    return graph_index.slack_m(upper.known_box, lower.known_box) >= 0


def _is_fitting_better(first: SceneNode, second: SceneNode, lower: SceneNode) -> bool:
    one, other = (graph_index.slack_m(node.known_box, lower.known_box) for node in (first, second))
    return one > other


def _is_passed(first: SceneNode, second: SceneNode, width_m: float) -> bool:
    return graph_index.gap_m(first, second) >= width_m


def _is_height_alike(*nodes: SceneNode) -> bool:
    return graph_index.height_spread_m(nodes) <= ALIKE_M


def _is_in_row(*nodes: SceneNode) -> bool:
    return graph_index.off_line_m(nodes) <= ROW_M


def _is_upstairs(g: GraphReader, node: SceneNode) -> bool:
    return g.storey(node) > 0


YES_NO, INTEGER, NUMBER = AnswerType.YES_NO, AnswerType.INTEGER, AnswerType.NUMBER
TEXT, COORDINATES = AnswerType.TEXT, AnswerType.COORDINATES
(
    EXISTENCE, _ABSENCE, LOGICAL, MEASUREMENT, ATTRIBUTES, SPATIAL, FUNCTIONAL, COMPARISON,
    REACHABILITY, AFFORDANCE, PRECONDITION,
) = Category  # fmt: skip
LOCATION, EXTENT, _RELATION, NAVIGATION, PATTERN, PREDICTION = SpatialCategory


Draw = Callable[[Any], Iterable[tuple[SceneNode, ...]]]
"""Returns the named objects of a `SceneView` for each question with a clear answer."""

KINDS: dict[str, Kind] = {}
"""All kinds by name, of other packages too; their wordings are understood."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of question by its name; of both tolerances, relative too, the larger one holds.

    In wordings {0:a} is "a red chair", {0:the} "the red chair", {0:s} "red chairs" and {0:bare}
    "red chair"; {relation}, {color}, {material}, {more}, {done} and {side} are words of closed
    lists, {facing} says which objects are at sides of the scene; {number} is metres. A kind
    without `draw` is drawn by a source in `vqa.exact`.
    """

    value: str
    category: Category | SpatialCategory
    answer_type: AnswerType
    find: Find
    absolute: float = 0.0
    relative: float = 0.0
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

    def tolerance(self, value: AnswerValue) -> float:
        """Return how far off an answer may be."""
        size = value if isinstance(value, (int, float)) else 0.0
        return round(max(self.absolute, self.relative * size), 3)


class QueryKind:
    """The bundled kinds of questions."""

    EXISTS = Kind('exists', EXISTENCE, YES_NO, _test(lambda a: a))(
        'Is there {0:a} in the scene?',
        'Is there {0:a} here?',
        'Does the scene contain {0:a}?',
        'Could one find {0:a} in this place?',
        'Is {0:a} present in the scene?',
    )
    ABSENT = Kind('absent', EXISTENCE, YES_NO, _test(lambda a: not a))(
        'Is the scene without {0:a}?',
        'Is it true that there is no {0:bare} here?',
        'Is {0:a} missing from the scene?',
        'Would one search this place for {0:a} in vain?',
    )
    BOTH = Kind('both exist', LOGICAL, YES_NO, _test(lambda a, b: a and b))(
        'Is there {0:a} AND {1:a}?',
        'Does the scene contain both {0:a} and {1:a}?',
        'Are {0:a} and {1:a} both present?',
    )
    EITHER = Kind('either exists', LOGICAL, YES_NO, _test(lambda a, b: a or b))(
        'Is there {0:a} OR {1:a}?',
        'Is at least one of these two present: {0:a} or {1:a}?',
        'Does the scene contain {0:a} or {1:a}, or both?',
    )
    FIRST_ONLY = Kind('only the first exists', LOGICAL, YES_NO, _test(lambda a, b: a and not b))(
        'Is there {0:a} but NOT {1:a}?',
        'Does the scene contain {0:a} and no {1:bare}?',
    )
    NEITHER = Kind('neither exists', LOGICAL, YES_NO, _test(lambda a, b: not (a or b)))(
        'Is there NEITHER {0:a} NOR {1:a}?',
        'Are {0:a} and {1:a} both missing?',
    )
    COUNT = Kind('count', MEASUREMENT, INTEGER, _count)(
        'How many {0:s} are there?',
        'How many {0:s} are in the scene?',
        'What is the number of {0:s} in the scene?',
        'Counting all {0:s} here, what is the total?',
    )
    MORE_OF = Kind('more of the first', COMPARISON, YES_NO, _compare_counts)(
        'Are there more {0:s} than {1:s}?',
        'Do {0:s} outnumber {1:s} here?',
    )
    HEIGHT = Kind(
        'height in metres', MEASUREMENT, NUMBER, _find_box(_wrap(_get_height_m)), 0.1, 0.15
    )(
        'How tall is {0:the} in metres?',
        'What is the height of {0:the} in metres, from its lowest to its highest point?',
        'How many metres does {0:the} measure from bottom to top?',
    )
    DISTANCE = Kind(
        'distance in metres',
        MEASUREMENT,
        NUMBER,
        _find_box(_wrap(graph_index.centre_distance_m)),
        0.3,
        0.15,
    )(
        'How far apart are the centres of {0:the} and {1:the} in metres?',
        'What is the distance in metres between the centre of {0:the} and that of {1:the}?',
    )
    COLOR_OF = Kind('colour of', ATTRIBUTES, TEXT, _find_attribute('color'))(
        'What color is {0:the}?',
        'What is the color of {0:the}?',
        'Which color does {0:the} have?',
    )
    HAS_COLOR = Kind('has colour', ATTRIBUTES, YES_NO, _find_attribute('color'))(
        'Is {0:the} {color}?',
        'Is {color} the color of {0:the}?',
        'Does {0:the} have the color {color}?',
    )
    MATERIAL_OF = Kind('material of', ATTRIBUTES, TEXT, _find_attribute('material'))(
        'What is {0:the} made of?',
        'Which material is {0:the} made of?',
        'What is the material of {0:the}?',
    )
    HAS_MATERIAL = Kind('has material', ATTRIBUTES, YES_NO, _find_attribute('material'))(
        'Is {0:the} made of {material}?',
        'Is {material} the material of {0:the}?',
    )
    RELATED = Kind('related', SPATIAL, YES_NO, _answer_relation)(
        'Is {0:the} {relation} {1:the}?',
        'Is it true that {0:the} is {relation} {1:the}?',
        'Would one find {0:the} {relation} {1:the}?',
    )
    RELATED_TO = Kind('what is related to', SPATIAL, TEXT, _find_source(''))(
        'What is {relation} {0:the}?',
        'Which object is {relation} {0:the}?',
        'What can be found {relation} {0:the}?',
    )
    SUPPORT_OF = Kind('what supports', FUNCTIONAL, TEXT, _find_target(ON))(
        'Which object supports {0:the}?',
        'What serves as support for {0:the}?',
        'What bears the weight of {0:the}?',
    )
    SUPPORTED_BY = Kind('what is supported by', FUNCTIONAL, TEXT, _find_source(ON))(
        'Which object does {0:the} support?',
        'What does {0:the} serve as support for?',
    )
    CONTAINER_OF = Kind('what contains', FUNCTIONAL, TEXT, _find_target(IN))(
        'Which object contains {0:the}?',
        'What does {0:the} lie inside of?',
        'What serves as container for {0:the}?',
    )
    FIXED_TO = Kind('what is it attached to', FUNCTIONAL, TEXT, _find_target(ATTACHED))(
        'What is {0:the} fixed to?',
        'Which object holds {0:the} in place?',
    )
    WHICH_MORE = Kind('which is more', COMPARISON, TEXT, _choose(_wrap(_is_larger)))(
        'Which is {more}: {0:the} or {1:the}?',
        'Which of the two is {more}, {0:the} or {1:the}?',
        'Comparing {0:the} with {1:the}, which is {more}?',
    )
    IS_MORE = Kind('is the first more', COMPARISON, YES_NO, _find_box(_wrap(_is_larger)))(
        'Is {0:the} {more} than {1:the}?',
        'Compared with {1:the}, is {0:the} {more}?',
    )
    CLOSER = Kind('which is closer', COMPARISON, TEXT, _choose(_wrap(_is_closer)))(
        'Which is closer to {2:the}: {0:the} or {1:the}?',
        'Starting from {2:the}, which is nearer: {0:the} or {1:the}?',
    )
    REACHABLE = Kind('top within reach', REACHABILITY, YES_NO, _find_box(_is_reached))(
        'Can a gripper that reaches {number} m above the floor touch the top of {0:the}?',
        'Is the top of {0:the} within reach of an arm that ends {number} m above the floor?',
    )
    PASSABLE = Kind('gap wide enough', REACHABILITY, YES_NO, _find_box(_wrap(_is_passed)))(
        'Is the gap between {0:the} and {1:the} wide enough for a robot of {number} m?',
        'Could a robot {number} m wide drive between {0:the} and {1:the}?',
    )
    CLEARANCE = Kind('free space above', REACHABILITY, YES_NO, _find_box(_is_clear))(
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
    LOADED = Kind('must be cleared', PRECONDITION, YES_NO, _find_load(True))(
        'Must anything be taken off {0:the} before it can be carried away?',
        'Does {0:the} have to be cleared before a robot moves it?',
    )
    UNLOADED = Kind('can be moved at once', PRECONDITION, YES_NO, _find_load(False))(
        'Is {0:the} bare on top, so that it can be carried away at once?',
        'Can a robot move {0:the} without first taking something off it?',
    )
    OPEN_FIRST = Kind('what must be opened', PRECONDITION, TEXT, _find_target(IN))(
        'What must be opened before {0:the} can be taken out?',
        'Which object has to be opened to get at {0:the}?',
    )
    CENTER = Kind(
        'coordinates of the centre',
        LOCATION,
        COORDINATES,
        _find_box(_wrap(_round_center)),
        COORDINATE_TOLERANCE_M,
    )(
        'What are the coordinates of the centre of {0:the} in metres?',
        'Where is the centre of {0:the}, as x, y and z in metres?',
    )
    SAME_ROOM = Kind('in one room', LOCATION, YES_NO, _find_named(_is_one_room))(
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
        NUMBER,
        _find_named(GraphReader.room_area_m2),
        0.0,
        0.2,
    )(
        'What is the floor area in square metres of the room with {0:the}?',
        'How many square metres of floor are in the room with {0:the}?',
    )
    WALK = Kind(
        'length of the way', NAVIGATION, NUMBER, _find_box(GraphReader.walk_m), WALK_TOLERANCE_M
    )(
        'What is the navigable distance in metres between {0:the} and {1:the}?',
        'How long is the shortest way for a robot from {0:the} to {1:the} in metres?',
    )
    WALK_CLOSER = Kind('which way is shorter', NAVIGATION, TEXT, _choose(_is_nearer_walk))(
        'Which is the shorter way for a robot from {2:the}: to {0:the} or to {1:the}?',
        'Driving off at {2:the}, is the way shorter to {0:the} or to {1:the}?',
    )
    ROUND = Kind('count next to', PATTERN, INTEGER, _round)(
        'How many {0:s} stand right next to {1:the}?',
        'What is the number of {0:s} right next to {1:the}?',
    )
    ALIKE = Kind('all equally tall', PATTERN, YES_NO, _find_several(_wrap(_is_height_alike)))(
        'Are all {0:s} of the scene equally tall?',
        'Do all {0:s} here have one and the same height?',
    )
    ROW = Kind('all in a row', PATTERN, YES_NO, _find_several(_wrap(_is_in_row)))(
        'Do all {0:s} of the scene stand in one straight line?',
        'Are all {0:s} here lined up in a row?',
    )
    FITS_ON = Kind('would fit on', PREDICTION, YES_NO, _find_box(_wrap(_is_fitting)))(
        'Would {0:the} fit on top of {1:the} without jutting out?',
        'If {0:the} were put onto {1:the}, would it lie there without jutting out?',
    )
    WALK_SIDE = Kind('side that the way bends to', NAVIGATION, TEXT, _find_box(_walk_side))(
        'On the shortest way for a robot from {0:the} to {1:the}, to which side does it turn '
        'off the straight line, left or right?',
        'Does the shortest way for a robot from {0:the} to {1:the} lie left or right of the '
        'straight line?',
    )
    ROOMS_ALIKE = Kind('rooms about as large', PATTERN, YES_NO, _find_named(_is_area_alike))(
        'Is the room with {0:the} about as large as the room with {1:the}?',
        'Do the room with {0:the} and the room with {1:the} have similar floor areas?',
    )
    MIRRORED = Kind('symmetric about', PATTERN, YES_NO, _answer_symmetry)(
        'Do the two {0:s} of the scene stand symmetrically about {1:the}?',
        'Are the two {0:s} here mirror images in their places on both sides of {1:the}?',
    )
    WHICH_FITS = Kind('which would fit on', PREDICTION, TEXT, _choose(_wrap(_is_fitting_better)))(
        'Which would fit on top of {2:the} without jutting out: {0:the} or {1:the}?',
        'Put onto {2:the}, which would lie there without jutting out: {0:the} or {1:the}?',
    )
    UPSTAIRS = Kind('on an upper floor', SPATIAL, YES_NO, _find_box(_is_upstairs))(
        'Is {0:the} upstairs?',
        'Does one have to go upstairs to get to {0:the}?',
    )
    FLOOR_OF = Kind('number of the floor', MEASUREMENT, INTEGER, _find_box(GraphReader.storey))(
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
