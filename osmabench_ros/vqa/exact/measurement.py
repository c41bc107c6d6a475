"""Colours, materials, counts, heights and distances."""

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
from osmabench_ros.vqa.graph_index import extent
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
        assert first.box is not None
        assert second.box is not None
        distance = float(np.linalg.norm(first.box.center - second.box.center))
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
