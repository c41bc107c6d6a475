"""Questions, answers and verdicts: one schema for every suite, joined by question id."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from osmabench_ros.base.strict import PathBelow

# An integer of more digits is read as a float, infinite if it is none, as arithmetic wants it.
_Integer = Annotated[int, Field(gt=-(10**18), lt=10**18)]
AnswerItem = str | _Integer | float
# 'yes' or 'no', a number, text, or several of them, as the question's `AnswerType` says.
AnswerValue = AnswerItem | tuple[AnswerItem, ...]


class AnswerType(str, Enum):
    """Type of the answer to a question, which decides how it is judged.

    A choice is one of the question's options; coordinates are x, y, z in metres; a set and an
    ordered list have ids or names; a box has the lower corner and the upper one, six lengths.
    """

    YES_NO = 'yes_no'
    INTEGER = 'integer'
    NUMBER = 'number'
    TEXT = 'text'
    CHOICE = 'choice'
    COORDINATES = 'coordinates'
    SET = 'set'
    ORDERED_LIST = 'ordered_list'
    BOX = 'box'


class Unit(str, Enum):
    """Unit of a number, '' where it counts, or is a length in metres of an earlier file."""

    NONE = ''
    METRE = 'm'
    SQUARE_METRE = 'm2'
    CUBIC_METRE = 'm3'
    DEGREE = 'deg'
    SECOND = 's'


# Options of a choice in order.
LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'


class Category(str, Enum):
    """Question categories of OSMa-Bench (the first eight) and of its second version."""

    EXISTENCE_POSITIVE = 'Existence-Positive'
    EXISTENCE_NEGATIVE = 'Existence-Negative'
    BINARY_LOGICAL = 'Binary Logical'
    MEASUREMENT = 'Measurement'
    OBJECT_ATTRIBUTES = 'Object Attributes'
    RELATIONS_SPATIAL = 'Relations-Spatial'
    RELATIONS_FUNCTIONAL = 'Relations-Functional'
    COMPARISON = 'Comparison'
    TASK_REACHABILITY = 'Task Reachability'
    OBJECT_AFFORDANCE = 'Object Affordance'
    MANIPULATION_PRECONDITION = 'Manipulation Pre-condition'


class SpatialCategory(str, Enum):
    """Question categories of Space3D-Bench."""

    LOCATION = 'location'
    MEASUREMENT = 'measurement'
    RELATION = 'relation'
    NAVIGATION = 'navigation'
    PATTERN = 'pattern'
    PREDICTION = 'prediction'


class PromptCategory(str, Enum):
    """Question categories of OSMa-Bench++ with answers from the prompt of a scene."""

    MEASUREMENT = 'PromptGT-Measurement'
    RELATIONS = 'PromptGT-Relations'
    EXISTENCE = 'PromptGT-Existence'


AnyCategory = Category | SpatialCategory | PromptCategory


@dataclass(frozen=True)
class Evidence:
    """Ids in the ground-truth graph, and indices of frames if known, that an answer rests on."""

    nodes: tuple[int, ...] = ()
    frames: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question with its right answer.

    Parameters
    ----------
    id : str
        Unique in a question set; every later stage joins on it.
    suite : str
        E.g. ``'exact_questions'``.
    scene : str
        Scene it is about.
    category : str
        A `Category` value, or a name of the suite's own.
    text : str
        The question as it is put.
    answer_type : AnswerType
        How the answer is read and judged.
    answer : str, int, float or tuple of them
        The right answer; lengths in metres. Of a choice it is the text of the option.
    tolerance : float
        Largest accepted error: of a number in the unit of the answer, of coordinates the distance
        in metres, of a box 1 - IoU.
    evidence : Evidence
        Nodes and frames it rests on; no answerer ever sees them.
    provenance : mapping of str to str
        Generator, seed, query or prompt hash; no answerer ever sees it.
    options : tuple of str
        Options of a choice, each once; empty for other types.
    unit : Unit
        Unit of a number.
    images : tuple of str
        Files that belong to the question, relative to the folder of its file.
    context_change : str
        Changes of the scene since it was mapped, in words; '' if there are none.

    Raises
    ------
    ValueError
        If the answer is not of its type.
    """

    id: str
    suite: str
    scene: str
    category: str
    text: str
    answer_type: AnswerType
    answer: AnswerValue
    tolerance: float = 0.0
    evidence: Evidence = field(default_factory=Evidence)
    provenance: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    unit: Unit = Unit.NONE
    images: tuple[PathBelow, ...] = ()
    context_change: str = ''

    __pydantic_config__ = ConfigDict(extra='forbid')

    def __post_init__(self) -> None:
        if fault := _fault_of_answer(self):
            raise ValueError(f'the answer of question "{self.id}" is {self.answer!r}; {fault}')


