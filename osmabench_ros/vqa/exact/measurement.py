"""Colours, materials, counts, heights and distances, and comparisons with clear differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from osmabench_ros.semantics.scene_graph import SceneNode
from osmabench_ros.vqa.english import confusable
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    color_of,
    is_basic,
    material_of,
    sampled_pairs,
    shuffled,
    yes_no,
)
from osmabench_ros.vqa.graph_index import centre_distance_m, extent
from osmabench_ros.vqa.knowledge import COMPARATIVES
from osmabench_ros.vqa.questions import AnswerType, Category, Query, QueryKind

_CATEGORY = Category.OBJECT_ATTRIBUTES


def colors(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the colour of an object, and whether it has the right or a clearly wrong one."""
    kinds = (QueryKind.COLOR_OF, QueryKind.HAS_COLOR)
    yield from _drafts(view, rng, limit, kinds, _plain_color, confusable)


def materials(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the material of one object in eight, and whether it is right or another."""
    kinds = (QueryKind.MATERIAL_OF, QueryKind.HAS_MATERIAL)
    fewer = min(limit, len(view.named) // 8 + 1)
    yield from _drafts(view, rng, fewer, kinds, material_of, str.__eq__)


def _plain_color(node: SceneNode) -> str:
    color = color_of(node)
    return color if is_basic(color) else ''


def _drafts(
    view: SceneView,
    rng: np.random.Generator,
    limit: int,
    kinds: tuple[QueryKind, QueryKind],
    read: Callable[[SceneNode], str],
    alike: Callable[[str, str], bool],
) -> Iterator[Draft]:
    palette = sorted({read(node) for node in view.objects} - {''})
    for node in shuffled(rng, view.named)[:limit]:
        value = read(node)
        name = view.name(node)
        # A phrase that already says the attribute would give the answer away.
        if not value or name not in view.by_label:
            continue
        yield Draft(_CATEGORY, Query(kinds[0], (name,)), AnswerType.TEXT, value, (node.id,))
        yield yes_no(_CATEGORY, Query(kinds[1], (name,), value), True, node)
        wrong = [other for other in palette if not alike(value, other)]
        for other in shuffled(rng, wrong)[:2]:
            yield yes_no(_CATEGORY, Query(kinds[1], (name,), other), False, node)


LARGEST_COUNT = 12
"""More of a kind than this are hard to count, even for people."""

_HEIGHT_TOLERANCE = (0.1, 0.15)
_DISTANCE_TOLERANCE = (0.3, 0.15)


def counts(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask how many things of a label, or of a label and colour, there are."""
    for label, nodes in view.by_label.items():
        if view.has_rival(label) or len(nodes) > LARGEST_COUNT:
            continue
        yield _count(label, tuple(node.id for node in nodes))
        colors = [color_of(node) for node in nodes]
        for color in sorted(filter(is_basic, set(colors))) if '' not in colors else ():
            rivals = [other for other in colors if other != color]
            if rivals and not any(confusable(color, other) for other in rivals):
                chosen = [node.id for node in nodes if color_of(node) == color]
                yield _count(f'{color} {label}', tuple(chosen))
    for label in shuffled(rng, view.absent)[: min(limit, len(view.by_label) // 6 + 1)]:
        yield _count(label, ())


def _count(phrase: str, nodes: tuple[int, ...]) -> Draft:
    query = Query(QueryKind.COUNT, (phrase,))
    return Draft(Category.MEASUREMENT, query, AnswerType.INTEGER, len(nodes), nodes)


def lengths(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for heights of objects and distances between their centres, in metres."""
    for node in shuffled(rng, view.named_boxed)[:limit]:
        height = extent(node, 'taller') or 0.0
        if height >= _HEIGHT_TOLERANCE[0] * 2:
            query = Query(QueryKind.HEIGHT, (view.name(node),))
            yield _length(query, height, _HEIGHT_TOLERANCE, (node.id,))
    for first, second in sampled_pairs(rng, view.named_boxed, limit):
        distance = centre_distance_m(first, second)
        if distance >= _DISTANCE_TOLERANCE[0] * 2:
            query = Query(QueryKind.DISTANCE, (view.name(first), view.name(second)))
            yield _length(query, distance, _DISTANCE_TOLERANCE, (first.id, second.id))


def _length(
    query: Query, value_m: float, tolerance: tuple[float, float], nodes: tuple[int, ...]
) -> Draft:
    absolute, relative = tolerance
    return Draft(
        Category.MEASUREMENT,
        query,
        AnswerType.NUMBER,
        round(value_m, 3),
        nodes,
        round(max(absolute, relative * value_m), 3),
    )


_RATIO = {'taller': 1.4, 'wider': 1.4, 'bulkier': 2.0}
_HIGHER_M = 0.4
_CLOSER_RATIO = 1.5
_LEAST_M = 0.1


def sizes(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask which of two objects is taller, bulkier, wider or higher up."""
    for first, second in sampled_pairs(rng, view.named_boxed, limit):
        word = COMPARATIVES[int(rng.integers(len(COMPARATIVES)))]
        first_is_more = _compared(first, second, word)
        if first_is_more is None:
            continue
        names = (view.name(first), view.name(second))
        winner, nodes = names[0 if first_is_more else 1], (first.id, second.id)
        query = Query(QueryKind.WHICH_MORE, names, word)
        yield Draft(Category.COMPARISON, query, AnswerType.TEXT, winner, nodes)
        query = Query(QueryKind.IS_MORE, names, word)
        yield yes_no(Category.COMPARISON, query, first_is_more, first, second)


def _compared(first: SceneNode, second: SceneNode, word: str) -> bool | None:
    """Return whether the first is more, None if the difference is too small."""
    values = [extent(node, word) for node in (first, second)]
    low, high = sorted(value or 0.0 for value in values)
    if word == 'higher up':
        clear = high - low >= _HIGHER_M and _is_above(first, second)
    else:
        clear = low > 0 and high / low >= _RATIO[word]
        clear = clear and (word == 'bulkier' or high - low >= _LEAST_M)
    return (values[0] or 0.0) > (values[1] or 0.0) if clear else None


def _is_above(first: SceneNode, second: SceneNode) -> bool:
    """Return whether feet and top of one are clearly above those of the other."""
    boxes = (first.known_box, second.known_box)
    low, high = sorted(boxes, key=lambda box: float(box.center[2]))
    feet, tops = (
        float(getattr(high, end)[2] - getattr(low, end)[2]) for end in ('minimum', 'maximum')
    )
    return min(feet, tops) >= _HIGHER_M / 2


def nearer(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask which of two objects is closer to a third, centre to centre."""
    nodes = view.named_boxed
    if len(nodes) < 3:
        return
    for first, second in sampled_pairs(rng, nodes, limit):
        third = nodes[int(rng.integers(len(nodes)))]
        if third.id in (first.id, second.id):
            continue
        near, far = sorted(centre_distance_m(node, third) for node in (first, second))
        if far < max(near * _CLOSER_RATIO, near + 0.5):
            continue
        winner, loser = sorted((first, second), key=lambda node: centre_distance_m(node, third))
        if not _is_nearer_by_surface(winner, loser, third):
            continue
        names = tuple(view.name(node) for node in (first, second, third))
        query = Query(QueryKind.CLOSER, names)
        nodes_used = (first.id, second.id, third.id)
        yield Draft(Category.COMPARISON, query, AnswerType.TEXT, view.name(winner), nodes_used)


def _is_nearer_by_surface(winner: SceneNode, loser: SceneNode, origin: SceneNode) -> bool:
    """Return whether the object with the nearer centre has the nearer surface too."""
    near, far = (node.known_box.distance_to(origin.known_box) for node in (winner, loser))
    return far >= max(near * _CLOSER_RATIO, near + 0.3)


def numbers(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask whether there are more of one label than of another."""
    labels = [label for label in view.by_label if not view.has_rival(label)]
    for first, second in sampled_pairs(rng, labels, limit):
        counts = [len(view.by_label[label]) for label in (first, second)]
        if abs(counts[0] - counts[1]) >= 2:
            nodes = (*view.by_label[first], *view.by_label[second])
            query = Query(QueryKind.MORE_OF, (first, second))
            yield yes_no(Category.COMPARISON, query, counts[0] > counts[1], *nodes)
