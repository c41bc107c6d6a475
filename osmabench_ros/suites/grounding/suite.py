"""Visual grounding: files of ScanRefer and ReferIt3D, and expressions asked of recorded maps."""

from __future__ import annotations

import csv
import io
import math
import re
from ast import literal_eval
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import AliasChoices, Field

from osmabench_ros.base.documents import read_json, read_text
from osmabench_ros.base.strict import FilePath, validated
from osmabench_ros.errors import ConfigError, QuestionError, errors_as
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
from osmabench_ros.vqa.questions import Answer, Question

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
    Nr3D has parts of these in the `stimulus`.
    """

    scene: str = Field(alias='scene_id')
    target: int = Field(alias='object_id')
    text: str = Field(validation_alias=AliasChoices('description', 'utterance'))
    annotation: str = Field(validation_alias=AliasChoices('ann_id', 'assignmentid'))
    stimulus: str = Field('', alias='stimulus_id')
    words: tuple[str, ...] = Field((), alias='tokens')
    same_class: int = 0
    predicted: int | None = Field(None, alias='predicted_id')
    by_class: bool = Field(True, alias='mentions_target_class')

    @property
    def key(self) -> str:
        """Text that identifies the expression."""
        if self.stimulus:
            return f'{self.stimulus}|{self.annotation}|{self.text}'
        return f'{self.scene}|{self.target}|{self.annotation}'


def read_expressions(path: Path) -> list[Referring]:
    """Read ScanRefer_*.json, or Nr3D as CSV or as JSON with the same keys.

    Raises QuestionError, which names the file and the row or key at fault.
    """
    rows = [
        row | _split_stimulus(row, f'{path}, row {number}')
        if isinstance(row, dict) and 'stimulus_id' in row
        else row
        for number, row in enumerate(_read_rows(path), start=1)
    ]
    return validated(list[Referring], rows, str(path), QuestionError)


def _split_stimulus(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read 'scan-class-count-target-distractor-distractor' of ReferIt3D, and words in a CSV."""
    stimulus, words = str(row['stimulus_id']), row.get('tokens', ())
    match = re.fullmatch(r'([^-]*)-[^-]*-(\d+)-(\d+)((?:-\d+)*)', stimulus)
    if match is None or match[4].count('-') + 1 != int(match[2]):
        raise QuestionError(
            f'{where}: stimulus_id "{stimulus}" is not '
            'scan-class-count-target and as many distractors as count says'
        )
    try:
        words = literal_eval(words) if isinstance(words, str) else words
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise QuestionError(f'{where}: "tokens" is not a list: {error}') from error
    found = {'scene_id': match[1], 'same_class': match[2], 'object_id': match[3], 'tokens': words}
    return {'assignmentid': row.get('assignmentid', ''), **found}


def _read_rows(path: Path) -> list[Any]:
    if path.suffix == '.csv':
        table = csv.DictReader(io.StringIO(read_text(path, QuestionError)))
        with errors_as(QuestionError, str(path), csv.Error):
            rows: list[Any] = [{k: v for k, v in row.items() if v} for row in table]
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
        provenance = {
            'expression': item.text,
            'target': str(node.id),
            'same_class': str(max(1, labels.count(normalised_name(node.label)))),
        }
        corners = (*node.box.minimum.tolist(), *node.box.maximum.tolist())
        key = f'{expressions.asked(item.text)}\n{item.key}'
        question = expressions.ask_for_box(scene, corners, provenance, key=key)
        found[question.id] = question
    return list(found.values())


@dataclass(frozen=True)
class Grounded:
    """The box that answers an expression, None without an answer, and the box of its target.

    `groups` has the groups of the expression in a mode: '' for all, and difficulty, length and
    kind. `rank` is the place of the right node, from 1, None if it was not ranked; `same_class`
    counts objects of the kind in the scene.
    """

    groups: Sequence[str]
    said: AxisAlignedBox | None
    target: AxisAlignedBox | None
    same_class: int = 1
    rank: int | None = None


