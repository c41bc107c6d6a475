"""Exact questions about the visible scene, answered by rule from the recorded graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from osmabench_ros.base.files import write_json
from osmabench_ros.base.strict import validated
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.language.settings import ModelAccess
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.answering.answerer import (
    GRAPH,
    Accountable,
    Answerer,
    Material,
    make_answerer,
    parsed_reference,
)
from osmabench_ros.vqa.answering.language_model import DEFAULT_GRAPH_TOKENS
from osmabench_ros.vqa.answering.rule import label_embedder
from osmabench_ros.vqa.evaluation import (
    QuestionedMap,
    QuestionResult,
    evaluate_questions,
    records_of_summary,
)
from osmabench_ros.vqa.exact.generation import EXACT, SUITE, questions_about
from osmabench_ros.vqa.judging.deterministic import Judge
from osmabench_ros.vqa.judging.language_model import LanguageModelJudge
from osmabench_ros.vqa.questions import Question

RULE, DETERMINISTIC = 'rule', 'deterministic'


class AnswererOptions(ModelAccess):
    """Who answers; the default needs no network.

    It has the keys of `ModelAccess` too, of which a budget is that of one map: when it is used up
    the evaluation stops, and what was answered is kept.

    Parameters
    ----------
    answerer : str
        'rule', a model such as 'openai:qwen3' or 'gemini:gemini-2.5-flash', which reads the graph,
        or another answerer with its model, such as 'tools:openai:qwen3'.
    answerer_options : dict
        Options of that answerer.
    baselines : tuple of str
        Answerers that are asked beside, e.g. 'question_only:openai:qwen3'; the figure of each is
        `baseline_asked_` and its name.
    graph_tokens : int
        Budget of a prompt for the graph; what does not fit is counted.
    """

    answerer: str = RULE
    answerer_options: dict[str, Any] = Field(default_factory=dict)
    baselines: tuple[str, ...] = ()
    graph_tokens: int = Field(DEFAULT_GRAPH_TOKENS, ge=100)

    @field_validator('baselines')
    @classmethod
    def _name_each_once(cls, references: tuple[str, ...]) -> tuple[str, ...]:
        names = {parsed_reference(item)[0] for item in references}
        if len(names) < len(references):
            raise ValueError('name each answerer once, as its figure has its name')
        return references

    def check(self) -> None:
        """Make answerers and models once, so that a wrong name or a missing key is found early."""
        self.made_answerer(self.answerer)
        self.made_baselines(Material())

    def made_answerer(self, reference: str, material: Material | None = None) -> Answerer:
        """Return an answerer with its own account; `material` is what it may use."""
        name, model = parsed_reference(reference)
        options = dict(self.answerer_options) if reference == self.answerer else {}
        if name in (GRAPH, 'caption'):
            options.setdefault('graph_tokens', self.graph_tokens)
        client = self.client_of(model) if model else None
        return make_answerer(name, replace(material or Material(), client=client), options)

    def made_baselines(self, material: Material) -> dict[str, Answerer]:
        """Return the answerers that are asked beside, by the names of their figures."""
        return {
            f'baseline_asked_{parsed_reference(item)[0]}': self.made_answerer(item, material)
            for item in self.baselines
        }

    @property
    def language_models(self) -> tuple[str, ...]:
        """The models that are asked, each once."""
        answering = [parsed_reference(item)[1] for item in (self.answerer, *self.baselines)]
        return tuple(dict.fromkeys(item for item in answering if item))


class QuestionModelOptions(AnswererOptions):
    """Who answers, and who judges.

    Parameters
    ----------
    judge : str
        'deterministic', or a model.
    """

    judge: str = DETERMINISTIC

    def check(self) -> None:
        """Make answerers and models once, so that a wrong name or a missing key is found early."""
        super().check()
        self.judging_client()

    @property
    def language_models(self) -> tuple[str, ...]:
        """The models that are asked, each once."""
        judging = () if self.judge == DETERMINISTIC else (self.judge,)
        return tuple(dict.fromkeys((*super().language_models, *judging)))

    def judging_client(self) -> ModelClient | None:
        """Return the judging model with its own account, None for the rules."""
        return None if self.judge == DETERMINISTIC else self.client_of(self.judge)


class EmbeddingUse(str, Enum):
    """When the sentence embedder may match labels."""

    AUTO = 'auto'
    ON = 'on'
    OFF = 'off'


class ExactQuestionOptions(QuestionModelOptions):
    """Options of the suite, with those of `QuestionModelOptions`.

    Parameters
    ----------
    count : int
        Questions to generate where the context brings none; else 184, or 5 for each object of a
        small scene.
    embedding : EmbeddingUse
        'auto' uses the sentence embedder, if it is installed, for maps that do not speak the
        scene's own label set.
    """

    count: int | None = Field(None, ge=1)
    embedding: EmbeddingUse = EmbeddingUse.AUTO


class ExactQuestionsSuite:
    """Accuracy of the answers a recorded scene graph gives, beside baselines and ceiling."""

    name = SUITE
    asked = EXACT
    """What is asked where the context brings no questions."""

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = validated(ExactQuestionOptions, options, f'suite "{self.name}"')
        self._options.check()

    @property
    def language_models(self) -> tuple[str, ...]:
        """Models that answer or judge."""
        return self._options.language_models

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map the scene's exact questions.

        Writes `questions.jsonl`, `answers.jsonl` and `verdicts.jsonl` to the output directory,
        also where a server failed, which raises IncompleteError; and `answering.json`,
        `judging.json` with who did it and how.
        """
        questions = self.questions(context)
        asked = self.questioned(context)
        material = Material(
            embedder=asked.embedder,
            frames=context.frames_directory,
            question_images=context.question_images,
        )
        answerer = self._options.made_answerer(self._options.answerer, material)
        judge = self._judge() or asked.equality
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
        summary = answerer.summary if isinstance(answerer, Accountable) else {}
        if context.output_directory is not None:
            write_summaries(context.output_directory, answerer.name, summary, judge)
        count = len(questions)
        return [
            *result.records,
            *records_of_summary(self.name, asked.semantic_map, summary, count),
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
        embedder = self._embedder(context)
        return QuestionedMap.in_scene(context.published_graph, context.ground_truth, embedder)

    def _judge(self) -> LanguageModelJudge | None:
        client = self._options.judging_client()
        return None if client is None else LanguageModelJudge(client)

    def questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the questions that were given, else new ones about the ground truth."""
        given = [item for item in context.questions if item.suite == self.name]
        return given or questions_about(
            context.ground_truth,
            scene=context.scene_name,
            seed=context.seed,
            count=self._options.count,
            asked=self.asked,
        )

    def _embedder(self, context: SuiteContext) -> SentenceEmbedder | None:
        use = self._options.embedding
        if use is EmbeddingUse.AUTO:
            return label_embedder(context.semantic_map, context.ground_truth.label_set)
        return SentenceEmbedder() if use is EmbeddingUse.ON else None


def write_summaries(folder: Path, answerer: str, summary: Mapping[str, Any], judge: Judge) -> None:
    """Write who answered and who judged, and how, beside the answers."""
    judging: dict[str, Any] = {'judge': judge.name}
    if isinstance(judge, LanguageModelJudge):
        judging['prompt'] = judge.prompt.identity
    write_json(folder / 'answering.json', {'answerer': answerer, **summary})
    write_json(folder / 'judging.json', judging)
