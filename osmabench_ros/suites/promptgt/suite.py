"""PromptGT questions: how well a scene meets its specification, and a map the scene."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from osmabench_ros.base.strict import FilePath
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.scenes.specification import (
    FactKind,
    SceneSpecification,
    facts,
    read_specification,
)
from osmabench_ros.suites.exact_questions import ExactQuestionsSuite
from osmabench_ros.suites.promptgt.published import BLOCK_OF, read_questions
from osmabench_ros.suites.question_suite import QuestionModelOptions, QuestionSuite
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.evaluation import QuestionResult, answer_all, judge_all
from osmabench_ros.vqa.exact.prompt_ground_truth import PROMPTGT, SUITE, promptgt_questions
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.questions import Question
from osmabench_ros.vqa.scores import records


class PromptGtOptions(QuestionModelOptions):
    """Options of the suite, with those of `QuestionModelOptions`.

    Parameters
    ----------
    specifications : Path, optional
        Folder with SCENE.yaml for scenes that do not bring their specification.
    questions : Path, optional
        Folder with SCENE_questions.json of OSMa-Bench++, asked in place of our own.
    """

    specifications: FilePath | None = None
    questions: FilePath | None = None


class PromptGtSuite(ExactQuestionsSuite):
    """Accuracy on PromptGT questions, and apart from it the fidelity of the scene to its prompt.

    `fidelity` is the share of what the specification says that the whole scene holds, by kind of
    fact. `accuracy_faithful` (strict) is over the questions that the whole scene answers as the
    prompt does, so that a map is not blamed for the scene; `accuracy_block` (compat) has the
    categories as OSMa-Bench++ compares them, existence counted as relations.
    """

    name = SUITE
    options_type = PromptGtOptions
    asked = PROMPTGT

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map; a scene without specification or questions has no figures."""
        if not self.questions(context):
            names = ('accuracy', 'fidelity')
            return [MetricRecord.not_applicable(SUITE, '', name) for name in names]
        return super().evaluate(context)

    def questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the questions of a file, or those of the specification."""
        folder = self._options.questions
        if folder is not None:
            file = Path(folder) / f'{context.ground_truth.scene}_questions.json'
            return read_questions(file) if file.is_file() else []
        wanted = self._specification(context)
        if wanted is None:
            return []
        return promptgt_questions(wanted, scene=context.scene_name, seed=context.seed)

    def _specification(self, context: SuiteContext) -> SceneSpecification | None:
        folder, truth = self._options.specifications, context.ground_truth
        file = None if folder is None else Path(folder) / f'{truth.scene}.yaml'
        if file is not None and file.is_file():
            return read_specification(file)
        return truth.specification

    def embedder(self, context: SuiteContext) -> Embedder | None:
        """Return what compares labels; the suite has no option for it."""
        return QuestionSuite.embedder(self, context)

    def further(
        self, context: SuiteContext, questions: Sequence[Question], result: QuestionResult
    ) -> list[MetricRecord]:
        """Return accuracy on what the scene holds, by blocks, and the fidelity of the scene."""
        truth = context.ground_truth
        whole = ground_truth_map(truth.graph, list(truth.graph.by_id), truth.label_set)
        given = judge_all(
            questions, answer_all(whole, questions, RuleAnswerer()), DeterministicJudge()
        )
        right = {item.question_id for item in given if item.correct}
        faithful = [item for item in questions if item.id in right]
        verdicts = result.verdicts
        blocks = [replace(q, category=BLOCK_OF.get(q.category, q.category)) for q in questions]
        found = records(
            SUITE, Mode.STRICT.value, 'accuracy_faithful', faithful, verdicts, answered_too=False
        )
        found += [
            record
            for record in records(
                SUITE, Mode.COMPAT.value, 'accuracy_block', blocks, verdicts, answered_too=False
            )
            if record.class_name
        ]
        wanted = self._specification(context)
        return [*found, *(() if wanted is None else fidelity_records(wanted, context))]


def fidelity_records(wanted: SceneSpecification, context: SuiteContext) -> Iterator[MetricRecord]:
    """Yield the share of facts of a specification that the whole scene holds, and by kind."""
    held = list(facts(wanted, context.ground_truth.graph))
    for kind in (None, *FactKind):
        own = [fact.holds for fact in held if kind in (None, fact.kind)]
        if own:
            name = '' if kind is None else kind.value
            yield MetricRecord.of_share(SUITE, '', 'fidelity', sum(own), len(own), name)
