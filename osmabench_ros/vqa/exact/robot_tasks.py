"""Questions about objects to reach, use and move, as in OSMa-Bench's second version."""

from collections.abc import Iterable, Iterator

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import THINGS, NodeKind, SceneNode
from osmabench_ros.vqa.exact.measurement import join
from osmabench_ros.vqa.exact.relations import NEAR, could_carry
from osmabench_ros.vqa.exact.view import Draft, SceneView, label_of, sample_pairs, shuffled
from osmabench_ros.vqa.kinds import ATTACHED, IN, MARGIN_M, NEXT_TO, ON, QueryKind
from osmabench_ros.vqa.knowledge import knowledge

REACHES_M = (0.6, 0.9, 1.2, 1.5, 1.8)
ROBOT_WIDTHS_M = (0.4, 0.6, 0.8, 1.0)
CLEARANCES_M = (0.3, 0.5, 0.8)

_COUNTABLE = ('sat on', 'lain on')
# Kinds, their relation, other relations that are almost so, and the uses to ask for.
_USES = (
    (QueryKind.AFFORDS_ON, ON, (IN, NEXT_TO), ('picked up', 'switched on', 'opened')),
    (
        QueryKind.AFFORDS_NEAR,
        NEXT_TO,
        (NEAR, ON),
        ('sat on', 'lain on', 'written at', 'switched on', 'opened'),
    ),
)

_OBSTACLE_M = 0.1
_PASSED_UNDER_M = 2.0


def _ask_for_heights(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    for node in shuffled(rng, view.named_boxed)[:limit]:
        for number in REACHES_M:
            yield from view.ask(QueryKind.REACHABLE, node, number)
        for number in CLEARANCES_M:
            is_free = view.index.space_above_m(node) >= number
            if not is_free or not (_meets_ceiling(view, node, number) or _is_between(view, node)):
                yield from view.ask(QueryKind.CLEARANCE, node, number)


def _is_between(view: SceneView, node: SceneNode) -> bool:
    """Return whether another object goes on next to and over one, as a shelf may do with a board.

    Of a rack that is hardly seen, the visible part may be to the side.
    """
    box = node.known_box
    return any(
        other.id != node.id
        and _is_over(other, box)
        and other.known_box.minimum[2] <= box.maximum[2] < other.known_box.maximum[2]
        for graph in view.graphs
        for other in graph.of_kind(NodeKind.OBJECT)
    )


def _is_over(node: SceneNode, box: AxisAlignedBox) -> bool:
    """Return whether the box of a node, if it has one, overlaps another from above."""
    return node.box is not None and bool(
        (node.box.minimum[:2] < box.maximum[:2]).all()
        and (node.box.maximum[:2] > box.minimum[:2]).all()
    )


def _meets_ceiling(view: SceneView, node: SceneNode, number: float) -> bool:
    """Return whether a ceiling may bound the free space above, which makes answers ambiguous."""
    attached = view.index.targets(ATTACHED, node.id)
    if any(label_of(view.index.by_id[i]) == 'ceiling' for i in attached):
        return True
    box = node.known_box
    return any(
        _is_over(other, box)
        and box.center[2] < other.known_box.minimum[2]
        and other.known_box.minimum[2] - box.maximum[2] < number + MARGIN_M
        for other in view.graph.of_kind(NodeKind.BACKGROUND)
    )


def _ask_for_gaps(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    standing = [node for node in view.named_boxed if _stands_on_floor(view, node)]
    for pair in sample_pairs(rng, standing, limit):
        number = ROBOT_WIDTHS_M[int(rng.integers(len(ROBOT_WIDTHS_M)))]
        for draft in view.ask(QueryKind.PASSABLE, *pair, number):
            if _is_open_between(view, *pair):
                yield draft


# Asks for objects that an arm reaches, a robot's passage, or free space above.
reachability = join(_ask_for_heights, _ask_for_gaps)


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
    ends = (np.minimum(one.maximum, other.maximum), np.maximum(one.minimum, other.minimum))
    between = AxisAlignedBox(np.minimum(*ends), np.maximum(*ends))
    floor, both = view.index.floor_height_m(first), AxisAlignedBox.holding((one, other))
    return not any(
        node not in (first, second)
        and _is_over(node, between)
        and float(node.known_box.maximum[2]) - floor >= _OBSTACLE_M
        and float(node.known_box.minimum[2]) - floor < _PASSED_UNDER_M
        and not _encloses(node.known_box, both)
        for node in view.graph.nodes
        if node.kind in THINGS
    )


def _encloses(box: AxisAlignedBox, other: AxisAlignedBox) -> bool:
    """Return whether a box holds another from above: the one mesh of all walls of a house."""
    starts_before = (box.minimum[:2] <= other.minimum[:2] + 0.1).all()
    return bool(starts_before and (box.maximum[:2] >= other.maximum[:2] - 0.1).all())


def affordance(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for uses of the objects on or next to another, and how many there are."""
    known = knowledge()
    listed = frozenset().union(*known.affordances.values())
    labels = [label_of(node) for node in _list_objects(view, view.wide.by_id)]
    for word in _COUNTABLE:
        if all(known.affords(label, word) for label in labels if known.may_afford(label, word)):
            count = sum(known.affords(label_of(node), word) for node in view.objects)
            yield from view.ask(QueryKind.AFFORDS_COUNT, word, answer=count)
    for node in shuffled(rng, view.named)[:limit]:
        for kind, relation, almost, words in _USES:
            others = _list_objects(view, view.index.sources(relation, node.id))
            heads = {known.canonical(label_of(other)) for other in others}
            if not others or not heads <= listed:
                continue
            # An object that is almost there, or is only glimpsed, must not make a "no" doubtful.
            around = {i for r in (relation, *almost) for i in view.wide.sources(r, node.id)}
            doubtful = [label_of(other) for other in _list_objects(view, around)]
            for word in words:
                usable = [other for other in others if known.affords(label_of(other), word)]
                if usable or not any(known.may_afford(label, word) for label in doubtful):
                    nodes = (node, *(usable or others))
                    yield from view.ask(kind, node, word, answer=bool(usable), nodes=nodes)


def precondition(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask what must be taken off or opened first."""
    index, known = view.index, knowledge()
    carriers = (index.by_id[i] for node in view.objects for i in index.targets(ON, node.id))
    kinds_of_carriers = {label_of(node) for node in carriers if node.kind is NodeKind.OBJECT}
    for node in shuffled(rng, view.named)[:limit]:
        label = label_of(node)
        if index.targets(ATTACHED, node.id) or known.canonical(label) in known.fixed:
            continue
        # Only where other objects like it carry something is "nothing" worth asking, and
        # an object in a shelf is on it to some.
        could = label in kinds_of_carriers or could_carry(node)
        is_bare_clearly = could and not view.wide.sources(IN, node.id)
        if is_bare_clearly or index.sources(ON, node.id):
            yield from view.ask(QueryKind.LOADED, node)
            yield from view.ask(QueryKind.UNLOADED, node)
    for node in view.named:
        # Containers are asked for that are known as closed.
        holders = _list_objects(view, view.wide.targets(IN, node.id))
        if [item.attributes.get('state') for item in holders] == ['closed'] and (
            known.affords(label_of(holders[0]), 'opened')
        ):
            yield from view.ask(QueryKind.OPEN_FIRST, node)


def _list_objects(view: SceneView, ids: Iterable[int]) -> list[SceneNode]:
    nodes = (view.wide.by_id[i] for i in ids)
    return [node for node in nodes if node.kind is NodeKind.OBJECT and node.label]
