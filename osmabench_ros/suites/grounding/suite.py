"""Visual grounding on recorded maps: the node that a referring expression means."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import FilePath
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.metrics.similarity import cosine_similarity
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.grounding import published
from osmabench_ros.suites.grounding.expressions import (
    DEFAULT_TARGETS,
    SUITE,
    grounding_questions,
    read_expression,
)
from osmabench_ros.suites.grounding.published import THRESHOLDS, compute_published_iou
from osmabench_ros.suites.question_suite import (
    RULE,
    AnswererOptions,
    AskedQuestions,
    QuestionSuite,
)
from osmabench_ros.suites.suite import PreparedScene, SuiteContext, TextEncoder
from osmabench_ros.vqa.answering.answerer import Answerer, AnsweringMaterial, OneByOne
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.grading import numbers_of
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import Answer, Inquiry, Question

Ranking = Callable[[str], Sequence[SceneNode] | None]
"""Returns the objects that an expression may mean, best first; None where it is not understood."""

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

    @property
    def iou(self) -> float:
        """IoU with the target, 0 without an answer."""
        return 0.0 if self.said is None else self.said.iou(self.target)


def list_difficulties(same_class: int) -> tuple[str, ...]:
    """Return 'unique' (ScanRefer), or 'multiple' and 'easy' or 'hard' (ReferIt3D)."""
    if same_class <= 1:
        return ('unique',)
    return 'multiple', 'easy' if same_class <= published.EASY_OBJECTS else 'hard'


def _match(question: Question, answer: Answer, graph: SceneGraph) -> Grounded:
    """Return an answer with the rank of the right node, which has the largest IoU of 0.25 or more.

    An expression of a file has no length.
    """
    assert isinstance(question.answer, tuple)
    target = AxisAlignedBox(*np.array(question.answer, np.float64).reshape(2, 3))
    boxed = [node for node in graph.of_kind(NodeKind.OBJECT) if node.box is not None]
    iou, right = max(((node.known_box.iou(target), -node.id) for node in boxed), default=(0.0, 0))
    ranked = iou >= _SAME and -right in answer.nodes
    count = int(question.provenance['same_class'])
    groups = (*list_difficulties(count), question.provenance.get('length'), question.category)
    return Grounded(
        ('', *filter(None, groups)),
        count,
        target,
        find_box(answer, graph),
        1 + answer.nodes.index(-right) if ranked else None,
    )


def _score_group(group: str, items: Sequence[Grounded], *, served: bool) -> Iterator[MetricRecord]:
    """Yield the metrics of a map in a group of expressions.

    Strict counts expressions without an answer as wrong, unless the map can serve none; compat,
    as the code of ScanRefer, only has those with one in its denominators. Distances are over
    answers with a box, the mean rank over right nodes that were ranked; of the reciprocal rank
    the others count 0.
    """
    share_of = partial(MetricRecord.of_share, SUITE)
    mean_of = partial(MetricRecord.of_mean, SUITE, Mode.STRICT.value)
    pairs = [(item.said, item.target) for item in items if item.said is not None]
    for metric, threshold in THRESHOLDS.items():
        strict = share_of(Mode.STRICT.value, metric, [x.iou >= threshold for x in items], group)
        none = MetricRecord(SUITE, Mode.STRICT.value, metric, group, n=len(items))
        yield strict if served else none
        loose = [compute_published_iou(*pair) >= threshold for pair in pairs]
        yield share_of(Mode.COMPAT.value, metric, loose, group)
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
    targets: int = Field(DEFAULT_TARGETS, ge=1)
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
    published = published.REFERIT3D

    def make_rules(self, embedder: Embedder | None) -> Answerer:
        """Return the answerer that reads the clauses of expressions."""
        return RankingAnswerer(RULE, partial(rank_by_clauses, embedder=embedder))

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
        found = _match_all(given)
        for name, threshold in THRESHOLDS.items():
            right = [item.iou >= threshold for item in found]
            yield MetricRecord.of_share(SUITE, self.mode.value, f'{metric}_{name}', right)

    def list_questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the expressions of the file, those that were given, or new ones."""
        truth, scene = context.ground_truth, context.scene_name
        if self._options.expressions is not None:
            expressions = published.read_expressions(self._options.expressions)
            return published.expressions_about(truth, scene, expressions)
        return super().list_questions(context) or self._generate(truth, scene, context.seed)

    def prepare(self, prepared: PreparedScene) -> list[Question]:
        """Return expressions for the objects of a scene, unless a file has them."""
        if self._options.expressions is not None:
            return []
        return self._generate(prepared.ground_truth, prepared.key, prepared.seed)

    def _generate(self, truth: GroundTruth, scene: str, seed: int) -> list[Question]:
        return grounding_questions(truth, scene=scene, seed=seed, targets=self._options.targets)

    def choose_answerer(
        self, context: SuiteContext, rules: Answerer, material: AnsweringMaterial
    ) -> Answerer:
        """Return the answerer of the options; by default features for maps without names."""
        named, encoder = self._options.answerer, context.text_encoder
        if named == AUTO:
            own = context.semantic_map.graph.of_kind(NodeKind.OBJECT)
            by_text = not any(node.label for node in own) and encoder is not None
            named = FEATURES if by_text and find_text_space(context.semantic_map) else RULE
        if named == RULE:
            return rules
        if named != FEATURES:
            return Located(super().choose_answerer(context, rules, material))
        if encoder is None:
            raise ConfigError(
                'suite "grounding": answerer "features" needs text features; name a file '
                'under "text_features" of the configuration, or choose "rule"'
            )
        return RankingAnswerer(FEATURES, partial(rank_by_features, encoder=encoder))


