"""Sources of questions about colours, counts, sizes, places, rooms, ways and arrangements."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.semantics.storeys import find_storey
from osmabench_ros.vqa.answering.ways import FloorWays
from osmabench_ros.vqa.english import BASIC_COLORS, confusable
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    Term,
    color_of,
    material_of,
    plain_color_of,
    sample_pairs,
    shuffled,
)
from osmabench_ros.vqa.kinds import Kind, QueryKind, compare_clearly
from osmabench_ros.vqa.knowledge import COMPARATIVES

# More of a kind than this are hard to count, even for people.
LARGEST_COUNT = 12

_INSIDE_M, _WALL_M = 0.2, 0.15
_CLOSER_RATIO, _CLOSER_M = 1.5, 1.0
_LEAST_WALK_M = 1.5
_LEAST_CLEAR_M = 0.1
_STOREY_M = 2.0
_NEARBY_M = 1.5
# Ways that are looked for: each is, for several robots, and takes the longest of all drafts.
_MOST_WAYS = 60

Rng = np.random.Generator
Drawn = Iterable[tuple[Term, ...]]
Draw = Callable[[SceneView, Rng, int], Drawn]
# Yields the drafts of a view, in a seeded order, from so many objects or pairs at most.
Source = Callable[[SceneView, Rng, int], Iterator[Draft]]

Pool = Callable[[SceneView], Iterable[Any]]


def rows(pool: Pool) -> Draw:
    """Draw the terms of a question each from a pool of tuples of them."""
    return lambda view, rng, limit: shuffled(rng, pool(view))[:limit]


def pairs(pool: Pool) -> Draw:
    """Draw ordered pairs of different items of a pool."""
    return lambda view, rng, limit: sample_pairs(rng, [*pool(view)], limit)


def ask(draw: Draw, *kinds: Kind) -> Source:
    """Return a source that asks questions of kinds about the same draws, where they are clear."""

    def ask_kinds(view: SceneView, rng: Rng, limit: int) -> Iterator[Draft]:
        for terms in draw(view, rng, limit):
            for kind in kinds:
                yield from view.ask(kind, *terms)

    return ask_kinds


def ask_by_row(kind: Kind) -> Source:
    """Return a source that asks about the draws of a row."""
    assert kind.draw is not None
    return ask(rows(kind.draw), kind)


def join(*sources: Source) -> Source:
    """Return a source of the drafts of several, one after the other."""
    return lambda *arguments: chain.from_iterable(source(*arguments) for source in sources)


def _ask_attribute(
    what: Kind,
    confirm: Kind,
    read: Callable[[SceneNode], str],
    alike: Callable[[str, str], bool],
    one_in: int = 1,
) -> Source:
    def ask_values(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
        palette = sorted({read(node) for node in view.objects} - {''})
        for node in shuffled(rng, view.named)[: min(limit, len(view.named) // one_in + 1)]:
            value = read(node)
            # A phrase that already says the attribute would give the answer away.
            if not value or view.name(node) not in view.by_label:
                continue
            wrong = shuffled(rng, [word for word in palette if not alike(value, word)])
            yield from view.ask(what, node)
            for word in (value, *wrong[:2]):
                yield from view.ask(confirm, node, word)

    return ask_values


# Asks for the colour of an object, and whether it has the right or a clearly wrong one.
colors = _ask_attribute(QueryKind.COLOR_OF, QueryKind.HAS_COLOR, plain_color_of, confusable)

# Asks for the material of one object in eight, and whether it is right or another.
materials = _ask_attribute(
    QueryKind.MATERIAL_OF, QueryKind.HAS_MATERIAL, material_of, str.__eq__, one_in=8
)


def counts(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask how many objects of a label, or of a label and colour, there are."""
    phrases = []
    for label, nodes in view.groups.items():
        if len(nodes) > LARGEST_COUNT:
            continue
        phrases.append(label)
        colors = {color_of(node) for node in nodes}
        for color in sorted(BASIC_COLORS & colors) if '' not in colors else ():
            rivals = colors - {color}
            if rivals and not any(confusable(color, other) for other in rivals):
                phrases.append(f'{color} {label}')
    absent = shuffled(rng, view.absent)[: min(limit, len(view.by_label) // 6 + 1)]
    for phrase in (*phrases, *absent):
        yield from view.ask(QueryKind.COUNT, phrases=(phrase,))


_draw_boxed = rows(lambda view: zip(view.named_boxed))

# Asks for heights of objects and distances between their centres, in metres.
lengths = join(
    ask(_draw_boxed, QueryKind.HEIGHT),
    ask(pairs(lambda view: view.named_boxed), QueryKind.DISTANCE),
)

# Asks for the coordinates of objects.
centers = ask(_draw_boxed, QueryKind.CENTER)


def _draw_compared(view: SceneView, rng: Rng, limit: int) -> Drawn:
    for pair in sample_pairs(rng, view.named_boxed, limit):
        yield *pair, COMPARATIVES[int(rng.integers(len(COMPARATIVES)))]


# Asks which of two objects is taller, bulkier, wider or higher up.
sizes = ask(_draw_compared, QueryKind.WHICH_MORE, QueryKind.IS_MORE)


def _draw_threes(view: SceneView, rng: Rng, limit: int) -> Drawn:
    nodes = view.named_boxed
    for pair in sample_pairs(rng, nodes, limit):
        third = nodes[int(rng.integers(len(nodes)))]
        if third not in pair:
            yield *pair, third


# Asks which of two objects is closer to a third, centre to centre.
nearer = ask(_draw_threes, QueryKind.CLOSER)

# Asks whether there are more of one label than of another.
numbers = ask(pairs(lambda view: view.groups.values()), QueryKind.MORE_OF)


def _find_inside(view: SceneView) -> list[SceneNode]:
    return [node for node in view.named_boxed if _is_inside_a_room(view, node)]


def _is_inside_a_room(view: SceneView, node: SceneNode) -> bool:
    """Return whether an object is in its room and surely in no other, wall or doorway."""
    if node.parent is None or node.box is None:
        return False
    center = node.box.center
    room = view.graph.by_id[node.parent]
    if room.kind is not NodeKind.ROOM or room.box is None:
        return False
    corners = np.array([node.box.minimum, node.box.maximum])
    others = (other for other in view.graph.of_kind(NodeKind.ROOM) if other is not room)
    return bool(
        room.box.contains(center, -_INSIDE_M)
        and room.box.contains(corners, _WALL_M).all()
        and not any(other.box is not None and other.box.contains(center) for other in others)
    )


# Asks for the coordinates of objects, and whether two are in one room.
places = join(centers, ask(pairs(_find_inside), QueryKind.SAME_ROOM))


def rooms(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the areas of rooms, and how many objects of a kind are in one."""
    for node in shuffled(rng, _find_inside(view))[:limit]:
        yield from view.ask(QueryKind.ROOM_AREA, node)
        for label in shuffled(rng, view.by_label)[:3]:
            group = view.groups.get(label, ())
            found = sum(item.parent == node.parent for item in group)
            is_askable = (found or len(group) > 1) and found <= LARGEST_COUNT
            if is_askable and all(_is_inside_a_room(view, item) for item in group):
                yield from view.ask(QueryKind.COUNT_WITH, group, node)


def ways(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask how long ways are, and which of two is shorter."""
    if not view.ways:
        return
    lows_m = [float(node.known_box.minimum[2]) for node in view.named_boxed]
    floors_m = np.array(view.storeys_m[0] if view.storeys_m else (min(lows_m, default=0.0),))
    storeys = {
        node: storey
        for node, low_m in zip(view.named_boxed, lows_m, strict=True)
        if low_m - floors_m[storey := int(find_storey(low_m, floors_m))] < _STOREY_M
    }
    nodes = list(storeys)
    for first, second in sample_pairs(rng, nodes, min(limit, _MOST_WAYS)):
        length_m = view.ways[0].between_m(first.known_box, second.known_box)
        if length_m is None or length_m < _LEAST_WALK_M:
            continue
        yield from view.ask(QueryKind.WALK, first, second, answer=round(length_m, 3))
        if storeys[first] == storeys[second]:  # stairs turn back
            yield from view.ask(QueryKind.WALK_SIDE, first, second)
        third = nodes[int(rng.integers(len(nodes)))]
        if third in (first, second):
            continue
        items = (second, third, first)
        sign = _compare_ways(view.ways[0], items, _CLOSER_RATIO, _CLOSER_M)
        # Half as clearly for other robots, and from other places next to the objects.
        others = (_compare_ways(way, items, 1.0, _CLOSER_M / 2) for way in view.ways[1:])
        if sign and all(other == sign for other in others):
            yield from view.ask(QueryKind.WALK_CLOSER, *items, nodes=(first, second, third))


def _compare_ways(
    ways: FloorWays, items: tuple[SceneNode, ...], ratio: float, least_m: float
) -> int:
    """Return -1 if the way from the third item to the first is shorter, 1 if to the second."""
    one, other, start = (item.known_box for item in items)
    one_m, other_m = ways.between_m(start, one), ways.between_m(start, other)
    if one_m is None or other_m is None:
        return 0
    return compare_clearly(one_m, other_m, ratio, least_m)


def patterns(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about repeated objects: how many next to another, equally tall, in a row."""
    several = [nodes for nodes in view.groups.values() if len(nodes) > 1]
    for nodes in several:
        if any(node.box is None for node in nodes):
            continue
        yield from view.ask(QueryKind.ALIKE, nodes)
        if len(nodes) > 2:
            yield from view.ask(QueryKind.ROW, nodes)
            continue
        between = np.mean([node.known_box.center[:2] for node in nodes], axis=0)
        for about in view.named_boxed:
            # Only objects nearby are worth asking about.
            away_m = np.linalg.norm(about.known_box.center[:2] - between)
            if about not in nodes and away_m <= _NEARBY_M:
                yield from view.ask(QueryKind.MIRRORED, nodes, about)
    for first, second in sample_pairs(rng, _find_inside(view), limit):
        if first.parent != second.parent:
            yield from view.ask(QueryKind.ROOMS_ALIKE, first, second)
    for target in shuffled(rng, view.named)[:limit]:
        neighbours = view.index.sources(RelationType.NEXT_TO.value, target.id)
        for nodes in several:
            if target not in nodes and any(node.id in neighbours for node in nodes):
                yield from view.ask(QueryKind.ROUND, nodes, target)


def _draw_on_one_floor(view: SceneView, rng: Rng, limit: int) -> Drawn:
    storeys_m = view.storeys_m[0] if view.storeys_m else ()
    for node in shuffled(rng, view.named_boxed)[:limit] if len(storeys_m) > 1 else ():
        low, high = find_storey([node.known_box.minimum[2], node.known_box.maximum[2]], storeys_m)
        if low == high:
            yield (node,)


# Asks which objects are upstairs, and on which floor one is, where there are several.
floors = ask(_draw_on_one_floor, QueryKind.UPSTAIRS, QueryKind.FLOOR_OF)


def fits(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask whether one object would fit on top of another, only if along the axes."""
    nodes = [node for node in view.named_boxed if _is_along_axes(node)]
    for upper, lower in sample_pairs(rng, nodes, limit):
        yield from view.ask(QueryKind.FITS_ON, upper, lower)
        other = nodes[int(rng.integers(len(nodes)))]
        if other not in (upper, lower):
            yield from view.ask(QueryKind.WHICH_FITS, upper, other, lower)


def _is_along_axes(node: SceneNode) -> bool:
    """Return whether the box along the axes of the world is nearly the object's own box."""
    own, box = node.oriented_box, node.box
    if own is None or box is None:
        return True
    return bool(np.allclose(np.sort(own.size), np.sort(box.size), atol=_LEAST_CLEAR_M / 2))
