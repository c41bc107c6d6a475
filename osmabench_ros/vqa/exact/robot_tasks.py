"""Questions about objects to reach, use and move, as in OSMa-Bench's second version."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import THINGS, NodeKind, RelationType, SceneNode
from osmabench_ros.vqa.exact.relations import could_carry
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    drafted,
    label_of,
    sample_pairs,
    shuffled,
)
from osmabench_ros.vqa.graph_index import gap_m
from osmabench_ros.vqa.kinds import ATTACHED, IN, NEXT_TO, ON, Query, QueryKind
from osmabench_ros.vqa.knowledge import knowledge

REACHES_M = (0.6, 0.9, 1.2, 1.5, 1.8)
ROBOT_WIDTHS_M = (0.4, 0.6, 0.8, 1.0)
CLEARANCES_M = (0.3, 0.5, 0.8)
MARGIN_M = 0.2
"""A length is only asked about if it differs from the threshold by at least this much."""

_COUNTABLE = ('sat on', 'lain on')
_ALMOST = {
    QueryKind.AFFORDS_ON: (ON, IN, NEXT_TO),
    QueryKind.AFFORDS_NEAR: (NEXT_TO, RelationType.NEAR.value, ON),
}
_ON_IT = ('picked up', 'switched on', 'opened')
_BESIDE_IT = ('sat on', 'lain on', 'written at', 'switched on', 'opened')
_LONGEST_GAP_M = 2.5
_OBSTACLE_M = 0.1
_PASSED_UNDER_M = 2.0


def reachability(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for objects that an arm reaches, a robot's passage, or free space above."""
    for node in shuffled(rng, view.named_boxed)[:limit]:
        top = float(node.known_box.maximum[2]) - view.index.floor_height_m(node)
        space = view.index.space_above_m(node)
        for number in REACHES_M:
            if abs(top - number) >= MARGIN_M:
                yield view.about(QueryKind.REACHABLE, node, number=number)
        for number in CLEARANCES_M:
            is_free = space - number >= MARGIN_M
            if is_free and (_meets_ceiling(view, node, number) or _is_between(view, node)):
                continue
            if is_free or number - space >= MARGIN_M:
                yield view.about(QueryKind.CLEARANCE, node, number=number)
    yield from _gaps(view, rng, limit)


def _is_between(view: SceneView, node: SceneNode) -> bool:
    """Return whether another object goes on next to and over one, as a shelf may do with a board.

    Of a rack that is hardly seen, the visible part may be to the side.
    """
    box = node.known_box
    return any(
        other.box is not None
        and other.id != node.id
        and _overlaps(other.box, box.minimum, box.maximum)
        and float(other.box.minimum[2]) <= float(box.maximum[2]) < float(other.box.maximum[2])
        for graph in (view.graph, *(index.graph for index in view.others))
        for other in graph.of_kind(NodeKind.OBJECT)
    )


