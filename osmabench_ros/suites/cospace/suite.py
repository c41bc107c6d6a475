"""CoSpace: files of predictions, and answers of maps, or models by images, in any scene."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from osmabench_ros.base.documents import parse_json
from osmabench_ros.errors import OsmabenchError, QuestionError
from osmabench_ros.language.embedding import Embedder
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.suites.cospace import answering
from osmabench_ros.suites.cospace.answering import NUMBERED, PLANNING, Order, Task
from osmabench_ros.suites.cospace.generation import SUITE, panorama_questions, whole_surface
from osmabench_ros.suites.question_suite import (
    RULE,
    AnswererOptions,
    AskedQuestions,
    QuestionSuite,
)
from osmabench_ros.suites.suite import PreparedScene, SuiteContext
from osmabench_ros.vqa.answering.answerer import Answerer, parse_reference
from osmabench_ros.vqa.answering.pictures import encoded
from osmabench_ros.vqa.evaluation import QuestionedMap
from osmabench_ros.vqa.grading import chosen_option
from osmabench_ros.vqa.judging.reading import NUMBER_WORDS, as_number
from osmabench_ros.vqa.published import Published, PublishedRow, read_lines
from osmabench_ros.vqa.questions import LETTERS, Answer, AnswerValue, Question, Verdict
from osmabench_ros.vqa.scores import records

if TYPE_CHECKING:
    import pandas as pd

# Tasks of each file, with the endings of their keys.
_FILES = {
    'direction': ((Task.DIRECTION, ''),),
    'object': ((Task.OBJECT, ''),),
    'counting': ((Task.COUNT, ''),),
    'angle': ((Task.ANGLE, ''),),
    'dif-ang': ((Task.DIFFERENCE, ''),),
    'planning': ((Task.PLACE, '-qa'), (Task.DECISION, '-dec')),
}

# Numbers that a random guess is one of; 1 to 10 gives the 10 % that the paper has for CNT.
_GUESSES = {Task.COUNT: 10, Task.DIFFERENCE: 5}

_WORDS = tuple(NUMBER_WORDS)[:12]
_ALL = 'all'
_LETTER = ('a letter from A to D', '[A-D]')
_KEYS = ('Answer1', 'Answer2')


class _Line(PublishedRow):
    """A line of an annotation or prediction file; planning has two questions a line."""

    index: int
    task: str
    pred: str | None = None
    answer: str | None = None
    options: str = ''
    answer_qa: str | None = Field(None, alias='answer-qa')
    answer_dec: str | None = Field(None, alias='answer-dec')
    options_qa: str = Field('', alias='options-qa')
    options_dec: str = Field('', alias='options-dec')


@dataclass(frozen=True)
class Saved:
    """One question of a file; `answer` is a letter or a number, `said` None without prediction."""

    task: Task
    order: Order
    index: int
    options: tuple[str, ...]
    answer: str
    said: str | None


def read_cospace(paths: Sequence[Path]) -> list[Saved]:
    """Read files of CoSpace, JSON lines with "pred" next to the keys of its annotations.

    Raises QuestionError, which names file and line, also where a question is there twice.
    """
    found: dict[tuple[Task, Order, int], Saved] = {}
    for where, line in (item for path in paths for item in read_lines(_Line, path)):
        name, _, ending = line.task.rpartition('-')
        if ending not in (Order.TURNED.value, Order.SHUFFLED.value):
            name, ending = line.task, Order.CLOCKWISE.value
        if name not in _FILES:
            known = ', '.join(_FILES)
            raise QuestionError(f'{where}: task is "{line.task}"; it must be one of {known}')
        given = line.model_dump(by_alias=True)
        for task, key in _FILES[name]:
            answer = given[f'answer{key}']
            what, form = ('a number', r'\d+') if task in NUMBERED else _LETTER
            if answer is None or not re.fullmatch(form, answer):
                raise QuestionError(f'{where}: "answer{key}" must be {what}, not {answer!r}')
            if (task, Order(ending), line.index) in found:
                raise QuestionError(
                    f'{where}: question {line.index} of {task.value}, order {ending}, is there '
                    'twice; score one prediction at a time'
                )
            # 'A. north B. south'
            options = re.split(r'(?:^|\s+)[A-D]\.\s*', given[f'options{key}'].strip())[1:]
            found[task, Order(ending), line.index] = Saved(
                task, Order(ending), line.index, tuple(options), answer, line.pred
            )
    return list(found.values())


def as_published(task: Task, said: str, answer: str) -> str:
    """Return the answer that the published code reads in a reply, given the right answer.

    Parameters
    ----------
    task : Task
        Decides how the reply is read.
    said : str
        The reply.
    answer : str
        The right answer: a letter or a number.

    Returns
    -------
    str
        Numbers: the first one in digits, else the right one if its word is part of the reply,
        "one" of "none" too, else '-1'. Letters: the right one if it occurs with a dot and
        no other does, nothing readable if others do too, else the last capital letter, of
        any word, or 'E'. Planning: the letter in the JSON of both, or 'E'.
    """
    if task in PLANNING:
        return _parse_plan(said)[PLANNING.index(task)]
    said = said.replace('Answer', '').replace('answer', '')
    if task in NUMBERED:
        if match := re.search(r'\b\d+\b', said):
            return match[0]
        word = _WORDS[int(answer)] if answer in map(str, range(len(_WORDS))) else None
        return answer if word and (word in said or word.capitalize() in said) else '-1'
    if f'{answer}.' in said:
        others = (f'{letter}.' for letter in 'ABCD' if letter != answer)
        return said if any(other in said for other in others) else answer
    return _find_last_capital(said) or 'E'


def _find_last_capital(text: str) -> str:
    found: list[str] = re.findall(r'[A-Z]', text)
    return found[-1] if found else ''


def _parse_plan(said: str) -> tuple[str, str]:
    """Return both letters of a reply in JSON, 'E' where it cannot be read, then for both."""
    try:
        inner = said.split('{', 1)[1].rsplit('}', 1)[0].strip()
        text = '{' + inner.replace("'", '"').replace(':', ': ') + '}'
        data: Any = parse_json(text, 'the reply', QuestionError)
        first, second = (_find_last_capital(data[key]) or str(data[key][0]) for key in _KEYS)
    except (OsmabenchError, IndexError, KeyError, TypeError):
        return 'E', 'E'
    return first, second


def strictly(item: Saved) -> str | None:
    """Return the one answer of a reply, read without the right answer; None if not just one."""
    said = item.said or ''
    if item.task in PLANNING:
        number = 1 + PLANNING.index(item.task)
        match = re.search(
            rf'answer\s*{number}["\']?\s*[:=]\s*["\']?([^"\'\n,}}]+)', said, re.IGNORECASE
        )
        if match is None:
            return None
        said = match[1]
    if item.task in NUMBERED:
        value = as_number(said)
        return None if value is None or value != int(value) else str(int(value))
    chosen = chosen_option(item.options, said)
    return None if chosen is None else 'ABCD'[chosen]


def chance(task: Task, options: Sequence[str]) -> float:
    """Return how often a guess is right: one of the options, or of the usual numbers."""
    return 1 / (len(options) or _GUESSES.get(task, 4))


def compare_replies(saved: Sequence[Saved], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yield whether replies are right, by task and order, and by task where it has several."""
    orders = Counter(task for task, _ in {(item.task, item.order) for item in saved})
    for item in saved:
        order = item.order.value
        read = strictly(item)
        if mode is Mode.COMPAT and item.said is not None:
            read = as_published(item.task, item.said, item.answer)
        yield {
            'task': item.task.value,
            'order': (order, _ALL) if orders[item.task] > 1 else order,
            'index': item.index,
            'answered': item.said is not None,
            'right': read == item.answer,
            'answer': item.answer,
            'chance': chance(item.task, item.options),
        }


