"""Files of CoSpace: annotations and predictions, scored as its code does and strictly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from osmabench_ros.base.documents import parse_json
from osmabench_ros.errors import OsmabenchError, QuestionError
from osmabench_ros.metrics.record import Mode
from osmabench_ros.vqa.grading import chosen_option
from osmabench_ros.vqa.judging.reading import NUMBER_WORDS, as_number
from osmabench_ros.vqa.published import Published, PublishedRow, read_lines

if TYPE_CHECKING:
    import pandas as pd


class Task(str, Enum):
    """Tasks of CoSpace, by their names in its paper."""

    DIRECTION = 'DIR-Rec'
    OBJECT = 'DIR-Obj'
    COUNT = 'CNT'
    ANGLE = 'ROT-Ang'
    DIFFERENCE = 'ROT-Dif'
    PLACE = 'PLA-QA'
    DECISION = 'PLA-Dec'


class Order(str, Enum):
    """Orders of the images of one item: clockwise, begun at the second, and shuffled."""

    CLOCKWISE = 'clockwise'
    TURNED = 'turn'
    SHUFFLED = '2'


NUMBERED = frozenset((Task.COUNT, Task.DIFFERENCE))
"""Tasks without options, whose answer is a number."""

PLANNING = (Task.PLACE, Task.DECISION)
"""Tasks of one file, whose replies have both answers in JSON."""

_FILES = {
    'direction': ((Task.DIRECTION, ''),),
    'object': ((Task.OBJECT, ''),),
    'counting': ((Task.COUNT, ''),),
    'angle': ((Task.ANGLE, ''),),
    'dif-ang': ((Task.DIFFERENCE, ''),),
    'planning': ((Task.PLACE, '-qa'), (Task.DECISION, '-dec')),
}
"""Tasks of each file, with the endings of their keys."""

_GUESSES = {Task.COUNT: 10, Task.DIFFERENCE: 5}
"""Numbers that a random guess is one of; 1 to 10 gives the 10 % that the paper has for CNT."""

_WORDS = tuple(NUMBER_WORDS)[:12]
_ALL = 'all'
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
        for item in _read_saved(line, where):
            key = (item.task, item.order, item.index)
            if key in found:
                raise QuestionError(
                    f'{where}: question {item.index} of {item.task.value}, order '
                    f'{item.order.value}, is there twice; score one prediction at a time'
                )
            found[key] = item
    return list(found.values())


def _read_saved(line: _Line, where: str) -> Iterator[Saved]:
    name, _, ending = line.task.rpartition('-')
    if ending not in (Order.TURNED.value, Order.SHUFFLED.value):
        name, ending = line.task, Order.CLOCKWISE.value
    if name not in _FILES:
        known = ', '.join(_FILES)
        raise QuestionError(f'{where}: task is "{line.task}"; it must be one of {known}')
    given = line.model_dump(by_alias=True)
    for task, key in _FILES[name]:
        answer = given[f'answer{key}']
        form = r'\d+' if task in NUMBERED else r'[A-D]'
        if answer is None or not re.fullmatch(form, answer):
            what = 'a number' if task in NUMBERED else 'a letter from A to D'
            raise QuestionError(f'{where}: "answer{key}" must be {what}, not {answer!r}')
        options = read_options(given[f'options{key}'])
        yield Saved(task, Order(ending), line.index, options, answer, line.pred)


def read_options(listed: str) -> tuple[str, ...]:
    """Return the options of 'A. north B. south', in order."""
    parts = re.split(r'(?:^|\s+)[A-D]\.\s*', listed)
    return tuple(part.strip() for part in parts[1:])


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


def is_right(item: Saved, mode: Mode) -> bool:
    """Return whether a prediction is right by the rules of a mode; none is wrong."""
    if item.said is None:
        return False
    read = as_published(item.task, item.said, item.answer)
    return (read if mode is Mode.COMPAT else strictly(item)) == item.answer


def chance(task: Task, options: Sequence[str]) -> float:
    """Return how often a guess is right: one of the options, or of the usual numbers."""
    return 1 / (len(options) or _GUESSES.get(task, 4))


def compare_replies(saved: Sequence[Saved], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yield whether replies are right, by task and order, and by task where it has several."""
    orders = Counter(task for task, _ in {(item.task, item.order) for item in saved})
    for item in saved:
        order = item.order.value
        yield {
            'task': item.task.value,
            'order': (order, _ALL) if orders[item.task] > 1 else order,
            'index': item.index,
            'answered': item.said is not None,
            'right': is_right(item, mode),
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


PUBLISHED = Published(
    read_cospace,
    compare_replies,
    groups=('task', 'order'),
    unit='questions',
    orders={'task': [task.value for task in Task], 'order': [*(o.value for o in Order), _ALL]},
    sum_up=sum_up,
)
"""Accuracy for each task and order of the images, and over the orders of a task."""
