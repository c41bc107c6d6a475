"""Suites of questions: who answers and judges; exact questions about the visible scene."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from pydantic import Field, field_validator

from osmabench_ros.base.progress import share
from osmabench_ros.language.embedding import Embedder, SentenceEmbedder
from osmabench_ros.language.settings import ModelAccess
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.suites.suite import FigureSuite, SuiteContext
from osmabench_ros.vqa import evaluation
from osmabench_ros.vqa.answering.answerer import (
    Answerer,
    AnsweringMaterial,
    make_answerer,
    parse_reference,
)
from osmabench_ros.vqa.answering.baselines import constant, most_frequent
from osmabench_ros.vqa.answering.language_model import DEFAULT_GRAPH_TOKENS
from osmabench_ros.vqa.answering.rule import RuleAnswerer, label_embedder
from osmabench_ros.vqa.exact.generation import EXACT, SUITE, questions_about
from osmabench_ros.vqa.judging import Judge
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.judging.language_model import LanguageModelJudge
from osmabench_ros.vqa.published import Published
from osmabench_ros.vqa.questions import Answer, Question, Verdict
from osmabench_ros.vqa.scores import find_unserved_categories, records

RULE, DETERMINISTIC = 'rule', 'deterministic'
# Prefix of the metrics of further answerers.
ASKED = 'baseline_asked_'


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
        """Make answerers and judge once, so that a wrong name or a missing key is found early."""
        self.made_answerer(self.answerer)
        self.made_baselines(AnsweringMaterial())
        self.made_judge(DeterministicJudge())

    def made_answerer(self, reference: str, material: AnsweringMaterial | None = None) -> Answerer:
        """Return an answerer that counts its own cost, with its `material`."""
        name, model = parse_reference(reference)
        options = self.answerer_options if reference == self.answerer else {}
        client = self.client_of(model) if model else None
        material = replace(material or AnsweringMaterial(), client=client)
        return make_answerer(name, material, options, graph_tokens=self.graph_tokens)

    def made_baselines(self, material: AnsweringMaterial) -> dict[str, Answerer]:
        """Return the further answerers to ask, by the names of their metrics."""
        return {
            f'{ASKED}{parse_reference(item)[0]}': self.made_answerer(item, material)
            for item in self.baselines
        }

    def made_judge(self, rules: Judge) -> Judge:
        """Return who judges."""
        return rules

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

    @property
    def language_models(self) -> tuple[str, ...]:
        """The models that are asked, each once."""
        judging = () if self.judge == DETERMINISTIC else (self.judge,)
        return tuple(dict.fromkeys((*super().language_models, *judging)))

    def made_judge(self, rules: Judge) -> Judge:
        """Return the judging model, which counts its own cost, or the judge by rule."""
        if self.judge == DETERMINISTIC:
            return rules
        return LanguageModelJudge(self.client_of(self.judge))


OptionsT = TypeVar('OptionsT', bound=AnswererOptions)
Records = Iterable[MetricRecord]


@dataclass(frozen=True, eq=False)
class AskedQuestions:
    """Questions as a map was asked them, and its answers with their verdicts, in one order."""

    context: SuiteContext
    asked: evaluation.QuestionedMap
    material: AnsweringMaterial
    questions: Sequence[Question]
    answers: Sequence[Answer]
    verdicts: Sequence[Verdict]

    @cached_property
    def unserved(self) -> frozenset[str]:
        """Categories that the map holds nothing for."""
        return find_unserved_categories(self.asked.semantic_map, self.questions)


class QuestionSuite(FigureSuite[OptionsT], ABC):
    """A protocol of questions: which there are, who answers by rule, and its metrics.

    A subclass has `name` and `options_type`, and redefines the methods in which it differs. The
    accuracies of baselines and of maps for comparison have its `mode`.
    """

    # Metrics that are not applicable without questions.
    main_metrics: tuple[tuple[Mode, str], ...] = ((Mode.NONE, 'accuracy'),)
    # Published files of the protocol, which the command `score` scores by its name.
    published: Published[Any] | None = None

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        super().__init__(options=options)
        self._options.check()

    @property
    def language_models(self) -> tuple[str, ...]:
        """Models that answer or judge."""
        return self._options.language_models

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map the questions of its scene; without any, nothing applies.

        Writes `questions.jsonl`, `answers.jsonl` and `verdicts.jsonl` to the output directory,
        also where a server failed, which raises IncompleteError; and `answering.json`,
        `judging.json` with who did it and how.
        """
        questions, folder = self.list_questions(context), context.output_directory
        if not questions:
            return [MetricRecord(self.name, mode.value, name) for mode, name in self.main_metrics]
        asked = self.prepare_map(context)
        material = AnsweringMaterial(
            embedder=asked.embedder,
            frames=context.frames_directory,
            question_images=context.question_images,
        )
        answerer = self.choose_answerer(context, asked.rules, material)
        judge = self._options.made_judge(asked.equality)
        put = self.put(questions, self._options.answerer)
        answers = evaluation.answer_and_keep(
            folder, asked.semantic_map, put, answerer, share(context.progress, 0.0, 0.55)
        )
        verdicts = evaluation.judge_and_keep(
            folder, put, answers, judge, share(context.progress, 0.55, 0.65)
        )
        summary = evaluation.summary_of(answerer)
        given = AskedQuestions(context, asked, material, put, answers, verdicts)
        found = [
            *self.score(given),
            *evaluation.records_of_summary(self.name, asked.semantic_map, summary, len(put)),
            *self.compare(given, self.select_compared(questions)),
        ]
        context.progress('scored answers', 1.0)
        return found

    def list_questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the questions of this suite that were prepared with the scene."""
        return [item for item in context.questions if item.suite == self.name]

    def choose_embedder(self, context: SuiteContext) -> Embedder | None:
        """Return the embedder for labels that are not in the words of the scene, or None."""
        return label_embedder(context.semantic_map, context.ground_truth.label_set)

    def prepare_map(self, context: SuiteContext) -> evaluation.QuestionedMap:
        """Return the map of a context in the form that is questioned."""
        embedder = self.choose_embedder(context)
        asked = evaluation.QuestionedMap.in_scene(
            context.published_graph, context.ground_truth, embedder
        )
        return replace(asked, rules=self.make_rules(embedder))

    def make_rules(self, embedder: Embedder | None) -> Answerer:
        """Return the answerer by rule."""
        return RuleAnswerer(embedder)

    def choose_answerer(
        self, context: SuiteContext, rules: Answerer, material: AnsweringMaterial
    ) -> Answerer:
        """Return the answerer of the options, the rules of the suite by default."""
        del context
        named = self._options.answerer
        return rules if named == RULE else self._options.made_answerer(named, material)

    def put(self, questions: Sequence[Question], answerer: str) -> Sequence[Question]:
        """Return the questions as an answerer gets them."""
        del answerer
        return questions

    @abstractmethod
    def score(self, given: AskedQuestions) -> Records:
        """Return the metrics of a map."""

    def select_compared(self, questions: Sequence[Question]) -> Sequence[Question]:
        """Return the questions that baselines and the maps for comparison are asked."""
        return questions

    def make_baselines(self, questions: Sequence[Question]) -> dict[str, list[Answer]]:
        """Return answers without a map, by the names of their metrics."""
        has_options = any(item.options for item in questions)
        first = {'baseline_first_option': constant(questions, 'A')} if has_options else {}
        return first | {'baseline_most_frequent': most_frequent(questions)}

    def compare(self, given: AskedQuestions, questions: Sequence[Question]) -> Records:
        """Yield the metrics of baselines, of further answerers, and of the maps for comparison."""
        others = {
            metric: (other, self.put(questions, metric.removeprefix(ASKED)))
            for metric, other in self._options.made_baselines(given.material).items()
        }
        for metric, known, put, answers, verdicts in evaluation.compare_answers(
            given.asked,
            self.put(questions, RULE),
            self.make_baselines(questions),
            others,
            share(given.context.progress, 0.7, 0.9),
        ):
            asked = replace(given.asked, semantic_map=known)
            yield from self.score_compared(
                metric,
                replace(given, asked=asked, questions=put, answers=answers, verdicts=verdicts),
            )

    def score_compared(self, metric: str, given: AskedQuestions) -> Records:
        """Return the accuracy of answers without a map, or from another one."""
        return records(
            self.name, self.mode.value, metric, given.questions, given.verdicts, answered_too=False
        )


class ExactQuestionOptions(QuestionModelOptions):
    """Options of the suite, in addition to `QuestionModelOptions`.

    Parameters
    ----------
    count : int
        Questions to generate if none were prepared; without it 184, or 5 for each object of a
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
    # The set of questions to ask where the context brings none.
    asked = EXACT

    def list_questions(self, context: SuiteContext) -> Sequence[Question]:
        """Return the questions that were given, else new ones about the ground truth."""
        return super().list_questions(context) or questions_about(
            context.ground_truth,
            scene=context.scene_name,
            seed=context.seed,
            count=self._options.count,
            asked=self.asked,
        )

    def choose_embedder(self, context: SuiteContext) -> Embedder | None:
        """Return what compares labels, as the options want it, if they have it."""
        use = getattr(self._options, 'embedding', 'auto')
        if use == 'auto':
            return super().choose_embedder(context)
        return SentenceEmbedder() if use == 'on' else None

    def score(self, given: AskedQuestions) -> list[MetricRecord]:
        """Return accuracies, overall and by category, of the map, baselines and ceilings."""
        return evaluation.scored(
            given.asked,
            given.questions,
            given.verdicts,
            suite=self.name,
            further=self._options.made_baselines(given.material),
            progress=share(given.context.progress, 0.65, 0.95),
        )

    def compare(self, given: AskedQuestions, questions: Sequence[Question]) -> Records:
        """Return nothing more: `scored` compares."""
        del given, questions
        return ()