def sum_up(group: Mapping[str, str], part: pd.DataFrame) -> dict[str, Any]:
    """Return the metrics of questions, as fractions.

    `accuracy` is None without predictions, and over all orders the published ACC_q;
    `accuracy_pairs`, the published ACC_p, counts items that are right in every order, and is None
    of one order; `majority` and `random` are the scores of the most frequent right answer and of a
    guess among the options.
    """
    answered = int(part['answered'].sum())
    pairs = float(part.groupby('index')['right'].all().mean())
    return {
        'answered': answered,
        'accuracy': float(part['right'].mean()) if answered else None,
        'accuracy_pairs': pairs if answered and group['order'] == _ALL else None,
        'majority': int(part['answer'].value_counts().iloc[0]) / len(part),
        'random': float(part['chance'].mean()),
    }


# Accuracy for each task and order of the images, and over the orders of a task.
PUBLISHED = Published(
    read_cospace,
    compare_replies,
    groups=('task', 'order'),
    unit='questions',
    orders={'task': [task.value for task in Task], 'order': [*(o.value for o in Order), _ALL]},
    sum_up=sum_up,
)


# The answerer that sees the images of the questions, and no map.
IMAGES = 'images'

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
        with closing(prepared.simulated.simulator(answering.HFOV_RAD)) as simulator:
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
        return answering.RuleOfViews(embedder)

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
        questions = given.questions
        answers = given.answers
        verdicts = given.verdicts
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


def _judge_as_published(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> Iterator[Verdict]:
    """Yield verdicts as the published code gives them.

    One question of planning has no JSON of two, and is read as other letters are.
    """
    for item, answer in zip(questions, answers, strict=True):
        task = Task(item.category)
        value = answer.value
        right = LETTERS[item.options.index(str(item.answer))] if item.options else str(item.answer)
        read = as_published(task if task in NUMBERED else Task.DIRECTION, str(value or ''), right)
        correct = value is not None and read == right
        yield Verdict(item.id, correct, 'published', answered=value is not None)


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
    items: dict[str, list[tuple[bool, AnswerValue | None]]] = {}
    for item, answer, verdict in zip(questions, answers, verdicts, strict=True):
        items.setdefault(item.provenance['item'], []).append((verdict.correct, answer.value))
    several = [tuple(zip(*found, strict=True)) for found in items.values() if len(found) > 1]
    alike = [
        len({str(value).strip().lower() for value in values}) == 1
        for _, values in several
        if None not in values
    ]
    share_of = partial(MetricRecord.of_share, SUITE, Mode.STRICT.value)
    yield share_of('accuracy_all_orders', [all(right) for right, _ in several])
    yield share_of('consistency', alike)