def compare_boxes(items: Iterable[Grounded], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yield whether the box of each expression is right, by group and metric.

    Strict counts expressions without an answer as wrong; compat, as the code of ScanRefer, only
    has those with one in its denominators. An unknown target has an IoU of 0.
    """
    for item in items:
        if item.said is not None or mode is Mode.STRICT:
            iou = 0.0
            if item.said is not None and item.target is not None:
                iou = _IOU[mode](item.said, item.target)
            for metric, threshold in THRESHOLDS.items():
                yield {'group': item.groups, 'metric': metric, 'value': iou >= threshold}


_UNIQUE, _OTHERS = ('unique', 'multiple'), ('not_in_others', 'in_others')
_GROUPS = ('', *_UNIQUE, *_OTHERS, *map('/'.join, product(_UNIQUE, _OTHERS)))


class _Boxed(Referring):
    text: str = ''
    bbox: tuple[tuple[float, float, float], ...] = Field(min_length=8, max_length=8)
    unique_multiple: int | None = None
    others: int | None = None
    object_name: str = ''

    @property
    def box(self) -> AxisAlignedBox:
        return AxisAlignedBox.around(np.array(self.bbox))

    @property
    def groups(self) -> list[str]:
        """Groups of the published table that a prediction says it is of."""
        flags = (_UNIQUE, self.unique_multiple), (_OTHERS, self.others)
        named = [names[flag] for names, flag in flags if flag in (0, 1)]
        return ['', *named, *(['/'.join(named)] if len(named) > 1 else [])]


def _read_boxes(paths: Sequence[Path]) -> list[_Boxed]:
    return [
        item
        for path in paths
        for item in validated(list[_Boxed], _read_rows(path), str(path), QuestionError)
    ]


def scanrefer(truth: Path) -> Published[_Boxed]:
    """Return how a pred.json of ScanRefer's benchmark is scored against boxes of the same form.

    compat has a row of the published table for each prediction: unknown expressions have
    an IoU of 0, expressions without a prediction leave the denominators, one that is predicted
    twice counts twice, and the prediction itself says whether its target is unique. strict counts
    every expression once, a missing one as wrong, and takes a target as unique where the truth
    has no other object of its name, where it has names.
    """
    known = {item.key: item for item in _read_boxes([truth])}
    objects = Counter(
        key[:2] for key in {(x.scene, x.object_name, x.target) for x in known.values()}
    )

    def pair(said: Sequence[_Boxed], mode: Mode) -> Iterator[Grounded]:
        given = {item.key: item for item in said}
        pairs: Iterable[tuple[_Boxed | None, _Boxed | None]]
        pairs = ((item, known.get(item.key)) for item in said)
        if mode is Mode.STRICT:
            pairs = ((given.get(key), right) for key, right in known.items())
        for found, right in pairs:
            groups = [''] if found is None else found.groups
            if mode is Mode.STRICT and right is not None and right.object_name:
                groups = ['', _UNIQUE[objects[right.scene, right.object_name] > 1]]
            yield Grounded(groups, found.box if found else None, right.box if right else None)

    return Published(
        _read_boxes,
        lambda said, mode: compare_boxes(pair(said, mode), mode),
        groups=('group', 'metric'),
        key=lambda row: row.key,
        unit='expressions',
        orders={'group': _GROUPS, 'metric': tuple(THRESHOLDS)},
        always={'group': _GROUPS[:3], 'metric': tuple(THRESHOLDS)},
    )


def _read_choices(paths: Sequence[Path]) -> list[Referring]:
    referring = [item for path in paths for item in read_expressions(path)]
    if not any(item.same_class for item in referring):
        raise ConfigError(f'{paths[0]} has boxes; give those that are right as --truth')
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
        found.append(Grounded(('', *filter(None, groups)), said, target, count, rank))
    return found


def _score_group(group: str, items: Sequence[Grounded], *, served: bool) -> Iterator[MetricRecord]:
    """Yield the metrics of a map in a group of expressions, strict ones of a map that serves any.

    Distances are over answers with a box, the mean rank over right nodes that were ranked; of the
    reciprocal rank the others count 0.
    """
    for metric, mode in product(THRESHOLDS, _IOU):
        hits = [row['value'] for row in compare_boxes(items, mode) if row['metric'] == metric]
        record = MetricRecord.of_share(SUITE, mode.value, metric, hits, group)
        is_known = served or mode is Mode.COMPAT
        yield record if is_known else replace(record, value=None, low=None, high=None)
    mean_of = partial(MetricRecord.of_mean, SUITE, Mode.STRICT.value)
    yield mean_of('baseline_random_of_class', [1 / item.same_class for item in items], group)
    pairs = [(item.said, item.target) for item in items if item.said and item.target]
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
        rank = partial(expressions.rank_by_clauses, embedder=embedder)
        return expressions.RankingAnswerer(RULE, rank)

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
        named, encoder = self._options.answerer, context.text_encoder
        if named == AUTO:
            objects = context.semantic_map.graph.of_kind(NodeKind.OBJECT)
            is_unnamed = encoder is not None and not any(node.label for node in objects)
            by_text = is_unnamed and expressions.find_featured(context.semantic_map)
            named = FEATURES if by_text else RULE
        if named != FEATURES:
            return rules if named == RULE else super().choose_answerer(context, rules, material)
        if encoder is None:
            raise ConfigError(
                'suite "grounding": answerer "features" needs text features; name a file '
                'under "text_features" of the configuration, or choose "rule"'
            )
        rank = partial(expressions.rank_by_features, encoder=encoder)
        return expressions.RankingAnswerer(FEATURES, rank)
