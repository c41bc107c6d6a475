"""What a robot can reach, use and move: the categories of OSMa-Bench's second version."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    label_of,
    sampled_pairs,
    shuffled,
    yes_no,
)
from osmabench_ros.vqa.graph_index import gap_m
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.queries import Query, QueryKind
from osmabench_ros.vqa.questions import AnswerType, Category

REACHES_M = (0.6, 0.9, 1.2, 1.5, 1.8)
ROBOT_WIDTHS_M = (0.4, 0.6, 0.8, 1.0)
CLEARANCES_M = (0.3, 0.5, 0.8)
MARGIN_M = 0.2
"""A length is only asked about if it differs from the threshold by at least this much."""

ON, IN, NEXT_TO = RelationType.ON.value, RelationType.IN.value, RelationType.NEXT_TO.value
_COUNTABLE = ('sat on', 'lain on')
_ON_IT = ('picked up', 'switched on', 'opened')
_BESIDE_IT = ('sat on', 'lain on', 'written at', 'switched on', 'opened')
_LONGEST_GAP_M = 2.5


def reachability(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask what an arm reaches, where a robot fits through, what is free above."""
    category = Category.TASK_REACHABILITY
    for node in shuffled(rng, view.named_boxed)[:limit]:
        assert node.box is not None
        top = float(node.box.maximum[2]) - view.index.floor_height_m(node)
        space = view.index.space_above_m(node)
        for kind, value, thresholds in (
            (QueryKind.REACHABLE, top, REACHES_M),
            (QueryKind.CLEARANCE, space, CLEARANCES_M),
        ):
            for number in thresholds:
                if abs(value - number) >= MARGIN_M:
                    reached = value <= number if kind is QueryKind.REACHABLE else value >= number
                    query = Query(kind, (view.name(node),), number=number)
                    yield yes_no(category, query, reached, node)
    yield from _gaps(view, rng, limit)


def _gaps(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    standing = [node for node in view.named_boxed if _stands_on_floor(view, node)]
    for first, second in sampled_pairs(rng, standing, limit):
        gap = gap_m(first, second)
        number = ROBOT_WIDTHS_M[int(rng.integers(len(ROBOT_WIDTHS_M)))]
        if gap <= _LONGEST_GAP_M and abs(gap - number) >= MARGIN_M:
            names = (view.name(first), view.name(second))
            query = Query(QueryKind.PASSABLE, names, number=number)
            yield yes_no(Category.TASK_REACHABILITY, query, gap >= number, first, second)


def _stands_on_floor(view: SceneView, node: SceneNode) -> bool:
    assert node.box is not None
    return abs(float(node.box.minimum[2]) - view.index.floor_height_m(node)) < 0.1


def affordance(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask what things on or next to another can be used for, and how many there are."""
    category = Category.OBJECT_AFFORDANCE
    for word in _COUNTABLE:
        nodes = tuple(n.id for n in view.objects if knowledge().affords(label_of(n), word))
        query = Query(QueryKind.AFFORDS_COUNT, (), word)
        yield Draft(category, query, AnswerType.INTEGER, len(nodes), nodes)
    for node in shuffled(rng, view.named)[:limit]:
        for kind, relation, words in (
            (QueryKind.AFFORDS_ON, ON, _ON_IT),
            (QueryKind.AFFORDS_NEAR, NEXT_TO, _BESIDE_IT),
        ):
            others = _objects(view, view.index.sources(relation, node.id))
            if not others or not all(knowledge().knows(label_of(other)) for other in others):
                continue
            for word in words:
                usable = [o for o in others if knowledge().affords(label_of(o), word)]
                query = Query(kind, (view.name(node),), word)
                yield yes_no(category, query, bool(usable), node, *(usable or others))


def precondition(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask what must be taken off or opened first."""
    category = Category.MANIPULATION_PRECONDITION
    carriers = {
        target
        for node in view.objects
        for target in view.index.targets(ON, node.id)
        if view.index.by_id[target].kind is NodeKind.OBJECT
    }
    kinds_of_carriers = {label_of(view.index.by_id[i]) for i in carriers}
    for node in shuffled(rng, view.named)[:limit]:
        if knowledge().is_fixed(label_of(node)):
            continue
        loaded = bool(view.index.sources(ON, node.id))
        # Only a thing that others like it carry something on makes "nothing" worth asking.
        if not loaded and not _could_carry(node, kinds_of_carriers):
            continue
        for kind in (QueryKind.LOADED, QueryKind.UNLOADED):
            answer = loaded is (kind is QueryKind.LOADED)
            yield yes_no(category, Query(kind, (view.name(node),)), answer, node)
    yield from _containers(view)


def _could_carry(node: SceneNode, kinds: set[str]) -> bool:
    flat_and_wide = (
        node.box is not None and node.box.size[:2].min() >= 0.3 and node.box.size[2] <= 1.3
    )
    return label_of(node) in kinds or flat_and_wide


def _containers(view: SceneView) -> Iterator[Draft]:
    for node in view.named:
        holders = _objects(view, view.index.targets(IN, node.id))
        if len(holders) == 1 and knowledge().affords(label_of(holders[0]), 'opened'):
            query = Query(QueryKind.OPEN_FIRST, (view.name(node),))
            nodes = (node.id, holders[0].id)
            answer = label_of(holders[0])
            category = Category.MANIPULATION_PRECONDITION
            yield Draft(category, query, AnswerType.TEXT, answer, nodes)


def _objects(view: SceneView, ids: tuple[int, ...]) -> list[SceneNode]:
    nodes = (view.index.by_id[i] for i in ids)
    return [node for node in nodes if node.kind is NodeKind.OBJECT and node.label]
