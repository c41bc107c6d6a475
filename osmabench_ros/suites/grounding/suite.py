"""Visual grounding on recorded maps: the node that a referring expression means."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import FilePath
from osmabench_ros.errors import ConfigError
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.metrics.similarity import cosine_similarity
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.grounding.expressions import (
    ExpressionReader,
    quoted,
    read_expression,
)
from osmabench_ros.suites.grounding.generation import (
    DEFAULT_TARGETS,
    SUITE,
    grounding_questions,
)
from osmabench_ros.suites.grounding.published import (
    REFERIT3D,
    THRESHOLDS,
    Grounded,
    expressions_about,
    grounded,
    grounding_records,
    read_expressions,
)
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
from osmabench_ros.vqa.questions import Answer, AnswerValue, Inquiry, Question

Ranking = Callable[[str], Sequence[SceneNode] | None]
"""Returns the things that an expression may mean, best first; None where it is not understood."""
AUTO, FEATURES = 'auto', 'features'
_OWN = (AUTO, RULE, FEATURES)


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
    published = REFERIT3D

    def make_rules(self, embedder: Embedder | None) -> Answerer:
        """Return the answerer that reads the clauses of expressions."""
        return RuleOfExpressions(embedder)

    def score(self, given: AskedQuestions) -> Iterator[MetricRecord]:
        """Yield the metrics of the map, over all expressions and by group."""
        graph = given.asked.semantic_map.graph
        served = not given.unserved >= {item.category for item in given.questions}
        found = _grade_all(given.questions, given.answers, graph)
        yield from grounding_records(found, applicable=served)

    def make_baselines(self, questions: Sequence[Question]) -> dict[str, list[Answer]]:
        """Return nothing: no answer without a map has a box."""
        del questions
        return {}

    def score_compared(self, metric: str, given: AskedQuestions) -> Iterator[MetricRecord]:
        """Yield Acc@0.25 and Acc@0.5 of another map or answerer, over all expressions."""
        graph = given.asked.semantic_map.graph
        found = _grade_all(given.questions, [located(x, graph) for x in given.answers], graph)
        for name, threshold in THRESHOLDS.items():
            right = [item.iou is not None and item.iou >= threshold for item in found]
            yield MetricRecord.of_share(SUITE, self.mode.value, f'{metric}_{name}', right)

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
        return grounding_questions(truth, scene=scene, seed=seed, targets=self._options.targets)

    def choose_answerer(
        self, context: SuiteContext, rules: Answerer, material: AnsweringMaterial
    ) -> Answerer:
        """Return the answerer of the options; by default features for maps without names."""
        named = self._options.answerer
        if named == AUTO:
            own = context.semantic_map.graph.of_kind(NodeKind.OBJECT)
            by_text = not any(node.label for node in own) and context.text_encoder is not None
            named = FEATURES if by_text and text_space(context.semantic_map) else RULE
        if named == RULE:
            return rules
        if named == FEATURES:
            if context.text_encoder is None:
                raise ConfigError(
                    'suite "grounding": answerer "features" needs text features; name a file '
                    'under "text_features" of the configuration, or choose "rule"'
                )
            return FeaturesOfExpressions(context.text_encoder)
        return Located(super().choose_answerer(context, rules, material))


def _grade_all(
    questions: Sequence[Question], answers: Sequence[Answer], graph: SceneGraph
) -> list[Grounded]:
    given = {answer.question_id: answer for answer in answers}
    return [grounded(item, given.get(item.id), graph) for item in questions]


class RankingAnswerer(OneByOne):
    """Answers with the box of the best object; all ranked ones are the nodes of the answer."""

    @abstractmethod
    def ranking(self, semantic_map: SemanticMap) -> Ranking:
        """Return the function that ranks the objects of a map."""

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return the answerer with the objects that an expression may mean."""
        ranking = self.ranking(semantic_map)

        def answered(item: Inquiry) -> Answer:
            found = ranking(quoted(item.text))
            note = 'the wording is not one that the rules know' if found is None else ''
            ids = tuple(node.id for node in found or ())
            note = note or ('' if ids else 'the map has nothing of this kind')
            return located(Answer(item.id, None, self.name, ids, note), semantic_map.graph)

        return answered


class RuleOfExpressions(RankingAnswerer):
    """Reads the clauses of an expression, and counts which hold for each object of the kind.

    Implements `Answerer`.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def ranking(self, semantic_map: SemanticMap) -> Ranking:
        """Return the function that ranks the objects of a map by rule."""
        reader = ExpressionReader(GraphReader.of_map(semantic_map, self._embedder))

        def ranked(text: str) -> Sequence[SceneNode] | None:
            expression = read_expression(text)
            return None if expression is None else reader.ranked(expression)

        return ranked


class FeaturesOfExpressions(RankingAnswerer):
    """Ranks objects by the cosine of their features with the text feature of the expression.

    Implements `Answerer`.
    """

    name = 'features'

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder

    def ranking(self, semantic_map: SemanticMap) -> Ranking:
        """Return the function that ranks the objects of a map by features."""
        space = text_space(semantic_map)
        nodes = [] if space is None else _select_with_features(semantic_map.graph, space)

        def ranked(text: str) -> Sequence[SceneNode]:
            if space is None or not nodes:
                return ()
            rows: NDArray[np.float32] = space.vectors[[node.feature_row or 0 for node in nodes]]
            alike = cosine_similarity(rows, self._encoder(space, [text]))[:, 0]
            return [nodes[i] for i in np.argsort(-alike, kind='stable').tolist()]

        return ranked


def text_space(semantic_map: SemanticMap) -> FeatureSpace | None:
    """Return the feature space with rows for objects and a text encoder."""
    spaces = semantic_map.feature_spaces.values()
    comparable = (space for space in spaces if space.text_comparable)
    return next(
        (space for space in comparable if _select_with_features(semantic_map.graph, space)), None
    )


def _select_with_features(graph: SceneGraph, space: FeatureSpace) -> list[SceneNode]:
    return [
        node
        for node in graph.of_kind(NodeKind.OBJECT)
        if node.feature_row is not None and node.feature_space == space.name
    ]


def located(answer: Answer, graph: SceneGraph) -> Answer:
    """Return an answer with its own box, else with the box of the first of its nodes."""
    value: AnswerValue | None = answer.value
    given = () if value is None else tuple(numbers_of(value))
    boxes = (graph.by_id[key].box for key in answer.nodes if key in graph.by_id)
    box = next((box for box in boxes if box is not None), None)
    if len(given) == 6:
        value = given
    elif box is not None:
        value = (*box.minimum.tolist(), *box.maximum.tolist())
    return replace(answer, value=value)


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
        return [located(answer, semantic_map.graph) for answer in answers]
