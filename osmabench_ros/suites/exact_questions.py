"""Exact questions about the visible scene, answered by rule from the recorded graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.suites.question_suite import (
    QuestionModelOptions,
    QuestionSuite,
    written_summary,
)
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.evaluation import (
    QuestionedMap,
    QuestionResult,
    evaluate_questions,
    records_of_summary,
)
from osmabench_ros.vqa.exact.generation import EXACT, SUITE, questions_about
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import Question


class ExactQuestionOptions(QuestionModelOptions):
    """Options of the suite, with those of `QuestionModelOptions`.

    Parameters
    ----------
    count : int
        Questions to generate where the context brings none; else 184, or 5 for each object of a
        small scene.
    embedding : {'auto', 'on', 'off'}
        Whether the sentence embedder may match labels; 'auto' uses it, if it is installed, for
        maps that do not speak the scene's own label set.
    """

    count: int | None = Field(None, ge=1)
    embedding: Literal['auto', 'on', 'off'] = 'auto'


class ExactQuestionsSuite(QuestionSuite[Any]):
    """Accuracy of the answers a recorded scene graph gives, beside baselines and ceiling."""

    name = SUITE
    options_type: Any = ExactQuestionOptions
    asked = EXACT
    """What is asked where the context brings no questions."""

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map the scene's exact questions.

        Writes `questions.jsonl`, `answers.jsonl` and `verdicts.jsonl` to the output directory,
        also where a server failed, which raises IncompleteError; and `answering.json`,
        `judging.json` with who did it and how.
        """
        questions = self.questions(context)
        asked = self.questioned(context)
        material = self.material(context, asked.embedder)
        answerer = self._options.made_answerer(self._options.answerer, material)
        judge = self._options.made_judge(asked.equality)
        result = evaluate_questions(
            asked,
            questions,
            answerer,
            judge,
            suite=self.name,
            directory=context.output_directory,
            beside=self._options.made_baselines(material),
            progress=context.progress,
        )
        summary = written_summary(context.output_directory, answerer, judge)
        return [
            *result.records,
            *records_of_summary(self.name, asked.semantic_map, summary, len(questions)),
            *self.further(context, questions, result),
        ]

    def further(
        self, context: SuiteContext, questions: Sequence[Question], result: QuestionResult
    ) -> list[MetricRecord]:
        """Return figures of a suite's own."""
        del context, questions, result
        return []

    def questioned(self, context: SuiteContext) -> QuestionedMap:
        """Return the map of a context in the form that is questioned."""
        embedder = self.embedder(context)
        return QuestionedMap.in_scene(context.published_graph, context.ground_truth, embedder)

    def questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the questions that were given, else new ones about the ground truth."""
        return self.prepared_questions(context) or questions_about(
            context.ground_truth,
            scene=context.scene_name,
            seed=context.seed,
            count=self._options.count,
            asked=self.asked,
        )

    def embedder(self, context: SuiteContext) -> Embedder | None:
        """Return what compares labels, as the options want it."""
        use = self._options.embedding
        if use == 'auto':
            return super().embedder(context)
        return SentenceEmbedder() if use == 'on' else None
