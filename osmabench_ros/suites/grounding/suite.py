"""Visual grounding: files of ScanRefer and ReferIt3D, and expressions asked of recorded maps."""

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
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from osmabench_ros.base.documents import read_json, read_text
from osmabench_ros.base.strict import FilePath, validated
from osmabench_ros.errors import ConfigError, QuestionError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.language.embedding import Embedder
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.grounding import expressions
from osmabench_ros.suites.grounding.expressions import SUITE
from osmabench_ros.suites.question_suite import (
    RULE,
    AnswererOptions,
    AskedQuestions,
    QuestionSuite,
)
from osmabench_ros.suites.suite import PreparedScene, SuiteContext
from osmabench_ros.vqa.answering.answerer import Answerer, AnsweringMaterial
from osmabench_ros.vqa.evaluation import find_box
from osmabench_ros.vqa.published import Published, PublishedRow
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, make_question

# Metrics and the IoU from which a box is right.
THRESHOLDS = {'acc_025': 0.25, 'acc_05': 0.5}

_EPSILON_M3 = 1e-8

# Words by which ReferIt3D takes an expression to depend on the viewpoint.
VIEW_WORDS = frozenset(
    ('front', 'behind', 'back', 'right', 'left', 'facing', 'leftmost', 'rightmost', 'looking',
     'across')
)  # fmt: skip

# Up to so many objects of the class, the target too, ReferIt3D takes an expression as easy.
EASY_OBJECTS = 2


def compute_published_iou(first: AxisAlignedBox, second: AxisAlignedBox) -> float:
    """Return the IoU of ScanRefer's code: of boxes along the axes, with 1e-8 in the union."""
    shared = first.measure_intersection(second)
    return shared / (first.volume + second.volume - shared + _EPSILON_M3)


_IOU = {Mode.STRICT: AxisAlignedBox.iou, Mode.COMPAT: compute_published_iou}


class Referring(PublishedRow):
    """An expression of a file, and its target by the id that the scan gives it.

    `same_class` counts the objects of the class with the target, 0 where the file does not say;
    `predicted` is the id that a system chose, `by_class` whether the class is named, if known.
    """

    scene: str = Field(alias='scene_id')
    target: int = Field(alias='object_id')
    text: str = Field(alias='description')
    annotation: str = Field(alias='ann_id')
    words: tuple[str, ...] = ()
    same_class: int = 0
    predicted: int | None = None
    by_class: bool = True

    @property
    def key(self) -> str:
        """Text that identifies the expression."""
        return f'{self.scene}|{self.target}|{self.annotation}'


class _Nr3D(Referring):
    """A row of Nr3D, with the parts of its stimulus."""

    stimulus: str = Field(alias='stimulus_id')
    text: str = Field(alias='utterance')
    annotation: str = Field('', alias='assignmentid')
    words: tuple[str, ...] = Field((), alias='tokens')
    predicted: int | None = Field(None, alias='predicted_id')
    by_class: bool = Field(True, alias='mentions_target_class')

    @property
    def key(self) -> str:
        """Text that identifies the expression."""
        return f'{self.stimulus}|{self.annotation}|{self.text}'


def read_expressions(path: Path) -> list[Referring]:
    """Read ScanRefer_*.json, or Nr3D as CSV or as JSON with the same keys.

    Raises QuestionError, which names the file and the row or key at fault.
    """
    rows = _read_rows(path)
    if not isinstance(rows[0], dict) or 'stimulus_id' not in rows[0]:
        return validated(list[Referring], rows, str(path), QuestionError)
    stimuli = validated(list[dict[str, Any]], rows, str(path), QuestionError)
    for number, row in enumerate(stimuli, start=1):
        row |= _split_stimulus(str(row.get('stimulus_id')), f'{path}, row {number}')
    return list(validated(list[_Nr3D], stimuli, str(path), QuestionError))


def _split_stimulus(stimulus: str, where: str) -> dict[str, str]:
    """Read 'scan-class-count-target-distractor-distractor' of ReferIt3D."""
    match = re.fullmatch(r'([^-]*)-[^-]*-(\d+)-(\d+)((?:-\d+)*)', stimulus)
    if match is None or match[4].count('-') + 1 != int(match[2]):
        raise QuestionError(
            f'{where}: stimulus_id "{stimulus}" is not '
            'scan-class-count-target and as many distractors as count says'
        )
    return {'scene_id': match[1], 'same_class': match[2], 'object_id': match[3]}


