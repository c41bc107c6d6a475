"""Metrics of visual grounding, and files of ScanRefer and ReferIt3D scored in both modes."""

from __future__ import annotations

import csv
import io
import math
import re
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from osmabench_ros.base.documents import read_json, read_text
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError, QuestionError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.grounding.expressions import asked
from osmabench_ros.suites.grounding.generation import HARD_DISTRACTORS, SUITE, TOLERANCE
from osmabench_ros.vqa.published import Published, PublishedRow
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, make_question

if TYPE_CHECKING:
    import pandas as pd

THRESHOLDS = {'acc_025': 0.25, 'acc_05': 0.5}
"""Metrics and the IoU from which a box is right."""

_EPSILON_M3 = 1e-8
_SAME = 0.25


@dataclass(frozen=True)
class Grounded:
    """How well one expression was answered.

    `groups` are its groups: 'all', difficulty, length and kind. Both IoUs are with the box of the
    target, the second as `published_iou`, and None without an answer, like the distance of the
    centres. `rank` is the place of the right node, from 1, None if it was not ranked; `same_class`
    counts objects of the kind in the scene.
    """

    groups: tuple[str, ...]
    iou: float | None
    iou_published: float | None
    distance_m: float | None
    rank: int | None
    same_class: int


def compute_published_iou(first: AxisAlignedBox, second: AxisAlignedBox) -> float:
    """Return the IoU of ScanRefer's code: of boxes along the axes, with 1e-8 in the union."""
    shared = first.measure_intersection(second)
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
    target = _read_box(question.answer)
    assert target is not None
    said = None if answer is None else _read_box(answer.value)
    right = _find_right_node(graph, target)
    ranked = () if answer is None else answer.nodes
    count = int(question.provenance['same_class'])
    length = question.provenance.get('length', '')
    return Grounded(
        tuple(filter(None, ('all', *difficulties(count), length, question.category))),
        None if said is None else said.iou(target),
        None if said is None else compute_published_iou(said, target),
        None if said is None else math.dist(said.center, target.center),
        1 + ranked.index(right) if right is not None and right in ranked else None,
        count,
    )


def _find_right_node(graph: SceneGraph, target: AxisAlignedBox) -> int | None:
    alike = [
        (node.box.iou(target), -node.id)
        for node in graph.of_kind(NodeKind.OBJECT)
        if node.box is not None
    ]
    iou, key = max(alike, default=(0.0, 0))
    return -key if iou >= _SAME else None


def _read_box(value: object) -> AxisAlignedBox | None:
    if not isinstance(value, tuple) or len(value) != 6:
        return None
    try:
        return AxisAlignedBox(value[:3], value[3:])  # type: ignore[arg-type]
    except ValueError:
        return None


def grounding_records(
    found: Sequence[Grounded], *, applicable: bool = True
) -> Iterator[MetricRecord]:
    """Yield the metrics of a map, over all expressions and by group.

    Strict counts expressions without an answer as wrong; compat, as the code of ScanRefer, only
    has those with one in its denominators. Distances are over answers with a box, the mean rank
    over right nodes that were ranked; of the reciprocal rank the others count 0.
    """
    for group in dict.fromkeys(group for item in found for group in item.groups):
        items = [item for item in found if group in item.groups]
        name = '' if group == 'all' else group
        for metric, threshold in THRESHOLDS.items():
            strict = [item.iou is not None and item.iou >= threshold for item in items]
            loose = [x.iou_published >= threshold for x in items if x.iou_published is not None]
            for mode, right in ((Mode.STRICT, strict), (Mode.COMPAT, loose)):
                record = MetricRecord.of_share(SUITE, mode.value, metric, right, name)
                none = MetricRecord(SUITE, mode.value, metric, name, n=len(right))
                yield record if applicable else none
        mean_of = partial(MetricRecord.of_mean, SUITE, Mode.STRICT.value)
        yield mean_of('baseline_random_of_class', [1 / item.same_class for item in items], name)
        distances = [item.distance_m for item in items if item.distance_m is not None]
        ranks = [float(item.rank) for item in items if item.rank is not None]
        reciprocal = [1 / item.rank if item.rank else 0.0 for item in items]
        for metric, values, better in (
            ('center_distance_m', distances, False),
            ('mean_rank', ranks, False),
            ('reciprocal_rank', reciprocal if ranks else [], True),
        ):
            record = mean_of(metric, values, name, higher_is_better=better)
            yield record if applicable else replace(record, value=None, applicable=False)


VIEW_WORDS = frozenset(
    ('front', 'behind', 'back', 'right', 'left', 'facing', 'leftmost', 'rightmost', 'looking',
     'across')
)  # fmt: skip
"""Words by which ReferIt3D takes an expression to depend on the viewpoint."""

EASY_OBJECTS = 2
"""Up to so many objects of the class, the target too, ReferIt3D takes an expression as easy."""


