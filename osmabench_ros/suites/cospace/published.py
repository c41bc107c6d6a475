"""Files of CoSpace: annotations and predictions, scored as its code does and strictly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import Field

from osmabench_ros.base.documents import parse_json, read_text
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import OsmabenchError, QuestionError
from osmabench_ros.metrics.record import Mode
from osmabench_ros.vqa.grading import chosen_option
from osmabench_ros.vqa.judging.reading import NUMBER_WORDS, as_number
from osmabench_ros.vqa.published import PublishedRow


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

_TASKS = {
    'direction': Task.DIRECTION,
    'object': Task.OBJECT,
    'counting': Task.COUNT,
    'angle': Task.ANGLE,
    'dif-ang': Task.DIFFERENCE,
}
_PLANNING = ((Task.PLACE, 'qa'), (Task.DECISION, 'dec'))
_GUESSES = {Task.COUNT: 10, Task.DIFFERENCE: 5}
"""Numbers that a random guess is one of; 1 to 10 gives the 10 % that the paper has for CNT."""

_WORDS = tuple(NUMBER_WORDS)[:12]
_ALL = 'all'
_KEYS = ('Answer1', 'Answer2')


class _Line(PublishedRow):
    """A line of an annotation or prediction file; planning has two questions a line."""

    index: int
    task: str
    answer: str | None = None
    options: str = ''
    answer_qa: str | None = Field(None, alias='answer-qa')
    answer_dec: str | None = Field(None, alias='answer-dec')
    options_qa: str = Field('', alias='options-qa')
    options_dec: str = Field('', alias='options-dec')
    pred: str | None = None


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
    for path in paths:
        for number, text in enumerate(read_text(path, QuestionError).splitlines(), start=1):
            where = f'{path}:{number}'
            for item in _read_saved(text, where) if text.strip() else ():
                key = (item.task, item.order, item.index)
                if key in found:
                    raise QuestionError(
                        f'{where}: question {item.index} of {item.task.value}, order '
                        f'{item.order.value}, is there twice; score one prediction at a time'
                    )
                found[key] = item
    if not found:
        raise QuestionError(f'{", ".join(map(str, paths))}: there is no question of CoSpace')
    return list(found.values())


def _read_saved(text: str, where: str) -> Iterator[Saved]:
    line = validated(_Line, parse_json(text, where, QuestionError), where, QuestionError)
    name, order = line.task, Order.CLOCKWISE
    for suffix in (Order.TURNED, Order.SHUFFLED):
        if name.endswith(f'-{suffix.value}'):
            name, order = name.removesuffix(f'-{suffix.value}'), suffix
    if name == 'planning':
        for task, kind in _PLANNING:
            answer, options = getattr(line, f'answer_{kind}'), getattr(line, f'options_{kind}')
            yield _check_saved(line, task, order, answer, f'answer-{kind}', options, where)
    elif name in _TASKS:
        yield _check_saved(line, _TASKS[name], order, line.answer, 'answer', line.options, where)
    else:
        known = ', '.join([*_TASKS, 'planning'])
        raise QuestionError(f'{where}: task is "{line.task}"; it must be one of {known}')


def _check_saved(
    line: _Line, task: Task, order: Order, answer: str | None, key: str, listed: str, where: str
) -> Saved:
    form = r'\d+' if task in NUMBERED else r'[A-D]'
    if answer is None or not re.fullmatch(form, answer):
        what = 'a number' if task in NUMBERED else 'a letter from A to D'
        raise QuestionError(f'{where}: "{key}" must be {what}, not {answer!r}')
    return Saved(task, order, line.index, read_options(listed), answer, line.pred)


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
        any word, or 'E'. Planning: as `_planned`.
    """
    if task in (Task.PLACE, Task.DECISION):
        first, second = _parse_plan(said)
        return second if task is Task.DECISION else first
    said = said.replace('Answer', '').replace('answer', '')
    if task in NUMBERED:
        if match := re.search(r'\b\d+\b', said):
            return match[0]
        word = _WORDS[int(answer)] if answer in map(str, range(len(_WORDS))) else None
        return answer if word and (word in said or word.capitalize() in said) else '-1'
    if f'{answer}.' in said:
        others = (f'{letter}.' for letter in 'ABCD' if letter != answer)
        return said if any(other in said for other in others) else answer
    return _last_capital(said) or 'E'


