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

from osmabench_ros.base.documents import parse_json
from osmabench_ros.errors import OsmabenchError, QuestionError
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.suites.cospace import answering
from osmabench_ros.suites.cospace.answering import TASKS, Order, Task, TaskRow
from osmabench_ros.suites.cospace.generation import SUITE, panorama_questions, whole_surface
from osmabench_ros.suites.question_suite import (
    RULE,
    AnswererOptions,
    AskedQuestions,
    QuestionSuite,
)
from osmabench_ros.suites.suite import PreparedScene, SuiteContext
from osmabench_ros.vqa.answering.answerer import parse_reference
from osmabench_ros.vqa.answering.pictures import encoded
from osmabench_ros.vqa.evaluation import QuestionedMap
from osmabench_ros.vqa.grading import chosen_option
from osmabench_ros.vqa.judging.reading import NUMBER_WORDS, as_number
from osmabench_ros.vqa.published import Published, PublishedRow, read_lines
from osmabench_ros.vqa.questions import LETTERS, Answer, AnswerValue, Question
from osmabench_ros.vqa.scores import records

if TYPE_CHECKING:
    import pandas as pd

_FILES = tuple(dict.fromkeys(task.file for task in TASKS.values()))
_FILE = re.compile(rf'({"|".join(_FILES)})(?:-({Order.TURNED.value}|{Order.SHUFFLED.value}))?')
# Endings of the keys of a task, by its part in the file.
_ENDINGS = ('', '-qa', '-dec')
# The published code reads no larger number that is a word.
_WORDS = {str(number): word for word, number in NUMBER_WORDS.items() if number < 12}
_ALL = 'all'
_LETTER = ('a letter from A to D', '[A-D]')


class _Line(PublishedRow, alias_generator=lambda name: name.replace('_', '-')):
    """A line of an annotation or prediction file; planning has two questions a line."""

    index: int
    task: str
    pred: str | None = None
    answer: str | None = None
    options: str = ''
    answer_qa: str | None = None
    answer_dec: str | None = None
    options_qa: str = ''
    options_dec: str = ''


@dataclass(frozen=True)
class Saved:
    """One question with the reply to it, `said`, None without; `answer` is a letter or a number.

    `index` is the item, equal in all orders of its images. With a `part` the reply has the answers
    to two questions in JSON, of which this is the first or the second.
    """

    task: TaskRow
    order: Order
    index: int | str
    options: tuple[str, ...]
    answer: str
    said: str | None
    part: int = 0


def read_cospace(paths: Sequence[Path]) -> list[Saved]:
    """Read files of CoSpace, JSON lines with "pred" next to the keys of its annotations.

    Raises QuestionError, which names file and line, also where a question is there twice.
    """
    found: dict[tuple[TaskRow, Order, int], Saved] = {}
    for where, line in (item for path in paths for item in read_lines(_Line, path)):
        named = _FILE.fullmatch(line.task)
        if named is None:
            known = ', '.join(_FILES)
            raise QuestionError(f'{where}: task is "{line.task}"; it must be one of {known}')
        order = Order(named[2] or Order.CLOCKWISE)
        given = line.model_dump(by_alias=True)
        for task in (task for task in TASKS.values() if task.file == named[1]):
            ending = _ENDINGS[task.part]
            answer = given[f'answer{ending}']
            what, form = ('a number', r'\d+') if task.numbers else _LETTER
            if answer is None or not re.fullmatch(form, answer):
                raise QuestionError(f'{where}: "answer{ending}" must be {what}, not {answer!r}')
            if (task, order, line.index) in found:
                raise QuestionError(
                    f'{where}: question {line.index} of {task.name}, order {order.value}, is '
                    'there twice; score one prediction at a time'
                )
            # 'A. north B. south'
            options = re.split(r'(?:^|\s+)[A-D]\.\s*', given[f'options{ending}'].strip())[1:]
            found[task, order, line.index] = Saved(
                task, order, line.index, tuple(options), answer, line.pred, task.part
            )
    return list(found.values())


