"""Comparison questions, only about clear differences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from osmabench_ros.semantics.scene_graph import SceneNode
from osmabench_ros.vqa.exact.view import Draft, SceneView, sampled_pairs, yes_no
from osmabench_ros.vqa.graph_index import extent
from osmabench_ros.vqa.knowledge import COMPARATIVES
from osmabench_ros.vqa.questions import AnswerType, Category, Query, QueryKind

_CATEGORY = Category.COMPARISON
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
        yield Draft(_CATEGORY, query, AnswerType.TEXT, winner, nodes)
        query = Query(QueryKind.IS_MORE, names, word)
        yield yes_no(_CATEGORY, query, first_is_more, first, second)


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
    """Tell whether feet and top of one are clearly above those of the other."""
    assert first.box is not None
    assert second.box is not None
    low, high = sorted((first.box, second.box), key=lambda box: float(box.center[2]))
    feet, tops = (
        float(getattr(high, end)[2] - getattr(low, end)[2]) for end in ('minimum', 'maximum')
    )
    return min(feet, tops) >= _HIGHER_M / 2


def distances(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask which of two objects is closer to a third, centre to centre."""
    nodes = view.named_boxed
    if len(nodes) < 3:
        return
    for first, second in sampled_pairs(rng, nodes, limit):
        third = nodes[int(rng.integers(len(nodes)))]
        if third.id in (first.id, second.id):
            continue
        near, far = sorted(_distance_m(node, third) for node in (first, second))
        if far < max(near * _CLOSER_RATIO, near + 0.5):
            continue
        winner, loser = sorted((first, second), key=lambda node: _distance_m(node, third))
        if not _is_nearer_by_surface(winner, loser, third):
            continue
        names = tuple(view.name(node) for node in (first, second, third))
        query = Query(QueryKind.CLOSER, names)
        nodes_used = (first.id, second.id, third.id)
        yield Draft(_CATEGORY, query, AnswerType.TEXT, view.name(winner), nodes_used)


def _is_nearer_by_surface(winner: SceneNode, loser: SceneNode, origin: SceneNode) -> bool:
    """Return whether the object with the nearer centre has the nearer surface too."""
    assert winner.box is not None
    assert loser.box is not None
    assert origin.box is not None
    near, far = (node.distance_to(origin.box) for node in (winner.box, loser.box))
    return far >= max(near * _CLOSER_RATIO, near + 0.3)


def _distance_m(first: SceneNode, second: SceneNode) -> float:
    assert first.box is not None
    assert second.box is not None
    return float(np.linalg.norm(first.box.center - second.box.center))


def numbers(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask whether there are more of one label than of another."""
    labels = [label for label in view.by_label if not view.has_rival(label)]
    for first, second in sampled_pairs(rng, labels, limit):
        counts = [len(view.by_label[label]) for label in (first, second)]
        if abs(counts[0] - counts[1]) >= 2:
            nodes = (*view.by_label[first], *view.by_label[second])
            query = Query(QueryKind.MORE_OF, (first, second))
            yield yes_no(_CATEGORY, query, counts[0] > counts[1], *nodes)