def _overlaps(box: AxisAlignedBox, low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Return whether a box overlaps a rectangle from above."""
    return bool((box.minimum[:2] < high[:2]).all() and (box.maximum[:2] > low[:2]).all())


def _meets_ceiling(view: SceneView, node: SceneNode, number: float) -> bool:
    """Return whether a ceiling may bound the free space above, which makes answers ambiguous."""
    box = node.known_box
    attached = view.index.targets(ATTACHED, node.id)
    if any(label_of(view.index.by_id[i]) == 'ceiling' for i in attached):
        return True
    top = float(box.maximum[2])
    centre = float(box.center[2])
    lows = [
        float(other.box.minimum[2])
        for other in view.graph.of_kind(NodeKind.BACKGROUND)
        if other.box is not None and _overlaps(other.box, box.minimum, box.maximum)
    ]
    return any(low > centre and low - top < number + MARGIN_M for low in lows)


def _gaps(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    standing = [node for node in view.named_boxed if _stands_on_floor(view, node)]
    for first, second in sample_pairs(rng, standing, limit):
        gap = gap_m(first, second)
        number = ROBOT_WIDTHS_M[int(rng.integers(len(ROBOT_WIDTHS_M)))]
        if (
            gap <= _LONGEST_GAP_M
            and abs(gap - number) >= MARGIN_M
            and _is_open_between(view, first, second)
        ):
            yield view.about(QueryKind.PASSABLE, first, second, number=number)


def _stands_on_floor(view: SceneView, node: SceneNode) -> bool:
    """Return whether a robot has to go around an object (not so for a rug)."""
    floor, box = view.index.floor_height_m(node), node.known_box
    stands = abs(float(box.minimum[2]) - floor) < 0.1
    return stands and float(box.maximum[2]) - floor >= _OBSTACLE_M


def _is_open_between(view: SceneView, first: SceneNode, second: SceneNode) -> bool:
    """Return whether two objects are in one room with nothing but floor between them."""
    one, other = first.known_box, second.known_box
    if first.parent != second.parent or view.wide.connected(first.id, second.id, (ON, IN)):
        return False
    low = np.minimum(one.maximum, other.maximum)[:2]
    high = np.maximum(one.minimum, other.minimum)[:2]
    low, high = np.minimum(low, high), np.maximum(low, high)
    floor = view.index.floor_height_m(first)
    return not any(
        node.id not in (first.id, second.id)
        and node.box is not None
        and _overlaps(node.box, low, high)
        and float(node.box.maximum[2]) - floor >= _OBSTACLE_M
        and float(node.box.minimum[2]) - floor < _PASSED_UNDER_M
        and not _encloses(node, first, second)
        for node in view.graph.nodes
        if node.kind in THINGS
    )


def _encloses(node: SceneNode, *things: SceneNode) -> bool:
    """Return whether a box holds others from above: the one mesh of all walls of a house."""
    return node.box is not None and all(
        thing.box is not None
        and bool((node.box.minimum[:2] <= thing.box.minimum[:2] + 0.1).all())
        and bool((node.box.maximum[:2] >= thing.box.maximum[:2] - 0.1).all())
        for thing in things
    )


def affordance(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for uses of the objects on or next to another, and how many there are."""
    for word in _COUNTABLE:
        if any(_is_unclear(node, word) for node in _objects(view, tuple(view.wide.by_id))):
            continue
        nodes = [node for node in view.objects if knowledge().affords(label_of(node), word)]
        yield drafted(Query(QueryKind.AFFORDS_COUNT, (), word), nodes, len(nodes))
    for node in shuffled(rng, view.named)[:limit]:
        for kind, relation, words in (
            (QueryKind.AFFORDS_ON, ON, _ON_IT),
            (QueryKind.AFFORDS_NEAR, NEXT_TO, _BESIDE_IT),
        ):
            others = _objects(view, view.index.sources(relation, node.id))
            if not others or not all(knowledge().knows(label_of(other)) for other in others):
                continue
            # An object that is almost there, or is only glimpsed, must not make a "no" doubtful.
            around = _objects(
                view, tuple(i for r in _ALMOST[kind] for i in view.wide.sources(r, node.id))
            )
            for word in words:
                usable = [o for o in others if knowledge().affords(label_of(o), word)]
                if not usable and any(knowledge().may_afford(label_of(o), word) for o in around):
                    continue
                query = Query(kind, (view.name(node),), word)
                yield drafted(query, (node, *(usable or others)), bool(usable))


def _is_unclear(node: SceneNode, word: str) -> bool:
    label = label_of(node)
    return knowledge().may_afford(label, word) and not knowledge().affords(label, word)


def precondition(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask what must be taken off or opened first."""
    carriers = {
        target
        for node in view.objects
        for target in view.index.targets(ON, node.id)
        if view.index.by_id[target].kind is NodeKind.OBJECT
    }
    kinds_of_carriers = {label_of(view.index.by_id[i]) for i in carriers}
    for node in shuffled(rng, view.named)[:limit]:
        hangs = view.index.targets(ATTACHED, node.id)
        if hangs or knowledge().is_fixed(label_of(node)):
            continue
        loaded = bool(view.index.sources(ON, node.id))
        # Only where other objects like it carry something is "nothing" worth asking, and
        # an object in a shelf is on it to some.
        could = label_of(node) in kinds_of_carriers or could_carry(node)
        if not loaded and (not could or view.wide.sources(IN, node.id)):
            continue
        for kind in (QueryKind.LOADED, QueryKind.UNLOADED):
            yield view.about(kind, node, answer=loaded is (kind is QueryKind.LOADED))
    yield from _containers(view)


def _containers(view: SceneView) -> Iterator[Draft]:
    """Yield containers, known as closed, that have to be opened to get an object."""
    for node in view.named:
        holders = _objects(view, view.wide.targets(IN, node.id))
        if len(holders) != 1 or holders[0].attributes.get('state') != 'closed':
            continue
        if knowledge().affords(label_of(holders[0]), 'opened'):
            query = Query(QueryKind.OPEN_FIRST, (view.name(node),))
            yield drafted(query, (node, holders[0]), label_of(holders[0]))


def _objects(view: SceneView, ids: tuple[int, ...]) -> list[SceneNode]:
    nodes = (view.wide.by_id[i] for i in ids)
    return [node for node in nodes if node.kind is NodeKind.OBJECT and node.label]