def is_right_as_published(item: Saved, said: str) -> bool:
    """Return whether the published code takes a reply as right.

    Of a number it reads the first one in digits; without any the right one counts if its word is
    part of the reply, "one" of "none" too. A letter is right if it occurs with a dot and no other
    does; if it does not, the last capital letter, of any word, is read. Of planning the letters
    in the JSON of both answers are read, if there are both.
    """
    if item.part:
        return _parse_plan(said)[item.part - 1] == item.answer
    said = said.replace('Answer', '').replace('answer', '')
    if item.task.numbers:
        number = re.search(r'\b\d+\b', said)
        word = _WORDS.get(item.answer)
        if number or not word:
            return number is not None and number[0] == item.answer
        return word in said or word.capitalize() in said
    if f'{item.answer}.' in said:
        return not any(f'{letter}.' in said for letter in 'ABCD' if letter != item.answer)
    return _find_last_capital(said) == item.answer


def _find_last_capital(text: str) -> str:
    return re.sub('[^A-Z]', '', text)[-1:]


def _parse_plan(said: str) -> list[str]:
    """Return both letters of a reply in JSON, 'E' where it cannot be read, then for both."""
    try:
        inner = said.split('{', 1)[1].rsplit('}', 1)[0].strip()
        text = '{' + inner.replace("'", '"').replace(':', ': ') + '}'
        data: Any = parse_json(text, 'the reply', QuestionError)
        return [_find_last_capital(data[key]) or data[key][0] for key in ('Answer1', 'Answer2')]
    except (OsmabenchError, IndexError, KeyError, TypeError):
        return ['E', 'E']


def is_right(item: Saved, said: str) -> bool:
    """Return whether the one answer of a reply, read without the right one, is right."""
    if item.part:
        match = re.search(
            rf'answer\s*{item.part}["\']?\s*[:=]\s*["\']?([^"\'\n,}}]+)', said, re.IGNORECASE
        )
        if match is None:
            return False
        said = match[1]
    if item.task.numbers:
        return as_number(said) == float(item.answer)
    return chosen_option(item.options, said) == LETTERS.index(item.answer)


_MODES = {Mode.COMPAT: is_right_as_published, Mode.STRICT: is_right}


def compare_replies(saved: Sequence[Saved], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yield whether replies are right, by task and order, and by task where it has several.

    `chance` is how often a guess is right: one of the options, or of the usual numbers.
    """
    orders = Counter(task for task, _ in {(item.task, item.order) for item in saved})
    for item in saved:
        order = item.order.value
        yield {
            'task': item.task.name,
            'order': (order, _ALL) if orders[item.task] > 1 else order,
            'index': item.index,
            'answered': item.said is not None,
            'right': item.said is not None and _MODES[mode](item, item.said),
            'answer': item.answer,
            'chance': 1 / (len(item.options) or item.task.numbers or 4),
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
    orders={'task': [*TASKS], 'order': [*(o.value for o in Order), _ALL]},
    sum_up=sum_up,
)


# The answerer that sees the images of the questions, and no map.
IMAGES = 'images'

_ON_POINTS = frozenset((Task.COUNT.name, Task.DECISION.name))


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
    make_rules = staticmethod(answering.RuleOfViews)

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
        questions, verdicts = given.questions, given.verdicts
        by_rule = self._options.answerer == RULE
        missing = _ON_POINTS if by_rule and given.asked.semantic_map.dense is None else frozenset()
        rows = list(compare_replies([*map(_save, questions, given.answers)], Mode.COMPAT))
        published = [replace(x, correct=r['right']) for x, r in zip(verdicts, rows, strict=True)]
        for mode, found in ((Mode.STRICT, verdicts), (Mode.COMPAT, published)):
            yield from records(
                SUITE, mode.value, 'accuracy', questions, found,
                not_applicable=missing | given.unserved, answered_too=mode is Mode.STRICT,
            )  # fmt: skip
        yield from _score_orders(given)
        for task in ('', *dict.fromkeys(item.category for item in questions)):
            shares = [row['chance'] for row in rows if task in ('', row['task'])]
            yield MetricRecord.of_mean(SUITE, self.mode.value, 'baseline_random', shares, task)


def _save(item: Question, answer: Answer) -> Saved:
    """Return a question and its answer as in a file; each of planning has its own reply."""
    value = answer.value
    right = LETTERS[item.options.index(str(item.answer))] if item.options else str(item.answer)
    about = item.provenance
    return Saved(
        TASKS[item.category], Order(about['order']), about['item'], item.options, right,
        None if value is None else str(value),
    )  # fmt: skip


def _score_orders(given: AskedQuestions) -> Iterator[MetricRecord]:
    """Yield the shares of items that are right, and answered alike, in all orders of images."""
    items: dict[str, list[tuple[bool, AnswerValue | None]]] = {}
    for item, answer, verdict in zip(given.questions, given.answers, given.verdicts, strict=True):
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
