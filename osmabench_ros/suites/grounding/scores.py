"""Figures of visual grounding: Acc@0.25, Acc@0.5, distances and ranks, by difficulty."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.suites.grounding.generation import HARD_DISTRACTORS, SUITE
from osmabench_ros.vqa.questions import Answer, Question

THRESHOLDS = {'acc_025': 0.25, 'acc_05': 0.5}
"""Figures and the IoU from which a box is right."""

_EPSILON_M3 = 1e-8
_SAME = 0.25


@dataclass(frozen=True)
class Grounded:
    """How well one expression was answered.

    `groups` are what it counts for: 'all', difficulty, length and kind. Both IoUs are with the box
    of the target, the second as `published_iou`, and None without an answer, as the distance of
    the centres is. `rank` is the place of the right node, from 1, None if it is not among those
    that were ranked; `same_class` counts things of the kind in the scene.
    """

    groups: tuple[str, ...]
    iou: float | None
    iou_published: float | None
    distance_m: float | None
    rank: int | None
    same_class: int


def published_iou(first: AxisAlignedBox, second: AxisAlignedBox) -> float:
    """Return the IoU of ScanRefer's code: that of boxes along the axes, with 1e-8 in the union."""
    shared = first.intersection_volume(second)
    return shared / (first.volume + second.volume - shared + _EPSILON_M3)


def difficulties(same_class: int) -> tuple[str, ...]:
    """Return 'unique' (ScanRefer), or 'multiple' and 'easy' or 'hard' (ReferIt3D)."""
    if same_class <= 1:
        return ('unique',)
    return 'multiple', 'hard' if same_class > HARD_DISTRACTORS else 'easy'


def grounded(question: Question, answer: Answer | None, graph: SceneGraph) -> Grounded:
    """Return how well an expression was answered from a graph.

    The right node is the object with the largest IoU with the target, if that is 0.25 at least.
    """
    target = _box(question.answer)
    assert target is not None
    said = None if answer is None else _box(answer.value)
    right = _right_node(graph, target)
    ranked = () if answer is None else answer.nodes
    count = int(question.provenance['same_class'])
    length = question.provenance.get('length', '')
    return Grounded(
        tuple(filter(None, ('all', *difficulties(count), length, question.category))),
        None if said is None else said.iou(target),
        None if said is None else published_iou(said, target),
        None if said is None else math.dist(said.center, target.center),
        1 + ranked.index(right) if right is not None and right in ranked else None,
        count,
    )


def _right_node(graph: SceneGraph, target: AxisAlignedBox) -> int | None:
    alike = [
        (node.box.iou(target), -node.id)
        for node in graph.of_kind(NodeKind.OBJECT)
        if node.box is not None
    ]
    iou, key = max(alike, default=(0.0, 0))
    return -key if iou >= _SAME else None


def _box(value: object) -> AxisAlignedBox | None:
    if not isinstance(value, tuple) or len(value) != 6:
        return None
    try:
        return AxisAlignedBox(value[:3], value[3:])  # type: ignore[arg-type]
    except ValueError:
        return None


def grounding_records(
    found: Sequence[Grounded], *, applicable: bool = True
) -> Iterator[MetricRecord]:
    """Yield the figures of a map, over all expressions and by group.

    Strict counts expressions without an answer as wrong; compat, as the code of ScanRefer, has
    those with one alone in its denominators. Distances are over answers with a box, the mean rank
    over right nodes that were ranked; of the reciprocal rank the others count 0.
    """
    for group in dict.fromkeys(group for item in found for group in item.groups):
        items = [item for item in found if group in item.groups]
        name = '' if group == 'all' else group
        for metric, threshold in THRESHOLDS.items():
            strict = [item.iou is not None and item.iou >= threshold for item in items]
            loose = [x.iou_published >= threshold for x in items if x.iou_published is not None]
            yield share_record(Mode.STRICT, metric, name, strict, applicable=applicable)
            yield share_record(Mode.COMPAT, metric, name, loose, applicable=applicable)
        guesses = [1 / item.same_class for item in items]
        yield MetricRecord(
            SUITE, Mode.STRICT.value, 'baseline_random_of_class', name,
            math.fsum(guesses) / len(guesses), n=len(guesses),
        )  # fmt: skip
        distances = [item.distance_m for item in items if item.distance_m is not None]
        ranks = [float(item.rank) for item in items if item.rank is not None]
        reciprocal = [1 / item.rank if item.rank else 0.0 for item in items]
        for metric, values, better in (
            ('center_distance_m', distances, False),
            ('mean_rank', ranks, False),
            ('reciprocal_rank', reciprocal if ranks else [], True),
        ):
            value = math.fsum(values) / len(values) if values and applicable else None
            yield MetricRecord(
                SUITE, Mode.STRICT.value, metric, name, value, n=len(values),
                higher_is_better=better,
            )  # fmt: skip


def share_record(
    mode: Mode, metric: str, group: str, outcomes: Sequence[bool], *, applicable: bool = True
) -> MetricRecord:
    """Return a share with its interval; not applicable without outcomes."""
    hits, total = sum(outcomes), len(outcomes)
    if not applicable:
        return MetricRecord(SUITE, mode.value, metric, group, n=total)
    return MetricRecord.of_share(SUITE, mode.value, metric, hits, total, group)
