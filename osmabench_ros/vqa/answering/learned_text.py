"""Answers exact questions from their text only, as questions about other scenes were answered."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from osmabench_ros.base.files import read_json
from osmabench_ros.vqa.answering.baselines import WordModel
from osmabench_ros.vqa.kinds import Query, QueryKind
from osmabench_ros.vqa.questions import Answer, AnswerItem, AnswerType, AnswerValue, Question
from osmabench_ros.vqa.wording import parsed

TABLE = Path(__file__).with_name('answers_of_other_scenes.json')
"""Right answers by kind and words, of apartments that no run uses; by benchmarks/learn_answers.py.
"""

_STEP = 0.2
"""Two numbers with a smaller difference of their logarithms pass for one answer."""

_CHOICES = frozenset({QueryKind.WHICH_MORE, QueryKind.CLOSER})
_SEPARATOR = ' | '

AnswerTable = Mapping[str, Mapping[str, Sequence[AnswerItem]]]
"""Right answers by the name of a kind and the words in the gaps of its wordings."""


def collect_answers(questions: Iterable[Question]) -> AnswerTable:
    """Return the table of the right answers; coordinates depend on the scene and are left out."""
    table: dict[str, dict[str, list[AnswerItem]]] = {}
    for question in questions:
        query = parsed(question.text)
        if query is not None and not isinstance(question.answer, tuple):
            answers = table.setdefault(query.kind.value, {}).setdefault(_gaps_of(query), [])
            answers.append(_round_number(question.answer_type, question.answer))
    return table


def answer_from_text(questions: Sequence[Question]) -> list[Answer]:
    """Answer by naive Bayes over the words in the gaps of a wording; None to unknown kinds."""
    return [Answer(item.id, _guess(item.text), 'learned text') for item in questions]


def _guess(text: str) -> AnswerValue | None:
    query = parsed(text)
    if query is None:
        return None
    options = query.phrases[:2] if query.kind in _CHOICES else ()
    return _learn_kinds()[query.kind.value].guess(_list_features(_gaps_of(query)), options)


@cache
def _learn_kinds() -> Mapping[str, WordModel]:
    models: dict[str, WordModel] = defaultdict(WordModel)
    for kind, answered in read_json(TABLE).items():
        for gaps, answers in answered.items():
            for answer in answers:
                models[kind].learn(answer, _list_features(gaps), 1)
    return models


def _gaps_of(query: Query) -> str:
    number = '' if query.number is None else f'{query.number:g}'
    return _SEPARATOR.join((*query.phrases, query.word, number))


def _list_features(gaps: str) -> list[str]:
    """Return each part, and its last word if it has several, with the place."""
    parts = list(enumerate(gaps.split(_SEPARATOR)))
    return [f'{n} {word}' for n, part in parts for word in {part, part.split(' ')[-1]}]


def _round_number(answer_type: AnswerType, answer: AnswerItem) -> AnswerItem:
    if answer_type is not AnswerType.NUMBER or not isinstance(answer, float) or answer <= 0:
        return answer
    return round(math.exp(_STEP * round(math.log(answer) / _STEP)), 2)
