"""CoSpace in any scene: answers of maps, or models by images, on the views around a place."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.suites.cospace.answering import HFOV_RAD, RuleOfViews
from osmabench_ros.suites.cospace.generation import SUITE, panorama_questions, whole_surface
from osmabench_ros.suites.cospace.published import NUMBERED, PUBLISHED, Task, as_published, chance
from osmabench_ros.suites.question_suite import (
    RULE,
    AnswererOptions,
    AskedQuestions,
    QuestionSuite,
)
from osmabench_ros.suites.suite import PreparedScene, SuiteContext
from osmabench_ros.vqa.answering.answerer import Answerer, parse_reference
from osmabench_ros.vqa.answering.baselines import constant
from osmabench_ros.vqa.answering.pictures import encoded
from osmabench_ros.vqa.evaluation import QuestionedMap
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import LETTERS, Answer, Question, Verdict
from osmabench_ros.vqa.scores import records

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
    mode = Mode.STRICT
    main_metrics = ((Mode.STRICT, 'accuracy'), (Mode.COMPAT, 'accuracy'))
    published = PUBLISHED

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

    def make_rules(self, embedder: Embedder | None) -> Answerer:
        """Return the answerer that looks around in the map."""
        return RuleOfViews(embedder)

    def prepare_map(self, context: SuiteContext) -> QuestionedMap:
        """Return the map, with references that hold all surface."""
        asked = super().prepare_map(context)
        # Between the seen points of a sparse sample there are gaps that no map has.
        dense = DenseMap(whole_surface(context.ground_truth))
        references = {name: replace(x, dense=dense) for name, x in asked.references.items()}
        return replace(asked, references=references)

    def put(self, questions: Sequence[Question], answerer: str) -> Sequence[Question]:
        """Return the questions with images, or with words for these."""
        if parse_reference(answerer)[0] == IMAGES:
            return questions
        return [
            replace(
                item, images=(), text=f'{item.text} {item.provenance.get("views", "")}'.rstrip()
            )
            for item in questions
        ]

    def score(self, given: AskedQuestions) -> Iterator[MetricRecord]:
        """Yield accuracies in both modes, over orders of images, and of guesses."""
        questions, answers, verdicts = given.questions, given.answers, given.verdicts
        by_rule = self._options.answerer == RULE
        missing = _ON_POINTS if by_rule and given.asked.semantic_map.dense is None else frozenset()
        left_out = missing | given.unserved
        for mode, found in (
            (Mode.STRICT, verdicts), (Mode.COMPAT, _judge_as_published(questions, answers)),
        ):  # fmt: skip
            yield from records(
                SUITE, mode.value, 'accuracy', questions, found,
                not_applicable=left_out, answered_too=mode is Mode.STRICT,
            )  # fmt: skip
        yield from _score_orders(questions, answers, verdicts)
        yield from _score_guesses(questions)

    def make_baselines(self, questions: Sequence[Question]) -> dict[str, list[Answer]]:
        """Return the first option, and the most frequent answer."""
        first = {'baseline_first_option': constant(questions, 'A')}
        return first | super().make_baselines(questions)


def _judge_as_published(questions: Sequence[Question], answers: Sequence[Answer]) -> list[Verdict]:
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
        yield MetricRecord.of_mean(SUITE, Mode.STRICT.value, 'baseline_random', shares, task)


def _score_orders(
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
        yield MetricRecord.of_share(SUITE, Mode.STRICT.value, metric, outcomes)
