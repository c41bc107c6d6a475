"""Grades answers of the types that have a form: choices, units, coordinates, lists, boxes."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa.english import singular, without_article
from osmabench_ros.vqa.judging.reading import LENGTHS_M, NUMBER_WORDS, is_denial, is_refusal, plain
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import (
    LETTERS,
    AnswerItem,
    AnswerType,
    AnswerValue,
    Question,
    Unit,
)


@dataclass(frozen=True)
class Grade:
    """Whether an answer is right and why; `score` as in `Verdict`."""

    correct: bool
    reason: str
    score: float | None = None


def grade(question: Question, value: AnswerValue) -> Grade | None:
    """Grade an answer by the form of its type; None for types that are read as free text.

    Texts are read: an option by its letter or its words, numbers with their unit, lists in JSON or
    joined by commas, semicolons, line ends and "and". A choice is right if it names the right
    option and no other. A number with a unit is converted, and wrong in a unit of something else;
    angles are equal modulo 360 degrees. Coordinates are right within `tolerance` metres of the
    place. Sets are right if they are equal, lists if the order is too, ids as numbers and names by
    word or synonym. A box is right if its IoU is at least 1 - `tolerance`.
    """
    if question.answer_type is AnswerType.NUMBER and question.unit is not Unit.NONE:
        return _number(question, value)
    grader = _GRADERS.get(question.answer_type)
    return None if grader is None else grader(question, value)


def chosen_option(options: Sequence[str], value: AnswerValue) -> int | None:
    """Return the position of the option that an answer names, None if it is not exactly one."""
    said = plain(value)
    words = [plain(option) for option in options]
    if said in words:
        return words.index(said)
    text = re.sub(r'^\s*(?:(?:the )?(?:answer|option|choice)(?: is)?\s*:?\s*)+', '', str(value),
                  flags=re.IGNORECASE)  # fmt: skip
    mark = re.match(r'\s*(?:\(([A-Za-z])\)|([A-Za-z])(?:[).:]|\s*$))', text)
    named = _find_mentioned(words, said)
    if mark is None:
        return named.pop() if len(named) == 1 else None
    if len({letter.upper() for pair in _MARKS.findall(text) for letter in pair if letter}) > 1:
        return None
    letter = LETTERS.index((mark[1] or mark[2]).upper())
    if letter >= len(options) or (len(named) == 1 and named != {letter}):
        return None
    return letter


_MARKS = re.compile(r'\(([A-Za-z])\)|(?<![\w(.])([A-Z])[).:]')


def _find_mentioned(words: Sequence[str], said: str) -> set[int]:
    """Return the options with words that occur, not as part of a longer option that occurs."""
    found = {i for i, option in enumerate(words) if option and _occurs(option, said)}
    return {
        i
        for i in found
        if not any(j != i and _occurs(words[i], words[j]) for j in found)
    }  # fmt: skip


def _occurs(words: str, text: str) -> bool:
    return re.search(rf'(?<!\w){re.escape(words)}(?!\w)', text) is not None


def _choice(question: Question, value: AnswerValue) -> Grade:
    chosen = chosen_option(question.options, value)
    if chosen is None:
        return Grade(False, 'names no option, or several')
    return Grade(question.options[chosen] == question.answer, f'chose {LETTERS[chosen]}')


_POWERS = {'square ': '2', 'sq ': '2', 'cubic ': '3'}
_OTHER_UNITS: Mapping[str, tuple[Unit, float]] = {
    **dict.fromkeys(('deg', 'degree', 'degrees', '°'), (Unit.DEGREE, 1.0)),
    **dict.fromkeys(('rad', 'radian', 'radians'), (Unit.DEGREE, math.degrees(1.0))),
    **dict.fromkeys(('s', 'sec', 'second', 'seconds'), (Unit.SECOND, 1.0)),
    **dict.fromkeys(('min', 'minute', 'minutes'), (Unit.SECOND, 60.0)),
    'sqm': (Unit.SQUARE_METRE, 1.0),
}
_NUMBER = r'[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?'
_MEASURED = re.compile(rf'({_NUMBER})\s*((?:square |sq |cubic )?[a-z°]+)?\^?([23]\b)?')


def _unit(words: str, power: str) -> tuple[Unit, float] | None:
    """Return a unit and its size, None for words that are not a unit."""
    for prefix, exponent in _POWERS.items():
        if words.startswith(prefix):
            words, power = words.removeprefix(prefix), exponent
    if words in LENGTHS_M:
        kind = {'': Unit.METRE, '2': Unit.SQUARE_METRE, '3': Unit.CUBIC_METRE}[power]
        return kind, LENGTHS_M[words] ** int(power or 1)
    return _OTHER_UNITS.get(words)


def _parse_quantities(value: AnswerValue) -> list[tuple[float, tuple[Unit, float] | None]]:
    """Return the numbers of an answer with their units."""
    if isinstance(value, (int, float)):
        return [(float(value), None)]
    text = str(value).lower().replace('²', '2').replace('³', '3').replace('sq.', 'sq')
    text = re.sub(r'[a-z]+', lambda word: str(NUMBER_WORDS.get(word[0], word[0])), text)
    return [(float(n), _unit(words or '', power or '')) for n, words, power in
            _MEASURED.findall(text)]  # fmt: skip


def _number(question: Question, value: AnswerValue) -> Grade:
    found = _parse_quantities(value)
    if len(found) > 1:
        # "Of the 4 walls the longest is 3.2 m" gives one length.
        found = [item for item in found if item[1] is not None and item[1][0] is question.unit]
    if len(found) != 1 or not isinstance(question.answer, (int, float)):
        return Grade(False, 'not one number')
    said, unit = found[0]
    if unit is not None:
        if unit[0] is not question.unit:
            return Grade(False, f'a number of {unit[0].value} and not of {question.unit.value}')
        said *= unit[1]
    off = abs(said - question.answer)
    if question.unit is Unit.DEGREE:
        off = min(off % 360.0, 360.0 - off % 360.0)
    return Grade(off <= question.tolerance + 1e-9, f'off by {off:g} {question.unit.value}')


def read_box(value: AnswerValue) -> AxisAlignedBox | None:
    """Return the box of two corners in a list or a text, None if there is none."""
    numbers = numbers_of(value)
    with suppress(ValueError):
        return AxisAlignedBox(numbers[:3], numbers[3:])  # type: ignore[arg-type]
    return None


def numbers_of(value: AnswerValue) -> list[float]:
    """Return the numbers of a list or a text."""
    items = value if isinstance(value, tuple) else re.findall(_NUMBER, str(value).lower())
    try:
        return [float(item) for item in items]
    except ValueError:
        return []


def _coordinates(question: Question, value: AnswerValue) -> Grade:
    right = numbers_of(question.answer)
    said = numbers_of(value)
    if len(said) != 3:
        return Grade(False, f'{len(said)} numbers instead of x, y and z')
    off = math.dist(right, said)
    return Grade(off <= question.tolerance + 1e-9, f'off by {off:.3g} m')


def _items(value: AnswerValue, *, ids: bool) -> list[AnswerItem]:
    """Return the items of a list, names in one spelling and by the head of their synonyms."""
    if ids:
        text = ' '.join(map(str, value)) if isinstance(value, tuple) else str(value)
        # A number of thousands of digits, which Python does not convert, counts as a wrong name.
        found = re.findall(r'\d+|inf', text)
        return [int(x) if x.isdigit() and len(x) <= 18 else x for x in found]
    if isinstance(value, tuple):
        names = [str(item) for item in value]
    else:
        names = re.split(r'[,;\n\[\]"]|\band\b', str(value))
    bare = (normalised_name(name).strip(" .'") for name in names)
    return [knowledge().canonical(singular(without_article(name))) for name in bare if name]


def _same_items(question: Question, value: AnswerValue) -> Grade:
    assert isinstance(question.answer, tuple)
    nothing = re.search(r'\b(?:none|nothing)\b', plain(value))
    if not question.answer and (nothing or is_refusal(value) or is_denial(value)):
        return Grade(True, 'none', 1.0)
    ids = any(isinstance(item, int) for item in question.answer)
    right, said = (_items(items, ids=ids) for items in (question.answer, value))
    if question.answer_type is AnswerType.SET:
        right, said = (sorted(set(items), key=str) for items in (right, said))
    shared = _longest_common(right, said)
    total = len(right) + len(said)
    score = 2 * shared / total if total else 1.0
    return Grade(right == said, f'{shared} of {len(right)} with {len(said)} named', score)


def _longest_common(first: Sequence[AnswerItem], second: Sequence[AnswerItem]) -> int:
    """Return the length of the longest common subsequence."""
    lengths = [0] * (len(second) + 1)
    for item in first:
        before = lengths[:]
        for j, other in enumerate(second, start=1):
            lengths[j] = before[j - 1] + 1 if item == other else max(before[j], lengths[j - 1])
    return lengths[-1]


def _box(question: Question, value: AnswerValue) -> Grade:
    count = len(numbers_of(value))
    if count != 6:
        return Grade(False, f'{count} numbers instead of two corners', 0.0)
    right, said = read_box(question.answer), read_box(value)
    if right is None or said is None:
        return Grade(False, 'the corners of the box are not in order', 0.0)
    iou = right.iou(said)
    return Grade(iou >= 1.0 - question.tolerance - 1e-9, f'IoU {iou:.3f}', iou)


_GRADERS: Mapping[AnswerType, Callable[[Question, AnswerValue], Grade]] = {
    AnswerType.CHOICE: _choice,
    AnswerType.COORDINATES: _coordinates,
    AnswerType.SET: _same_items,
    AnswerType.ORDERED_LIST: _same_items,
    AnswerType.BOX: _box,
}

# Types of answers with a score, and not only right or wrong.
TYPES_WITH_PARTS = frozenset((AnswerType.SET, AnswerType.ORDERED_LIST, AnswerType.BOX))
