"""Questions, answers and verdicts: one schema for every suite, joined by question id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class QueryKind(str, Enum):
    """What is asked; phrases are noun phrases, first, second and third."""

    EXISTS = 'exists'
    ABSENT = 'absent'
    BOTH = 'both exist'
    EITHER = 'either exists'
    FIRST_ONLY = 'only the first exists'
    NEITHER = 'neither exists'
    COUNT = 'count'
    MORE_OF = 'more of the first'
    HEIGHT = 'height in metres'
    DISTANCE = 'distance in metres'
    COLOR_OF = 'colour of'
    HAS_COLOR = 'has colour'
    MATERIAL_OF = 'material of'
    HAS_MATERIAL = 'has material'
    RELATED = 'related'
    RELATED_TO = 'what is related to'
    SUPPORT_OF = 'what supports'
    SUPPORTED_BY = 'what is supported by'
    CONTAINER_OF = 'what contains'
    FIXED_TO = 'what is it attached to'
    WHICH_MORE = 'which is more'
    IS_MORE = 'is the first more'
    CLOSER = 'which is closer'
    REACHABLE = 'top within reach'
    PASSABLE = 'gap wide enough'
    CLEARANCE = 'free space above'
    AFFORDS_ON = 'usable thing on'
    AFFORDS_NEAR = 'usable thing next to'
    AFFORDS_COUNT = 'count of usable things'
    LOADED = 'must be cleared'
    UNLOADED = 'can be moved at once'
    OPEN_FIRST = 'what must be opened'


@dataclass(frozen=True)
class Query:
    """A question's meaning.

    Phrases are singular noun phrases without article, e.g. ``'red wooden chair'``; `word` is the
    relation, colour, material, comparative or affordance the kind needs, `number` is in metres.
    """

    kind: QueryKind
    phrases: tuple[str, ...] = ()
    word: str = ''
    number: float | None = None


AnswerValue = str | int | float
"""'yes' or 'no', a number, or text, as the question's `AnswerType` says."""


class AnswerType(str, Enum):
    """Type of the answer to a question, which decides how it is judged."""

    YES_NO = 'yes_no'
    INTEGER = 'integer'
    NUMBER = 'number'
    TEXT = 'text'


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
    answer : str, int or float
        The right answer; lengths in metres.
    tolerance : float
        Largest accepted absolute error of a number, in the unit of the answer.
    evidence : Evidence
        Nodes and frames it rests on; no answerer ever sees them.
    provenance : mapping of str to str
        Generator, seed, query or prompt hash; no answerer ever sees it.
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


@dataclass(frozen=True)
class Answer:
    """What an answerer says to a question.

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
    """

    question_id: str
    value: AnswerValue | None
    answerer: str
    nodes: tuple[int, ...] = ()
    note: str = ''
    failure: str = ''


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
    """

    question_id: str
    correct: bool
    judge: str
    answered: bool = True
    reason: str = ''
    judged: bool = True
    failure: str = ''


@dataclass(frozen=True)
class Inquiry:
    """The part of a question that an answerer is allowed to see."""

    id: str
    text: str
    answer_type: AnswerType


def inquiry(question: Question) -> Inquiry:
    """Return a question without its answer, evidence, category and provenance."""
    return Inquiry(question.id, question.text, question.answer_type)


def question_id(suite: str, scene: str, text: str) -> str:
    """Return an id that depends only on suite, scene and wording."""
    digest = hashlib.sha256('\n'.join((suite, scene, text)).encode()).hexdigest()
    return f'q-{digest[:16]}'