@dataclass(frozen=True)
class Referring:
    """An expression of a file, and its target by the id that the scan gives it.

    `same_class` counts the objects of the class with the target, 0 where the file does not say;
    `predicted` is the id that a system chose, `by_class` whether the class is named, if known.
    """

    scene: str
    target: int
    label: str
    text: str
    key: str
    words: tuple[str, ...] = ()
    same_class: int = 0
    predicted: int | None = None
    by_class: bool = True

    @property
    def explicit_view(self) -> bool:
        """Whether it depends on the viewpoint as the published code says: by its tokens."""
        return bool(VIEW_WORDS.intersection(self.words))

    @property
    def depends_on_view(self) -> bool:
        """Whether it does by the words of the text, in any case and whatever the tokens are."""
        return bool(VIEW_WORDS.intersection(re.findall('[a-z]+', self.text.lower())))


class _ScanRefer(PublishedRow):
    scene_id: str
    object_id: int
    object_name: str
    ann_id: str
    description: str
    token: tuple[str, ...] = ()


class _Nr3D(PublishedRow):
    stimulus_id: str
    utterance: str
    assignmentid: str = ''
    tokens: tuple[str, ...] = ()
    mentions_target_class: bool = True
    predicted_id: int | None = None


def read_expressions(path: Path) -> list[Referring]:
    """Read ScanRefer_*.json, or Nr3D as CSV or as JSON with the same keys.

    Raises QuestionError, which names the file and the row or key at fault.
    """
    rows = _read_rows(path)
    if rows and isinstance(rows[0], dict) and 'stimulus_id' in rows[0]:
        stimuli = validated(list[_Nr3D], rows, str(path), QuestionError)
        return [
            _read_stimulus(item, f'{path}, row {number}')
            for number, item in enumerate(stimuli, start=1)
        ]
    return [
        Referring(
            item.scene_id, item.object_id, item.object_name.replace('_', ' '), item.description,
            f'{item.scene_id}|{item.object_id}|{item.ann_id}', item.token,
        )
        for item in validated(list[_ScanRefer], rows, str(path), QuestionError)
    ]  # fmt: skip


def _read_rows(path: Path) -> Any:
    if path.suffix == '.csv':
        table = csv.DictReader(io.StringIO(read_text(path, QuestionError)))
        rows: list[dict[str, Any]] = [{k: v for k, v in row.items() if v} for row in table]
        for number, row in enumerate(rows, start=2):
            if 'tokens' in row:
                row['tokens'] = _parse_list(row['tokens'], f'{path}:{number}')
    else:
        rows = read_json(path, QuestionError)
    if not isinstance(rows, list) or not rows:
        raise QuestionError(f'{path}: there is no expression')
    return rows


