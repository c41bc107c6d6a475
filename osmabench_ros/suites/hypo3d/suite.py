"""Hypo3D on scenes that change: what a map says after a change that is told or was mapped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from osmabench_ros.base.progress import share
from osmabench_ros.base.strict import FilePath, Strict, validated
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.statistics import wilson_interval
from osmabench_ros.suites.hypo3d.answering import RuleOfChanges
from osmabench_ros.suites.hypo3d.generation import SUITE, Run, same_answer
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.answering.baselines import most_frequent
from osmabench_ros.vqa.answering.rule import label_embedder
from osmabench_ros.vqa.evaluation import (
    answer_all,
    answered_and_judged,
    judge_all,
    reference_maps,
)
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Answer, Question, Verdict, question_id
from osmabench_ros.vqa.scores import records, unserved_categories


class Hypo3DOptions(Strict):
    """Options of the suite.

    Parameters
    ----------
    before : Path, optional
        In a run on a changed scene: questions.jsonl of the scene before the change. Those that
        tell this change are asked without telling it.
    """

    before: FilePath | None = Field(None)


class Hypo3DSuite:
    """Accuracy with a change told, with an irrelevant one told, and on a scene mapped again.

    The figures are of answers by rule. Class names are '' for all, kinds of questions (Scale,
    Direction, Semantic) and types of changes. `staleness` is the share of the answers that a
    change changes on which the old map, not told, is wrong; `hallucination_rate` that of the
    answers that an irrelevant change changes.
    """

    name = SUITE

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = validated(Hypo3DOptions, options, f'suite "{self.name}"')

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map; without questions that were prepared with the scene, nothing applies."""
        questions = self.questions(context)
        if not questions:
            return [MetricRecord(self.name, '', f'accuracy_{Run.TOLD.value}')]
        asked = context.published_graph
        embedder = label_embedder(context.semantic_map, context.ground_truth.label_set)
        rules, judge = RuleOfChanges(embedder), DeterministicJudge(embedder)
        answers, verdicts = answered_and_judged(
            asked, questions, rules, judge, context.output_directory, context.progress
        )
        found = self._accuracies(asked, questions, verdicts)
        found += _hallucinations(questions, answers)
        found += _staleness(questions, answers, judge)
        told = _of(questions, Run.TOLD) or _of(questions, Run.REMAPPED)
        others = {'baseline_most_frequent': most_frequent(told)}
        for number, (metric, reference) in enumerate(reference_maps(context.ground_truth).items()):
            part = share(context.progress, 0.7 + 0.05 * number, 0.75 + 0.05 * number)
            others[metric] = answer_all(reference, told, rules, part)
        for metric, given in others.items():
            by_id = {item.question_id: item for item in judge_all(told, given, judge)}
            found += records(
                self.name, '', metric, told, by_id, by_category=False, answered_too=False
            )
        return found

    def questions(self, context: SuiteContext) -> list[Question]:
        """Return what is asked: prepared questions, or those of `before` about this scene."""
        if self._options.before is None:
            return [item for item in context.questions if item.suite == self.name]
        return [
            replace(
                item,
                id=question_id(self.name, context.scene_name, item.text),
                scene=context.scene_name,
                context_change='',
                provenance={**item.provenance, 'run': Run.REMAPPED.value},
            )
            for item in read_records(self._options.before, Question)
            if item.provenance.get('run') == Run.TOLD.value
            and item.provenance.get('changed_scene') == context.ground_truth.scene
        ]

    def _accuracies(
        self, asked: SemanticMap, questions: Sequence[Question], verdicts: Sequence[Verdict]
    ) -> list[MetricRecord]:
        by_id = {verdict.question_id: verdict for verdict in verdicts}
        unserved = unserved_categories(asked, questions)
        found: list[MetricRecord] = []
        for run in Run:
            part, metric = _of(questions, run), f'accuracy_{run.value}'
            changed = [replace(item, category=item.provenance['change']) for item in part]
            mixed = {item.provenance['change'] for item in part if item.category in unserved}
            left_out = [*unserved, *mixed]
            for group, overall in ((part, True), (changed, False)):
                found += [
                    record
                    for record in records(
                        self.name, '', metric, group, by_id,
                        not_applicable=left_out, answered_too=False,
                    )
                    if part and (overall or record.class_name)
                ]  # fmt: skip
        return found


def _of(questions: Sequence[Question], run: Run) -> list[Question]:
    return [item for item in questions if item.provenance['run'] == run.value]


def _hallucinations(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> Iterator[MetricRecord]:
    """Yield the share of answers that an irrelevant change flips."""
    given = {answer.question_id: answer.value for answer in answers}
    plain = {item.provenance['item']: item for item in _of(questions, Run.UNCHANGED)}
    flips = []
    for item in _of(questions, Run.IRRELEVANT):
        before = plain.get(item.provenance['item'])
        was = None if before is None else given.get(before.id)
        if was is not None:
            now = given.get(item.id)
            flips.append(now is None or not same_answer(was, now, item.tolerance))
    yield from _share('hallucination_rate', flips)


def _staleness(
    questions: Sequence[Question], answers: Sequence[Answer], judge: DeterministicJudge
) -> Iterator[MetricRecord]:
    """Yield the share of changed answers on which a map that knows no change is wrong."""
    given = {answer.question_id: answer for answer in answers}
    plain = {item.provenance['item']: item for item in _of(questions, Run.UNCHANGED)}
    pairs: list[tuple[Question, Answer | None]] = [
        (item, replace(given[before.id], question_id=item.id))
        for item in _of(questions, Run.TOLD)
        if item.provenance['affected'] == 'yes'
        and (before := plain.get(item.provenance['item'])) is not None
        and given[before.id].value is not None
    ]
    yield from _share('staleness', [not verdict.correct for verdict in judge.judge(pairs)])


def _share(metric: str, outcomes: Sequence[bool]) -> Iterator[MetricRecord]:
    hits, total = sum(outcomes), len(outcomes)
    low, high = wilson_interval(hits, total)
    value = hits / total if total else None
    yield MetricRecord(SUITE, '', metric, '', value, low, high, total, higher_is_better=False)