def _fault_of_answer(question: Question) -> str:
    """Return the form that an answer of its type must have, '' if it has it."""
    kind, answer = question.answer_type, question.answer
    items = answer if isinstance(answer, tuple) else ()
    if (kind is AnswerType.CHOICE) != bool(question.options):
        return 'a question of type choice has options, and no other'
    if kind is AnswerType.CHOICE:
        distinct = len({option.strip().lower() for option in question.options})
        if not 2 <= distinct == len(question.options) <= len(LETTERS):
            return f'a choice is made from 2 to {len(LETTERS)} different options'
        return '' if answer in question.options else 'a choice is the text of one of its options'
    if kind in (AnswerType.COORDINATES, AnswerType.BOX):
        count = 3 if kind is AnswerType.COORDINATES else 6
        numbers = [float(item) for item in items if isinstance(item, (int, float))]
        if len(numbers) != count or not all(map(math.isfinite, numbers)):
            return f'the answer of a question of type {kind.value} is {count} lengths in metres'
        corners = zip(numbers[:3], numbers[3:], strict=False)
        return 'the lower corner of a box comes first' if any(a > b for a, b in corners) else ''
    if kind in (AnswerType.SET, AnswerType.ORDERED_LIST):
        are_names = all(isinstance(item, str) and item.strip() for item in items)
        if not isinstance(answer, tuple) or not (are_names or {*map(type, items)} == {int}):
            return f'the answer of a question of type {kind.value} is a list of ids or of names'
        repeated = kind is AnswerType.SET and len(set(answer)) < len(answer)
        return 'a set has each item once' if repeated else ''
    if isinstance(answer, tuple):
        return f'the answer of a question of type {kind.value} is no list'
    return ''


@dataclass(frozen=True)
class ToolUse:
    """A call of a tool with its arguments as JSON, and the start of what came back."""

    tool: str
    arguments: str
    result: str


@dataclass(frozen=True)
class Answer:
    """The reply of an answerer to a question.

    Parameters
    ----------
    question_id : str
        Id of the question.
    value : str, int, float or None
        None where it does not answer, which counts as wrong.
    answerer : str
        Name of the answerer or language model.
    nodes : tuple of int
        Ids in the recorded graph that the answer rests on.
    note : str
        Why there is no answer, or how it was found.
    failure : str
        Why the server of the answerer gave none; such an answer is missing, not wrong.
    transcript : tuple of ToolUse
        Tools that the answerer called on the way, in order.
    """

    question_id: str
    value: AnswerValue | None
    answerer: str
    nodes: tuple[int, ...] = ()
    note: str = ''
    failure: str = ''
    transcript: tuple[ToolUse, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """A judge's opinion of an answer.

    Parameters
    ----------
    question_id : str
        Id of the question.
    correct : bool
        Whether the answer is right; always False if there is none.
    judge : str
        Name of the judge.
    answered : bool
        Whether there was an answer to judge.
    reason : str
        One sentence or word.
    judged : bool
        False if the judge failed; that counts as wrong, except in `compat`, where it leaves the
        denominator as in the published code.
    failure : str
        Why the server of the judge gave none; such a verdict is missing, not wrong.
    score : float, optional
        How much of the answer is right, in [0, 1], of types with parts: F1 of a set, twice the
        longest common subsequence over both lengths of an ordered list, IoU of a box.
    """

    question_id: str
    correct: bool
    judge: str
    answered: bool = True
    reason: str = ''
    judged: bool = True
    failure: str = ''
    score: float | None = None


@dataclass(frozen=True)
class Inquiry:
    """The part of a question that an answerer is allowed to see."""

    id: str
    text: str
    answer_type: AnswerType
    options: tuple[str, ...] = ()
    unit: Unit = Unit.NONE
    images: tuple[str, ...] = ()
    context_change: str = ''


def inquiry(question: Question) -> Inquiry:
    """Return a question without its answer, evidence, category and provenance."""
    return Inquiry(**{item.name: getattr(question, item.name) for item in fields(Inquiry)})


def question_id(suite: str, scene: str, text: str) -> str:
    """Return an id that depends only on suite, scene and wording."""
    digest = hashlib.sha256('\n'.join((suite, scene, text)).encode()).hexdigest()
    return f'q-{digest[:16]}'


def make_question(
    suite: str,
    scene: str,
    text: str,
    answer_type: AnswerType,
    answer: AnswerValue,
    *,
    key: str = '',
    category: str = '',
    nodes: Iterable[int] = (),
    frames: Iterable[int] = (),
    **more: Any,
) -> Question:
    """Return a question with an id from its text, or from `key`, and `more` of its fields."""
    return Question(
        question_id(suite, scene, key or text), suite, scene, category, text, answer_type, answer,
        evidence=Evidence(tuple(nodes), tuple(frames)), **more,
    )  # fmt: skip