def _parse_list(text: str, where: str) -> Any:
    """Return the list that a cell has as a Python literal."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise QuestionError(f'{where}: "tokens" is not a list: {error}') from error


def _read_stimulus(item: _Nr3D, where: str) -> Referring:
    """Read 'scan-class-count-target-distractor-distractor' of ReferIt3D."""
    parts = item.stimulus_id.split('-')
    fits = len(parts) > 3 and all(part.isdigit() for part in parts[2:])
    if not fits or len(parts) - 3 != int(parts[2]):
        raise QuestionError(
            f'{where}: stimulus_id "{item.stimulus_id}" is not '
            'scan-class-count-target and as many distractors as count says'
        )
    return Referring(
        parts[0], int(parts[3]), parts[1].replace('_', ' '), item.utterance,
        f'{item.stimulus_id}|{item.assignmentid}|{item.utterance}', item.tokens, int(parts[2]),
        item.predicted_id, item.mentions_target_class,
    )  # fmt: skip


def expressions_about(
    truth: GroundTruth, scene: str, expressions: Sequence[Referring]
) -> list[Question]:
    """Return questions of the expressions with a target that has a box in the ground truth.

    Scenes have the name of the ground truth's; ids are of its instances.
    """
    graph, found = truth.fair_graph, {}
    labels = [normalised_name(node.label) for node in graph.of_kind(NodeKind.OBJECT)]
    for item in expressions:
        node = graph.by_id.get(item.target) if item.scene == truth.scene else None
        if node is None or node.box is None or node.id not in truth.seen_instances:
            continue
        text = asked(item.text)
        corners = (*node.box.minimum.tolist(), *node.box.maximum.tolist())
        question = make_question(
            SUITE, scene, text, AnswerType.BOX, corners,
            key=f'{text}\n{item.key}', nodes=(node.id,), tolerance=TOLERANCE,
            provenance={
                'expression': item.text,
                'target': str(node.id),
                'same_class': str(max(1, labels.count(normalised_name(node.label)))),
            },
        )  # fmt: skip
        found[question.id] = question
    return list(found.values())


class _Boxed(PublishedRow):
    scene_id: str
    object_id: str
    ann_id: str
    bbox: tuple[tuple[float, float, float], ...] = Field(min_length=8, max_length=8)
    unique_multiple: int | None = None
    others: int | None = None
    object_name: str = ''

    @property
    def key(self) -> tuple[str, str, str]:
        return self.scene_id, self.object_id, self.ann_id

    @property
    def box(self) -> AxisAlignedBox:
        return AxisAlignedBox.around(np.array(self.bbox))


def _read_boxes(path: Path) -> list[_Boxed]:
    return validated(list[_Boxed], _read_rows(path), str(path), QuestionError)


def _read_one(paths: Sequence[Path]) -> Path:
    if len(paths) > 1:
        raise ConfigError('score one file of predictions at a time')
    return paths[0]


def _average_right(_group: Mapping[str, str], part: pd.DataFrame) -> dict[str, float | None]:
    return {'value': float(part['right'].mean()) if len(part) else None}


_GROUPS = ('unique', 'multiple', 'not_in_others', 'in_others')


def scanrefer(truth: Path) -> Published[_Boxed]:
    """Return how a pred.json of ScanRefer's benchmark is scored against boxes of the same form.

    compat has a row of the published table for each prediction: unknown expressions have
    an IoU of 0, expressions without a prediction leave the denominators, one that is predicted
    twice counts twice, and the prediction itself says whether its target is unique. strict counts
    every expression once, a missing one as wrong, and takes a target as unique where the truth
    has no other object of its name, where it has names.
    """
    known = {item.key: item for item in _read_boxes(truth)}
    objects = Counter(
        key[:2] for key in {(x.scene_id, x.object_name, x.object_id) for x in known.values()}
    )

    def compare(said: Sequence[_Boxed], mode: Mode) -> Iterator[dict[str, Any]]:
        if mode is Mode.COMPAT:
            rows = [
                (_list_groups(item), _measure_overlap(item, known.get(item.key))) for item in said
            ]
        else:
            first = {item.key: item for item in reversed(said)}
            rows = []
            for key, right in known.items():
                given = first.get(key)
                groups = [''] if given is None else _list_groups(given)
                if right.object_name:
                    several = objects[right.scene_id, right.object_name] > 1
                    groups = ['', 'multiple' if several else 'unique']
                rows.append((groups, 0.0 if given is None else given.box.iou(right.box)))
        for groups, iou in rows:
            for metric, threshold in THRESHOLDS.items():
                yield {'group': groups, 'metric': metric, 'right': iou >= threshold}

    pairs = [f'{first}/{second}' for first in _GROUPS[:2] for second in _GROUPS[2:]]
    return Published(
        lambda paths: _read_boxes(_read_one(paths)),
        compare,
        groups=('group', 'metric'),
        unit='expressions',
        orders={'group': ('', *_GROUPS, *pairs), 'metric': tuple(THRESHOLDS)},
        always={'group': ('', *_GROUPS[:2]), 'metric': tuple(THRESHOLDS)},
        sum_up=_average_right,
    )


_UNIQUE: Mapping[int | None, str] = {0: 'unique', 1: 'multiple'}
_OTHERS: Mapping[int | None, str] = {0: 'not_in_others', 1: 'in_others'}


def _list_groups(item: _Boxed) -> list[str]:
    """Return the groups of the published table that a prediction says it is of."""
    unique = _UNIQUE.get(item.unique_multiple)
    others = _OTHERS.get(item.others)
    both = f'{unique}/{others}' if unique and others else None
    return ['', *(group for group in (unique, others, both) if group)]


def _measure_overlap(item: _Boxed, right: _Boxed | None) -> float:
    return 0.0 if right is None else compute_published_iou(item.box, right.box)


def _read_choices(paths: Sequence[Path]) -> list[Referring]:
    path = _read_one(paths)
    expressions = read_expressions(path)
    if not any(item.same_class for item in expressions):
        raise ConfigError(f'{path} has boxes; give those that are right as --truth')
    return expressions


def compare_choices(expressions: Sequence[Referring], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yield whether the chosen object is right, by difficulty; no choice is wrong.

    compat leaves out expressions that do not name the class, as the published code does by
    default, and reads from the tokens whether they depend on the viewpoint; strict takes all, and
    reads it from the text.
    """
    compat = mode is Mode.COMPAT
    for item in expressions:
        if item.by_class or not compat:
            hard = 'easy' if item.same_class <= EASY_OBJECTS else 'hard'
            view = item.explicit_view if compat else item.depends_on_view
            groups = ('', hard, 'view_dependent' if view else 'view_independent')
            right = item.predicted == item.target
            yield {'group': groups, 'metric': 'accuracy', 'right': right}


_DIFFICULTIES = ('', 'easy', 'hard', 'view_dependent', 'view_independent')

REFERIT3D = Published(
    _read_choices,
    compare_choices,
    groups=('group', 'metric'),
    key=lambda row: row.key,
    unit='expressions',
    orders={'group': _DIFFICULTIES},
    always={'group': _DIFFICULTIES, 'metric': ('accuracy',)},
    sum_up=_average_right,
)
"""Accuracy on files of ReferIt3D with "predicted_id" next to each expression."""