def _read_rows(path: Path) -> list[Any]:
    if path.suffix == '.csv':
        table = csv.DictReader(io.StringIO(read_text(path, QuestionError)))
        rows: list[dict[str, Any]] = [{k: v for k, v in row.items() if v} for row in table]
        for number, row in enumerate(rows, start=2):
            try:
                row['tokens'] = literal_eval(row.get('tokens', '()'))
            except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
                raise QuestionError(f'{path}:{number}: "tokens" is not a list: {error}') from error
    else:
        rows = read_json(path, QuestionError)
    if not isinstance(rows, list) or not rows:
        raise QuestionError(f'{path}: there is no expression')
    return rows


def expressions_about(
    truth: GroundTruth, scene: str, referring: Sequence[Referring]
) -> list[Question]:
    """Return questions of the expressions with a target that has a box in the ground truth.

    Scenes have the name of the ground truth's; ids are of its instances.
    """
    graph, found = truth.evaluated_graph, {}
    labels = [normalised_name(node.label) for node in graph.of_kind(NodeKind.OBJECT)]
    for item in referring:
        node = graph.by_id.get(item.target) if item.scene == truth.scene else None
        if node is None or node.box is None or node.id not in truth.seen_instances:
            continue
        text = expressions.asked(item.text)
        corners = (*node.box.minimum.tolist(), *node.box.maximum.tolist())
        question = make_question(
            SUITE, scene, text, AnswerType.BOX, corners,
            key=f'{text}\n{item.key}', nodes=(node.id,), tolerance=expressions.TOLERANCE,
            provenance={
                'expression': item.text,
                'target': str(node.id),
                'same_class': str(max(1, labels.count(normalised_name(node.label)))),
            },
        )  # fmt: skip
        found[question.id] = question
    return list(found.values())


_UNIQUE: Mapping[int | None, str] = {0: 'unique', 1: 'multiple'}
_OTHERS: Mapping[int | None, str] = {0: 'not_in_others', 1: 'in_others'}
_GROUPS = (
    '', *_UNIQUE.values(), *_OTHERS.values(),
    *(f'{first}/{second}' for first in _UNIQUE.values() for second in _OTHERS.values()),
)  # fmt: skip


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

    @property
    def groups(self) -> list[str]:
        """Groups of the published table that a prediction says it is of."""
        unique = _UNIQUE.get(self.unique_multiple)
        others = _OTHERS.get(self.others)
        both = f'{unique}/{others}' if unique and others else None
        return ['', *(group for group in (unique, others, both) if group)]


def _read_boxes(path: Path) -> list[_Boxed]:
    return validated(list[_Boxed], _read_rows(path), str(path), QuestionError)


def _get_one(paths: Sequence[Path]) -> Path:
    if len(paths) > 1:
        raise ConfigError('score one file of predictions at a time')
    return paths[0]


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
        given = {item.key: item for item in said}
        rows: list[tuple[_Boxed | None, _Boxed | None]] = (
            [(item, known.get(item.key)) for item in said]
            if mode is Mode.COMPAT
            else [(given.get(key), right) for key, right in known.items()]
        )
        for found, right in rows:
            groups = [''] if found is None else found.groups
            if mode is Mode.STRICT and right is not None and right.object_name:
                groups = ['', _UNIQUE[objects[right.scene_id, right.object_name] > 1]]
            iou = 0.0 if found is None or right is None else _IOU[mode](found.box, right.box)
            for metric, threshold in THRESHOLDS.items():
                yield {'group': groups, 'metric': metric, 'value': iou >= threshold}

    return Published(
        lambda paths: _read_boxes(_get_one(paths)),
        compare,
        groups=('group', 'metric'),
        key=lambda row: row.key,
        unit='expressions',
        orders={'group': _GROUPS, 'metric': tuple(THRESHOLDS)},
        always={'group': _GROUPS[:3], 'metric': tuple(THRESHOLDS)},
    )


def _read_choices(paths: Sequence[Path]) -> list[Referring]:
    path = _get_one(paths)
    referring = read_expressions(path)
    if not any(item.same_class for item in referring):
        raise ConfigError(f'{path} has boxes; give those that are right as --truth')
    return referring


