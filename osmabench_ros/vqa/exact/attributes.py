"""Colours and materials."""

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
    shuffled,
    yes_no,
)
from osmabench_ros.vqa.queries import Query, QueryKind
from osmabench_ros.vqa.questions import AnswerType, Category

_CATEGORY = Category.OBJECT_ATTRIBUTES


def colors(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the colour of an object, and whether it has the right or a clearly wrong one."""
    kinds = (QueryKind.COLOR_OF, QueryKind.HAS_COLOR)
    yield from _drafts(view, rng, limit, kinds, _plain_color, confusable)


def materials(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the material of an object, and whether it is of the right or another one.

    Of one object in eight: cameras see colours, and hardly any map states materials.
    """
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
