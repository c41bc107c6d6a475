"""Suites of questions: who answers and judges; exact questions about the visible scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field, field_validator

from osmabench_ros.base.files import write_json
from osmabench_ros.base.strict import validated
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.language.settings import ModelAccess
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.answering.answerer import (
    GRAPH,
    Answerer,
    AnsweringMaterial,
    make_answerer,
    parse_reference,
)
from osmabench_ros.vqa.answering.language_model import DEFAULT_GRAPH_TOKENS
from osmabench_ros.vqa.answering.rule import label_embedder
from osmabench_ros.vqa.evaluation import (
    QuestionedMap,
    QuestionResult,
    evaluate_questions,
    records_of_summary,
    summary_of,
    write_judging,
)
from osmabench_ros.vqa.exact.generation import EXACT, SUITE, questions_about
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge, Judge
from osmabench_ros.vqa.judging.language_model import LanguageModelJudge
from osmabench_ros.vqa.questions import Question

RULE, DETERMINISTIC = 'rule', 'deterministic'


class AnswererOptions(ModelAccess):
    """Who answers; the default needs no network.

    It has the keys of `ModelAccess` too; a budget is for one map: when it is used up
    the evaluation stops, and its answers are kept.

    Parameters
    ----------
    answerer : str
        'rule', a model such as 'openai:qwen3' or 'gemini:gemini-2.5-flash', which reads the graph,
        or another answerer with its model, such as 'tools:openai:qwen3'.
    answerer_options : dict
        Options of that answerer.
    baselines : tuple of str
        Further answerers to ask, e.g. 'question_only:openai:qwen3'; the metric of each is
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
        names = {parse_reference(item)[0] for item in references}
        if len(names) < len(references):
            raise ValueError('name each answerer once, as its metric has its name')
        return references

    def check(self) -> None:
        """Make answerers and models once, so that a wrong name or a missing key is found early."""
        self.made_answerer(self.answerer)
        self.made_baselines(AnsweringMaterial())

    def made_answerer(self, reference: str, material: AnsweringMaterial | None = None) -> Answerer:
        """Return an answerer with its own account and its `material`."""
        name, model = parse_reference(reference)
        options = dict(self.answerer_options) if reference == self.answerer else {}
        if name in (GRAPH, 'caption'):
            options.setdefault('graph_tokens', self.graph_tokens)
        client = self.client_of(model) if model else None
        return make_answerer(
            name, replace(material or AnsweringMaterial(), client=client), options
        )

    def made_baselines(self, material: AnsweringMaterial) -> dict[str, Answerer]:
        """Return the further answerers to ask, by the names of their metrics."""
        return {
            f'baseline_asked_{parse_reference(item)[0]}': self.made_answerer(item, material)
            for item in self.baselines
        }

    @property
    def language_models(self) -> tuple[str, ...]:
        """The models that are asked, each once."""
        answering = [parse_reference(item)[1] for item in (self.answerer, *self.baselines)]
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
        self.made_judge(DeterministicJudge())

    @property
    def language_models(self) -> tuple[str, ...]:
        """The models that are asked, each once."""
        judging = () if self.judge == DETERMINISTIC else (self.judge,)
        return tuple(dict.fromkeys((*super().language_models, *judging)))

    def made_judge(self, rules: Judge) -> Judge:
        """Return the judging model with its own account, or `rules`, which need none."""
        if self.judge == DETERMINISTIC:
            return rules
        return LanguageModelJudge(self.client_of(self.judge))


OptionsT = TypeVar('OptionsT', bound=AnswererOptions)


class QuestionSuite(Generic[OptionsT]):
    """A suite that asks a map questions; `name` and `options_type` are its own."""

    name: str
    options_type: type[OptionsT]

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = validated(self.options_type, options, f'suite "{self.name}"')
        self._options.check()

    @property
    def language_models(self) -> tuple[str, ...]:
        """Models that answer or judge."""
        return self._options.language_models

    def prepared_questions(self, context: SuiteContext) -> list[Question]:
        """Return the questions of this suite that were prepared with the scene."""
        return [item for item in context.questions if item.suite == self.name]

    def embedder(self, context: SuiteContext) -> Embedder | None:
        """Return the embedder that compares labels of a map in other words than the scene's."""
        return label_embedder(context.semantic_map, context.ground_truth.label_set)

    def material(self, context: SuiteContext, embedder: Embedder | None) -> AnsweringMaterial:
        """Return what answerers may use."""
        return AnsweringMaterial(
            embedder=embedder,
            frames=context.frames_directory,
            question_images=context.question_images,
        )

    def answerer(self, rules: Answerer, material: AnsweringMaterial) -> Answerer:
        """Return the answerer of the options, the rules of the suite by default."""
        named = self._options.answerer
        return rules if named == RULE else self._options.made_answerer(named, material)


def written_summary(folder: Path | None, answerer: Answerer, judge: Judge) -> dict[str, Any]:
    """Return how an answerer answered; write it next to the answers, and who judged."""
    summary = summary_of(answerer)
    if folder is not None:
        write_json(folder / 'answering.json', {'answerer': answerer.name, **summary})
        write_judging(folder, judge)
    return summary


class ExactQuestionOptions(QuestionModelOptions):
    """Options of the suite, in addition to `QuestionModelOptions`.

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
    """Accuracy of the answers of a recorded scene graph, with baselines and ceilings."""

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
        """Return further metrics of a suite."""
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
