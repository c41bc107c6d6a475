"""Existence questions, positive and negative, and logical combinations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from osmabench_ros.vqa.english import confusable
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    color_of,
    is_basic,
    sampled_pairs,
    shuffled,
    yes_no,
)
from osmabench_ros.vqa.questions import Category, Query, QueryKind

_KINDS = (QueryKind.EXISTS, QueryKind.ABSENT)


def present(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about classes of the scene, half of the time whether they are missing."""
    phrases = dict.fromkeys(view.by_label)
    phrases.update(dict.fromkeys(view.names.values()))
    nodes_of = {name: (node,) for node in view.named for name in (view.name(node),)}
    for phrase in shuffled(rng, phrases)[:limit]:
        nodes = view.by_label.get(phrase, nodes_of.get(phrase, ()))[:1]
        for kind in _KINDS:
            answer = kind is QueryKind.EXISTS
            yield yes_no(Category.EXISTENCE_POSITIVE, Query(kind, (phrase,)), answer, *nodes)


def absent(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about plausible classes, and colours of classes, that the scene does not have."""
    phrases = [*view.absent, *_wrong_colors(view, rng)]
    for phrase in shuffled(rng, phrases)[:limit]:
        for kind in _KINDS:
            answer = kind is QueryKind.ABSENT
            yield yes_no(Category.EXISTENCE_NEGATIVE, Query(kind, (phrase,)), answer)


def _wrong_colors(view: SceneView, rng: np.random.Generator) -> list[str]:
    """Return classes of the scene in a colour of the scene that none of them has."""
    palette = sorted({color for node in view.objects if is_basic(color := color_of(node))})
    phrases = []
    for label, nodes in view.by_label.items():
        own = [color_of(node) for node in nodes]
        if view.has_rival(label) or '' in own:
            continue
        other = [c for c in palette if not any(confusable(c, color) for color in own)]
        phrases += [f'{color} {label}' for color in shuffled(rng, other)[:2]]
    return phrases


def logical(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Join two existence questions so that neither half alone gives the answer away."""
    there, missing = list(view.by_label), list(view.absent)
    if not there or not missing:
        return
    per_case = max(1, limit // 8)
    for has_first, has_second in ((True, True), (True, False), (False, True), (False, False)):
        first_pool, second_pool = (there if has else missing for has in (has_first, has_second))
        for first, second in _joined(rng, first_pool, second_pool, per_case):
            nodes = [view.by_label[x][0] for x in (first, second) if x in view.by_label]
            # One yes and one no of a pair: more would ask the same fact again.
            cases = shuffled(rng, _truth(has_first, has_second))
            for kind, answer in {a: (k, a) for k, a in cases}.values():
                yield yes_no(Category.BINARY_LOGICAL, Query(kind, (first, second)), answer, *nodes)


def _truth(first: bool, second: bool) -> Iterator[tuple[QueryKind, bool]]:
    yield QueryKind.BOTH, first and second
    yield QueryKind.EITHER, first or second
    yield QueryKind.FIRST_ONLY, first and not second
    yield QueryKind.NEITHER, not (first or second)


def _joined(
    rng: np.random.Generator, first: list[str], second: list[str], limit: int
) -> Iterator[tuple[str, str]]:
    if first is second:
        yield from sampled_pairs(rng, first, limit)
        return
    total = len(first) * len(second)
    for number in rng.choice(total, size=min(limit, total), replace=False).tolist():
        yield first[number // len(second)], second[number % len(second)]
