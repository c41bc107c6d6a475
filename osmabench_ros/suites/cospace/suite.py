"""CoSpace in any scene: answers of maps, or models by images, on the views around a place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from osmabench_ros.base.progress import share
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.suites.cospace.answering import HFOV_RAD, RuleOfViews
from osmabench_ros.suites.cospace.generation import SUITE, panorama_questions, whole_surface
from osmabench_ros.suites.cospace.published import NUMBERED, Task, as_published, chance
from osmabench_ros.suites.question_suite import RULE, AnswererOptions, QuestionSuite
from osmabench_ros.suites.suite import PreparedScene, SuiteContext
from osmabench_ros.vqa.answering.answerer import Answerer, AnsweringMaterial, parse_reference
from osmabench_ros.vqa.answering.baselines import constant, most_frequent
from osmabench_ros.vqa.answering.pictures import encoded
from osmabench_ros.vqa.evaluation import (
    answer_all,
    answer_and_judge,
    judge_all,
    reference_answers,
    reference_maps,
)
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.questions import LETTERS, Answer, Question, Verdict
from osmabench_ros.vqa.scores import find_unserved_categories, records

IMAGES = 'images'
"""The answerer that sees the images of the questions, and no map."""

_ON_POINTS = frozenset((Task.COUNT.value, Task.DECISION.value))


class CoSpaceSuite(QuestionSuite[AnswererOptions]):
    """Accuracy of answers about the views around places of the path, by task.

    Maps are asked without the images, by the place and, of rotation tasks, by the objects in the
    images; the answerer 'images' sees the images. `compat` reads answers as the published
    code does, `strict` without the right answer. `accuracy_all_orders` is the fraction of items
    that are right in every order of their images, `consistency` of items with one answer in all.
    """

    name = SUITE
    options_type = AnswererOptions

    def prepare(self, prepared: PreparedScene) -> list[Question]:
        """Ask about the views around places of the path; a recorded scene has none."""
        if prepared.simulated is None:
            return []
        prepared.progress('rendering views around places', 0.0)
        with closing(prepared.simulated.simulator(HFOV_RAD)) as simulator:
            simulator.set_lighting(Lighting.unlit())
            found, images = panorama_questions(
                prepared.ground_truth, simulator.render, scene_key=prepared.key, seed=prepared.seed
            )
        for name, image in images.items():
            file = prepared.directory / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(encoded(image).data)
        return found

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Ask one map; without questions that were prepared with the scene, nothing applies."""
        questions = self.prepared_questions(context)
        if not questions:
            return [MetricRecord(self.name, mode.value, 'accuracy') for mode in _MODES]
        asked = context.published_graph
        embedder = self.embedder(context)
        rules, judge = RuleOfViews(embedder), DeterministicJudge(embedder)
        material = self.material(context, embedder)
        named, answerer = self._options.answerer, self.answerer(rules, material)
        put = _as_put(questions, named)
        answers, verdicts = answer_and_judge(
            asked, put, answerer, judge, context.output_directory, context.progress
        )
        missing = _ON_POINTS if asked.dense is None and named == RULE else frozenset()
        left_out = missing | find_unserved_categories(asked, put)

        def rows(metric: str, found: Sequence[Verdict], mode: Mode) -> list[MetricRecord]:
            is_asked_map = metric == 'accuracy'
            return records(
                self.name, mode.value, metric, put, found,
                not_applicable=left_out if is_asked_map else (),
                answered_too=is_asked_map and mode is Mode.STRICT,
            )  # fmt: skip

        found = rows('accuracy', verdicts, Mode.STRICT)
        found += rows('accuracy', _as_published(put, answers), Mode.COMPAT)
        found += _over_orders(put, answers, verdicts)
        found += _score_guesses(questions)
        for metric, given in self._others(context, questions, rules, material).items():
            found += rows(metric, judge_all(put, given, judge), Mode.STRICT)
        return found

    def _others(
        self,
        context: SuiteContext,
        questions: Sequence[Question],
        rules: Answerer,
        material: AnsweringMaterial,
    ) -> dict[str, list[Answer]]:
        """Return the answers of baselines and of perfect maps, by the names of their metrics."""
        given = {
            'baseline_first_option': constant(questions, 'A'),
            'baseline_most_frequent': most_frequent(questions),
        }
        for metric, other in self._options.made_baselines(material).items():
            put = _as_put(questions, metric.removeprefix('baseline_asked_'))
            given[metric] = answer_all(context.published_graph, put, other)
        truth, put = context.ground_truth, _as_put(questions, RULE)
        # Between the seen points of a sparse sample there are gaps that no map has.
        dense = DenseMap(whole_surface(truth))
        references = {
            metric: replace(known, dense=dense) for metric, known in reference_maps(truth).items()
        }
        rest = share(context.progress, 0.7, 0.9)
        of_references = reference_answers(references, put, rules, rest)
        return given | {metric: answers for metric, _, answers in of_references}


_MODES = (Mode.STRICT, Mode.COMPAT)


def _as_put(questions: Sequence[Question], answerer: str) -> list[Question]:
    """Return the questions as an answerer gets them: with images, or with words for these."""
    if parse_reference(answerer)[0] == IMAGES:
        return list(questions)
    return [
        replace(item, images=(), text=' '.join(filter(None, (item.text, views))))
        for item in questions
        for views in (item.provenance.get('views', ''),)
    ]


def _as_published(questions: Sequence[Question], answers: Sequence[Answer]) -> list[Verdict]:
    """Return verdicts as the published code gives them.

    One question of planning has no JSON of two, and is read as other letters are.
    """
    given = {answer.question_id: answer.value for answer in answers}
    found = []
    for item in questions:
        task, value = Task(item.category), given[item.id]
        right = LETTERS[item.options.index(str(item.answer))] if item.options else str(item.answer)
        read = as_published(task if task in NUMBERED else Task.DIRECTION, str(value or ''), right)
        answered = value is not None
        correct = answered and read == right
        found.append(Verdict(item.id, correct, 'published', answered=answered))
    return found


def _score_guesses(questions: Sequence[Question]) -> Iterator[MetricRecord]:
    """Yield the expected accuracy of a guess among the options, over all questions and by task."""
    for task in ('', *dict.fromkeys(item.category for item in questions)):
        own = [item for item in questions if task in ('', item.category)]
        shares = [chance(Task(item.category), item.options) for item in own]
        value = sum(shares) / len(shares)
        yield MetricRecord(SUITE, Mode.STRICT.value, 'baseline_random', task, value, n=len(shares))


def _over_orders(
    questions: Sequence[Question], answers: Sequence[Answer], verdicts: Sequence[Verdict]
) -> Iterator[MetricRecord]:
    """Yield the shares of items that are right, and answered alike, in all orders of images."""
    correct = {verdict.question_id: verdict.correct for verdict in verdicts}
    given = {answer.question_id: answer.value for answer in answers}
    items: dict[str, list[str]] = {}
    for item in questions:
        items.setdefault(item.provenance['item'], []).append(item.id)
    several = [ids for ids in items.values() if len(ids) > 1]
    right = [all(correct[key] for key in ids) for ids in several]
    alike = [
        len({str(given[key]).strip().lower() for key in ids}) == 1
        for ids in several
        if all(given[key] is not None for key in ids)
    ]
    for metric, outcomes in (('accuracy_all_orders', right), ('consistency', alike)):
        hits, total = sum(outcomes), len(outcomes)
        yield MetricRecord.of_share(SUITE, Mode.STRICT.value, metric, hits, total)