def compare_choices(referring: Sequence[Referring], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yield whether the chosen object is right, by difficulty; no choice is wrong.

    compat leaves out expressions that do not name the class, as the published code does by
    default, and reads from the tokens whether they depend on the viewpoint; strict takes all, and
    reads it from the text, in any case and whatever the tokens are.
    """
    compat = mode is Mode.COMPAT
    for item in referring:
        if item.by_class or not compat:
            hard = 'easy' if item.same_class <= EASY_OBJECTS else 'hard'
            words = item.words if compat else re.findall('[a-z]+', item.text.lower())
            view = 'view_independent' if VIEW_WORDS.isdisjoint(words) else 'view_dependent'
            right = item.predicted == item.target
            yield {'group': ('', hard, view), 'metric': 'accuracy', 'value': right}


_DIFFICULTIES = ('', 'easy', 'hard', 'view_dependent', 'view_independent')

# Accuracy on files of ReferIt3D with "predicted_id" next to each expression.
REFERIT3D = Published(
    _read_choices,
    compare_choices,
    groups=('group', 'metric'),
    key=lambda row: row.key,
    unit='expressions',
    orders={'group': _DIFFICULTIES},
    always={'group': _DIFFICULTIES, 'metric': ('accuracy',)},
)


AUTO, FEATURES = 'auto', 'features'
_OWN = (AUTO, RULE, FEATURES)
_SAME = 0.25


@dataclass(frozen=True)
class Grounded:
    """The answer to one expression: the box that was said, None without an answer, and the target.

    `groups` are its groups: '' for all, difficulty, length and kind. `rank` is the place of the
    right node, from 1, None if it was not ranked; `same_class` counts objects of the kind in the
    scene.
    """

    groups: tuple[str, ...]
    same_class: int
    target: AxisAlignedBox
    said: AxisAlignedBox | None
    rank: int | None


def list_difficulties(same_class: int) -> tuple[str, ...]:
    """Return 'unique' (ScanRefer), or 'multiple' and 'easy' or 'hard' (ReferIt3D)."""
    if same_class <= 1:
        return ('unique',)
    return 'multiple', 'easy' if same_class <= EASY_OBJECTS else 'hard'


def _match_all(given: AskedQuestions) -> list[Grounded]:
    """Return the answers with the ranks of the right nodes.

    The right node has the largest IoU of 0.25 or more. An expression of a file has no length.
    """
    graph = given.asked.semantic_map.graph
    boxed = [node for node in graph.of_kind(NodeKind.OBJECT) if node.box is not None]
    found = []
    for question, answer in zip(given.questions, given.answers, strict=True):
        target = AxisAlignedBox(*np.reshape(np.array(question.answer, np.float64), (2, 3)))
        overlaps = ((node.known_box.iou(target), -node.id) for node in boxed)
        iou, right = max(overlaps, default=(0.0, 0))
        is_ranked = iou >= _SAME and -right in answer.nodes
        count = int(question.provenance['same_class'])
        groups = (*list_difficulties(count), question.provenance.get('length'), question.category)
        rank = 1 + answer.nodes.index(-right) if is_ranked else None
        said = find_box(answer, graph)
        found.append(Grounded(('', *filter(None, groups)), count, target, said, rank))
    return found


def _score_group(group: str, items: Sequence[Grounded], *, served: bool) -> Iterator[MetricRecord]:
    """Yield the metrics of a map in a group of expressions.

    Strict counts expressions without an answer as wrong, unless the map can serve none; compat,
    as the code of ScanRefer, only has those with one in its denominators. Distances are over
    answers with a box, the mean rank over right nodes that were ranked; of the reciprocal rank
    the others count 0.
    """
    mean_of = partial(MetricRecord.of_mean, SUITE, Mode.STRICT.value)
    pairs = [(item.said, item.target) for item in items if item.said is not None]
    for (metric, threshold), (mode, measure) in product(THRESHOLDS.items(), _IOU.items()):
        hits = [measure(*pair) >= threshold for pair in pairs]
        if mode is Mode.STRICT:
            hits += [False] * (len(items) - len(pairs))
        if served or mode is Mode.COMPAT:
            yield MetricRecord.of_share(SUITE, mode.value, metric, hits, group)
        else:
            yield MetricRecord(SUITE, mode.value, metric, group, n=len(items))
    yield mean_of('baseline_random_of_class', [1 / item.same_class for item in items], group)
    distances = [math.dist(said.center, target.center) for said, target in pairs]
    yield mean_of('center_distance_m', distances, group, higher_is_better=False)
    ranks = [item.rank for item in items if item.rank is not None]
    yield mean_of('mean_rank', ranks, group, higher_is_better=False)
    reciprocal = [1 / item.rank if item.rank else 0.0 for item in items]
    yield mean_of('reciprocal_rank', reciprocal if ranks else [], group)


class GroundingOptions(AnswererOptions):
    """Options of the suite, in addition to `AnswererOptions`.

    Parameters
    ----------
    answerer : str
        'rule'; 'features', the cosine of text features; 'auto', features for maps without names,
        else rule; or an answerer as in `AnswererOptions`.
    targets : int
        Objects to refer to, where the context brings no expressions.
    expressions : Path, optional
        File of ScanRefer or Nr3D with expressions about this scene to ask instead.
    """

    answerer: str = AUTO
    targets: int = Field(expressions.DEFAULT_TARGETS, ge=1)
    expressions: FilePath | None = None

    def check(self) -> None:
        """Make answerers and models once, unless they are of the suite's own."""
        if self.answerer in _OWN:
            self.made_baselines(AnsweringMaterial())
        else:
            super().check()


class GroundingSuite(QuestionSuite[GroundingOptions]):
    """Acc@0.25, Acc@0.5, centre distance and rank of a map's answers to referring expressions.

    Class names are '' for all, 'unique' and 'multiple' as in ScanRefer, 'easy' and 'hard' as in
    ReferIt3D, the lengths of the expressions, and the kinds of clues that they give.
    """

    name = SUITE
    options_type = GroundingOptions
    mode = Mode.STRICT
    main_metrics = tuple((Mode.STRICT, metric) for metric in THRESHOLDS)
    published = REFERIT3D

    def make_rules(self, embedder: Embedder | None) -> Answerer:
        """Return the answerer that reads the clauses of expressions."""
        return expressions.RankingAnswerer(
            RULE, partial(expressions.rank_by_clauses, embedder=embedder)
        )

    def score(self, given: AskedQuestions) -> Iterator[MetricRecord]:
        """Yield the metrics of the map, over all expressions and by group."""
        served = not given.unserved >= {item.category for item in given.questions}
        found = _match_all(given)
        for group in dict.fromkeys(group for item in found for group in item.groups):
            items = [item for item in found if group in item.groups]
            yield from _score_group(group, items, served=served)

    def make_baselines(self, questions: Sequence[Question]) -> dict[str, list[Answer]]:
        """Return nothing: no answer without a map has a box."""
        del questions
        return {}

    def score_compared(self, metric: str, given: AskedQuestions) -> Iterator[MetricRecord]:
        """Yield Acc@0.25 and Acc@0.5 of another map or answerer, over all expressions."""
        for row in _score_group('', _match_all(given), served=True):
            if row.mode == self.mode.value and row.metric in THRESHOLDS:
                yield replace(row, metric=f'{metric}_{row.metric}')

    def list_questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the expressions of the file, those that were given, or new ones."""
        truth, scene = context.ground_truth, context.scene_name
        if self._options.expressions is not None:
            return expressions_about(truth, scene, read_expressions(self._options.expressions))
        return super().list_questions(context) or self._generate(truth, scene, context.seed)

    def prepare(self, prepared: PreparedScene) -> list[Question]:
        """Return expressions for the objects of a scene, unless a file has them."""
        if self._options.expressions is not None:
            return []
        return self._generate(prepared.ground_truth, prepared.key, prepared.seed)

    def _generate(self, truth: GroundTruth, scene: str, seed: int) -> list[Question]:
        return expressions.grounding_questions(
            truth, scene=scene, seed=seed, targets=self._options.targets
        )

    def choose_answerer(
        self, context: SuiteContext, rules: Answerer, material: AnsweringMaterial
    ) -> Answerer:
        """Return the answerer of the options; by default features for maps without names."""
        named = self._options.answerer
        encoder = context.text_encoder
        if named == AUTO:
            objects = context.semantic_map.graph.of_kind(NodeKind.OBJECT)
            is_unnamed = encoder is not None and not any(node.label for node in objects)
            by_text = is_unnamed and expressions.find_featured(context.semantic_map)
            named = FEATURES if by_text else RULE
        if named == RULE:
            return rules
        if named != FEATURES:
            return super().choose_answerer(context, rules, material)
        if encoder is None:
            raise ConfigError(
                'suite "grounding": answerer "features" needs text features; name a file '
                'under "text_features" of the configuration, or choose "rule"'
            )
        return expressions.RankingAnswerer(
            FEATURES, partial(expressions.rank_by_features, encoder=encoder)
        )