def _match_all(given: AskedQuestions) -> list[Grounded]:
    graph = given.asked.semantic_map.graph
    answers = {answer.question_id: answer for answer in given.answers}
    return [_match(item, answers[item.id], graph) for item in given.questions]


class RankingAnswerer(OneByOne):
    """Answers with the box of the best object; all ranked ones are the nodes of the answer.

    `rank_map` returns the function that ranks the objects of a map.
    """

    def __init__(self, name: str, rank_map: Callable[[SemanticMap], Ranking]) -> None:
        self.name = name
        self._rank_map = rank_map

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return the answerer with the objects that an expression may mean."""
        rank = self._rank_map(semantic_map)

        def answer_inquiry(item: Inquiry) -> Answer:
            quoted = re.search('"(.+)"', item.text)
            found = rank(quoted[1] if quoted else item.text)
            note = '' if found else 'the map has nothing of this kind'
            if found is None:
                note = 'the wording is not one that the rules know'
            ids = tuple(node.id for node in found or ())
            return locate(Answer(item.id, None, self.name, ids, note), semantic_map.graph)

        return answer_inquiry


def rank_by_clauses(semantic_map: SemanticMap, *, embedder: Embedder | None = None) -> Ranking:
    """Return what counts which clauses of an expression hold for each object of the kind."""
    reader = GraphReader.of_map(semantic_map, embedder)

    def rank(text: str) -> Sequence[SceneNode] | None:
        expression = read_expression(text)
        return None if expression is None else expression.rank_objects(reader)

    return rank


def rank_by_features(semantic_map: SemanticMap, *, encoder: TextEncoder) -> Ranking:
    """Return what ranks objects by the cosine of their features with that of an expression."""
    space = find_text_space(semantic_map)
    nodes = [] if space is None else _select_with_features(semantic_map.graph, space)

    def rank(text: str) -> Sequence[SceneNode]:
        if space is None:
            return ()
        rows: NDArray[np.float32] = space.vectors[[node.feature_row or 0 for node in nodes]]
        alike = cosine_similarity(rows, encoder(space, [text]))[:, 0]
        return [nodes[i] for i in np.argsort(-alike, kind='stable').tolist()]

    return rank


def find_text_space(semantic_map: SemanticMap) -> FeatureSpace | None:
    """Return the feature space with rows for objects and a text encoder."""
    for space in semantic_map.feature_spaces.values():
        if space.text_comparable and _select_with_features(semantic_map.graph, space):
            return space
    return None


def _select_with_features(graph: SceneGraph, space: FeatureSpace) -> list[SceneNode]:
    return [
        node
        for node in graph.of_kind(NodeKind.OBJECT)
        if node.feature_row is not None and node.feature_space == space.name
    ]


def find_box(answer: Answer, graph: SceneGraph) -> AxisAlignedBox | None:
    """Return the box that an answer gives, else the one of the first of its nodes with a box."""
    given = [] if answer.value is None else numbers_of(answer.value)
    if len(given) == 6:
        try:
            return AxisAlignedBox(*np.array(given).reshape(2, 3))
        except ValueError:
            return None
    nodes = (graph.by_id.get(key) for key in answer.nodes)
    return next((node.box for node in nodes if node is not None and node.box is not None), None)


def locate(answer: Answer, graph: SceneGraph) -> Answer:
    """Return an answer with the corners of its box as value, if it has one."""
    box = find_box(answer, graph)
    if box is None:
        return answer
    return replace(answer, value=(*box.minimum.tolist(), *box.maximum.tolist()))


class Located:
    """An answerer that may name a node instead of giving a box. Implements `Answerer`."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self.name = answerer.name

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return the answers with boxes."""
        answers = self._answerer.answer(semantic_map, inquiries, progress)
        return [locate(answer, semantic_map.graph) for answer in answers]
