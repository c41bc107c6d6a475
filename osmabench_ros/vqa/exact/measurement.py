"""Colours, materials, counts, heights and distances, and comparisons with clear differences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from osmabench_ros.semantics.scene_graph import SceneNode
from osmabench_ros.vqa.english import confusable
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    color_of,
    drafted,
    is_basic,
    material_of,
    sample_pairs,
    shuffled,
)
from osmabench_ros.vqa.graph_index import centre_distance_m, extent
from osmabench_ros.vqa.kinds import Kind, Query, QueryKind
from osmabench_ros.vqa.knowledge import COMPARATIVES
from osmabench_ros.vqa.questions import Category


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
    kinds: tuple[Kind, Kind],
    read: Callable[[SceneNode], str],
    alike: Callable[[str, str], bool],
) -> Iterator[Draft]:
    palette = sorted({read(node) for node in view.objects} - {''})
    for node in shuffled(rng, view.named)[:limit]:
        value = read(node)
        # A phrase that already says the attribute would give the answer away.
        if not value or view.name(node) not in view.by_label:
            continue
        yield view.about(kinds[0], node, answer=value)
        yield view.about(kinds[1], node, word=value, answer=True)
        wrong = [other for other in palette if not alike(value, other)]
        for other in shuffled(rng, wrong)[:2]:
            yield view.about(kinds[1], node, word=other, answer=False)


LARGEST_COUNT = 12
"""More of a kind than this are hard to count, even for people."""

_LEAST_HEIGHT_M, _LEAST_DISTANCE_M = 0.2, 0.6


def counts(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask how many objects of a label, or of a label and colour, there are."""
    for label, nodes in view.by_label.items():
        if view.has_rival(label) or len(nodes) > LARGEST_COUNT:
            continue
        yield _count(label, nodes)
        colors = [color_of(node) for node in nodes]
        for color in sorted(filter(is_basic, set(colors))) if '' not in colors else ():
            rivals = [other for other in colors if other != color]
            if rivals and not any(confusable(color, other) for other in rivals):
                chosen = [node for node in nodes if color_of(node) == color]
                yield _count(f'{color} {label}', chosen)
    for label in shuffled(rng, view.absent)[: min(limit, len(view.by_label) // 6 + 1)]:
        yield _count(label, ())


def _count(phrase: str, nodes: Sequence[SceneNode]) -> Draft:
    return drafted(Query(QueryKind.COUNT, (phrase,)), nodes, len(nodes))


def lengths(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for heights of objects and distances between their centres, in metres."""
    for node in shuffled(rng, view.named_boxed)[:limit]:
        if float(node.known_box.size[2]) >= _LEAST_HEIGHT_M:
            yield view.about(QueryKind.HEIGHT, node)
    for first, second in sample_pairs(rng, view.named_boxed, limit):
        if centre_distance_m(first, second) >= _LEAST_DISTANCE_M:
            yield view.about(QueryKind.DISTANCE, first, second)


def centers(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the coordinates of objects."""
    for node in shuffled(rng, view.named_boxed)[:limit]:
        yield replace(view.about(QueryKind.CENTER, node), category=Category.MEASUREMENT)


_RATIO = {'taller': 1.4, 'wider': 1.4, 'bulkier': 2.0}
_HIGHER_M = 0.4
_CLOSER_RATIO = 1.5
_LEAST_M = 0.1


def sizes(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask which of two objects is taller, bulkier, wider or higher up."""
    for first, second in sample_pairs(rng, view.named_boxed, limit):
        word = COMPARATIVES[int(rng.integers(len(COMPARATIVES)))]
        if _is_clear(first, second, word):
            yield view.about(QueryKind.WHICH_MORE, first, second, word=word)
            yield view.about(QueryKind.IS_MORE, first, second, word=word)


def _is_clear(first: SceneNode, second: SceneNode, word: str) -> bool:
    """Return whether the difference is large enough to ask about."""
    low, high = sorted(extent(node, word) or 0.0 for node in (first, second))
    if word == 'higher up':
        return high - low >= _HIGHER_M and _is_above(first, second)
    is_more = low > 0 and high / low >= _RATIO[word]
    return is_more and (word == 'bulkier' or high - low >= _LEAST_M)


def _is_above(first: SceneNode, second: SceneNode) -> bool:
    """Return whether feet and top of one are clearly above feet and top of the other."""
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
    for first, second in sample_pairs(rng, nodes, limit):
        third = nodes[int(rng.integers(len(nodes)))]
        if third.id in (first.id, second.id):
            continue
        near, far = sorted(centre_distance_m(node, third) for node in (first, second))
        if far < max(near * _CLOSER_RATIO, near + 0.5):
            continue
        winner, loser = sorted((first, second), key=lambda node: centre_distance_m(node, third))
        if _is_nearer_by_surface(winner, loser, third):
            yield view.about(QueryKind.CLOSER, first, second, third)


def _is_nearer_by_surface(winner: SceneNode, loser: SceneNode, origin: SceneNode) -> bool:
    """Return whether the object with the nearer centre has the nearer surface too."""
    near, far = (node.known_box.measure_gap(origin.known_box) for node in (winner, loser))
    return far >= max(near * _CLOSER_RATIO, near + 0.3)


def numbers(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask whether there are more of one label than of another."""
    labels = [label for label in view.by_label if not view.has_rival(label)]
    for first, second in sample_pairs(rng, labels, limit):
        counts = [len(view.by_label[label]) for label in (first, second)]
        if abs(counts[0] - counts[1]) >= 2:
            nodes = (*view.by_label[first], *view.by_label[second])
            yield drafted(Query(QueryKind.MORE_OF, (first, second)), nodes)
