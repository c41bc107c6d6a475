"""Visual grounding on recorded maps: the node that a referring expression means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from osmabench_ros.base.progress import share
from osmabench_ros.base.strict import FilePath
from osmabench_ros.errors import ConfigError
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.grounding.answering import (
    FeaturesOfExpressions,
    Located,
    RuleOfExpressions,
    text_space,
)
from osmabench_ros.suites.grounding.generation import (
    DEFAULT_TARGETS,
    SUITE,
    grounding_questions,
)
from osmabench_ros.suites.grounding.published import expressions_about, read_expressions
from osmabench_ros.suites.grounding.scores import (
    THRESHOLDS,
    Grounded,
    grounded,
    grounding_records,
    share_record,
)
from osmabench_ros.suites.preparing import PreparedScene
from osmabench_ros.suites.question_suite import RULE, AnswererOptions, QuestionSuite
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.answering.answerer import Answerer, AnsweringMaterial
from osmabench_ros.vqa.evaluation import (
    answer_all,
    answered_and_judged,
    reference_answers,
    reference_maps,
)
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.questions import Answer, Question
from osmabench_ros.vqa.scores import unserved_categories

AUTO, FEATURES = 'auto', 'features'
_OWN = (AUTO, RULE, FEATURES)


class GroundingOptions(AnswererOptions):
    """Options of the suite, with those of `AnswererOptions`.

    Parameters
    ----------
    answerer : str
        'rule'; 'features', the cosine of text features; 'auto', features for maps whose method
        names nothing, else rule; or an answerer as in `AnswererOptions`.
    targets : int
        Things to refer to, where the context brings no expressions.
    expressions : Path, optional
        File of ScanRefer or Nr3D, whose expressions about this scene are asked instead.
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
    """Acc@0.25, Acc@0.5, centre distance and rank of what a map takes an expression to mean.

    Class names are '' for all, 'unique' and 'multiple' as in ScanRefer, 'easy' and 'hard' as in
    ReferIt3D, the lengths of the expressions, and the kinds of clues that they give.
    """

    name = SUITE
    options_type = GroundingOptions

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map for the targets of all expressions."""
        questions = self.questions(context)
        if not questions:
            return [MetricRecord(self.name, 'strict', metric) for metric in THRESHOLDS]
        embedder = self.embedder(context)
        rules = RuleOfExpressions(embedder)
        asked = context.published_graph
        answerer = self._answerer(context, rules)
        answers, _ = answered_and_judged(
            asked, questions, answerer, DeterministicJudge(), context.output_directory,
            context.progress,
        )  # fmt: skip
        served = not unserved_categories(asked, questions) >= {q.category for q in questions}
        found = list(grounding_records(_all(questions, answers, asked), applicable=served))
        beside = self._options.made_baselines(AnsweringMaterial(embedder=embedder))
        for metric, other in beside.items():
            given = answer_all(asked, questions, Located(other))
            found += _compared(metric, questions, given, asked)
        rest = share(context.progress, 0.7, 0.9)
        references = reference_maps(context.ground_truth)
        for metric, known, given in reference_answers(references, questions, rules, rest):
            found += _compared(metric, questions, given, known)
        return found

    def questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the expressions of the file, those that were given, or new ones."""
        truth, scene = context.ground_truth, context.scene_name
        if self._options.expressions is not None:
            return expressions_about(truth, scene, read_expressions(self._options.expressions))
        return self.prepared_questions(context) or self._new(truth, scene, context.seed)

    def prepare(self, prepared: PreparedScene) -> list[Question]:
        """Return expressions for the things of a scene, unless those of a file are asked."""
        if self._options.expressions is not None:
            return []
        return self._new(prepared.ground_truth, prepared.key, prepared.seed)

    def _new(self, truth: GroundTruth, scene: str, seed: int) -> list[Question]:
        return grounding_questions(truth, scene=scene, seed=seed, targets=self._options.targets)

    def _answerer(self, context: SuiteContext, rules: Answerer) -> Answerer:
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
        material = AnsweringMaterial(frames=context.frames_directory)
        return Located(self._options.made_answerer(named, material))


def _all(
    questions: Sequence[Question], answers: Sequence[Answer], semantic_map: SemanticMap
) -> list[Grounded]:
    given = {answer.question_id: answer for answer in answers}
    return [grounded(item, given.get(item.id), semantic_map.graph) for item in questions]


def _compared(
    metric: str, questions: Sequence[Question], given: Sequence[Answer], known: SemanticMap
) -> Iterator[MetricRecord]:
    """Yield Acc@0.25 and Acc@0.5 of another map or answerer, over all expressions."""
    found = _all(questions, given, known)
    for name, threshold in THRESHOLDS.items():
        right = [item.iou is not None and item.iou >= threshold for item in found]
        yield share_record(Mode.STRICT, f'{metric}_{name}', '', right)