def _last_capital(text: str) -> str:
    found: list[str] = re.findall(r'[A-Z]', text)
    return found[-1] if found else ''


def _parse_plan(said: str) -> tuple[str, str]:
    """Return both letters of a reply in JSON, 'E' where it cannot be read, then for both."""
    try:
        inner = said.split('{', 1)[1].rsplit('}', 1)[0].strip()
        text = '{' + inner.replace("'", '"').replace(':', ': ') + '}'
        data: Any = parse_json(text, 'the reply', QuestionError)
        first, second = (_last_capital(data[key]) or str(data[key][0]) for key in _KEYS)
    except (OsmabenchError, IndexError, KeyError, TypeError):
        return 'E', 'E'
    return first, second


def strictly(item: Saved) -> str | None:
    """Return the one answer of a reply, read without the right answer; None if not just one."""
    said = item.said or ''
    if item.task in (Task.PLACE, Task.DECISION):
        number = 1 + (item.task is Task.DECISION)
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


@dataclass(frozen=True)
class CoSpaceScore:
    """Metrics of a task and an order of its images, as fractions.

    Parameters
    ----------
    mode : str
        'compat' or 'strict'.
    task, order : str
        Values of `Task` and `Order`; 'all' for all orders that were given.
    questions, answered : int
        Counts.
    accuracy : float or None
        Right among the questions, of all orders the published ACC_q; None without predictions.
    accuracy_pairs : float or None
        Items that are right in every order, the published ACC_p; None of a single order.
    majority, random : float
        Scores of the most frequent right answer, and of a guess among the options.
    """

    mode: str
    task: str
    order: str
    questions: int
    answered: int
    accuracy: float | None
    accuracy_pairs: float | None
    majority: float
    random: float


def chance(task: Task, options: Sequence[str]) -> float:
    """Return how often a guess is right: one of the options, or of the usual numbers."""
    return 1 / (len(options) or _GUESSES.get(task, 4))


def cospace_scores(saved: Sequence[Saved]) -> list[CoSpaceScore]:
    """Return a row for each mode, task and order, and one over the orders of a task."""
    rows = []
    for mode in (Mode.COMPAT, Mode.STRICT):
        right = {(x.task, x.order, x.index): is_right(x, mode) for x in saved}
        for task in Task:
            of_task = [item for item in saved if item.task is task]
            orders = [order for order in Order if any(x.order is order for x in of_task)]
            rows += [
                _score(mode, order.value, [x for x in of_task if x.order is order], right)
                for order in orders
            ]
            if len(orders) > 1:
                rows.append(_score(mode, _ALL, of_task, right))
    return rows


def _score(
    mode: Mode, order: str, items: Sequence[Saved], right: Mapping[tuple[Task, Order, int], bool]
) -> CoSpaceScore:
    answered = sum(item.said is not None for item in items)
    hits = [right[item.task, item.order, item.index] for item in items]
    of_item: dict[int, list[bool]] = {}
    for item, hit in zip(items, hits, strict=True):
        of_item.setdefault(item.index, []).append(hit)
    pairs = sum(map(all, of_item.values())) / len(of_item)
    common = Counter(item.answer for item in items).most_common(1)[0][1]
    guesses = [chance(item.task, item.options) for item in items]
    return CoSpaceScore(
        mode.value,
        items[0].task.value,
        order,
        len(items),
        answered,
        sum(hits) / len(items) if answered else None,
        pairs if answered and order == _ALL else None,
        common / len(items),
        sum(guesses) / len(items),
    )
