"""Exact questions about what the trajectory saw, answered by rule from the recorded graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import Field

from osmabench_ros.base.files import write_json
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.suites.options import checked_options
from osmabench_ros.suites.question_models import QuestionModelOptions
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.answering.language_model import LanguageModelAnswerer
from osmabench_ros.vqa.answering.rule import RuleAnswerer, label_embedder
from osmabench_ros.vqa.evaluation import Answerer, evaluate_questions
from osmabench_ros.vqa.exact.generation import DEFAULT_COUNT, SUITE, questions_about
from osmabench_ros.vqa.graph_index import THINGS
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge, Judge
from osmabench_ros.vqa.judging.language_model import LanguageModelJudge
from osmabench_ros.vqa.progress import silent
from osmabench_ros.vqa.questions import Question


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
        Questions to generate where the context brings none.
    embedding : EmbeddingUse
        'auto' uses the sentence embedder, if it is installed, for maps that do not speak the
        scene's own label set.
    """

    count: int = Field(DEFAULT_COUNT, ge=1)
    embedding: EmbeddingUse = EmbeddingUse.AUTO


class ExactQuestionsSuite:
    """Accuracy of the answers a recorded scene graph gives, beside baselines and ceiling."""

    name = SUITE

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = checked_options(ExactQuestionOptions, options, self.name)
        self._options.check()

    @property
    def language_models(self) -> tuple[str, ...]:
        """Models that answer or judge."""
        return self._options.language_models

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map the scene's exact questions.

        Writes `questions.jsonl`, `answers.jsonl` and `verdicts.jsonl` to the output directory,
        and `answering.json`, `judging.json` with who did it and how.

        Raises
        ------
        IncompleteError
            If a server failed; what was answered and judged is in the files.
        """
        questions = self._questions(context)
        embedder = self._embedder(context)
        rules, equality = RuleAnswerer(embedder), DeterministicJudge(embedder)
        answerer, judge = self._answerer() or rules, self._judge() or equality
        truth = context.ground_truth
        result = evaluate_questions(
            context.stated_map,
            questions,
            answerer,
            judge,
            reference_answerer=rules,
            reference_judge=equality,
            suite=self.name,
            ceiling_map=ground_truth_map(truth.graph, truth.seen_instances, truth.label_set),
            directory=context.output_directory,
            progress=context.progress or silent,
        )
        if context.output_directory is not None:
            _write_summaries(context.output_directory, answerer, judge)
        return [*result.records, *_unread(self.name, context.stated_map, answerer)]

    def _answerer(self) -> LanguageModelAnswerer | None:
        client = self._options.answering_client()
        if client is None:
            return None
        return LanguageModelAnswerer(client, graph_tokens=self._options.graph_tokens)

    def _judge(self) -> LanguageModelJudge | None:
        client = self._options.judging_client()
        return None if client is None else LanguageModelJudge(client)

    def _questions(self, context: SuiteContext) -> Sequence[Question]:
        given = [item for item in context.questions if item.suite == self.name]
        return given or questions_about(
            context.ground_truth,
            scene=context.scene_name,
            seed=context.seed,
            count=self._options.count,
        )

    def _embedder(self, context: SuiteContext) -> SentenceEmbedder | None:
        use = self._options.embedding
        if use is EmbeddingUse.AUTO:
            return label_embedder(context.semantic_map, context.ground_truth.label_set)
        return SentenceEmbedder() if use is EmbeddingUse.ON else None


def _write_summaries(folder: Path, answerer: Answerer, judge: Judge) -> None:
    answering: dict[str, Any] = {'answerer': answerer.name}
    if isinstance(answerer, LanguageModelAnswerer):
        answering |= answerer.summary
    judging: dict[str, Any] = {'judge': judge.name}
    if isinstance(judge, LanguageModelJudge):
        judging['prompt'] = judge.prompt.identity
    write_json(folder / 'answering.json', answering)
    write_json(folder / 'judging.json', judging)


def _unread(suite: str, semantic_map: SemanticMap, answerer: Answerer) -> list[MetricRecord]:
    """Return the share of nodes that did not fit into the prompts of a language model."""
    if not isinstance(answerer, LanguageModelAnswerer):
        return []
    nodes = sum(node.kind in THINGS for node in semantic_map.graph.nodes)
    share = answerer.dropped_nodes / nodes if nodes else None
    return [MetricRecord(suite, '', 'unread_nodes', '', share, n=nodes, higher_is_better=False)]
