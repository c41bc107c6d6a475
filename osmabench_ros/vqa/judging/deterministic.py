"""Judges by rule: the same answer always gets the same verdict, without any network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.vqa.english import COLORS, basic_color, material_noun, singular
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.judging.reading import (
    as_number,
    as_yes_no,
    content_words,
    is_refusal,
    plain,
)
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict

SIMILARITY_THRESHOLD = 0.75
"""Cosine of the bundled sentence embedder from which two texts count as one answer."""

_COLORS = frozenset(COLORS)


class Judge(Protocol):
    """Judges answers."""

    name: str

    def judge(
        self, pairs: Sequence[tuple[Question, Answer | None]], progress: Progress = silent
    ) -> list[Verdict]:
        """Return one verdict for each pair; no answer is a wrong answer."""
        ...


class DeterministicJudge:
    """Equality for yes and no, tolerance for numbers, words, synonyms and embedding for text."""

    name = 'deterministic'

    def __init__(
        self, embedder: Embedder | None = None, threshold: float = SIMILARITY_THRESHOLD
    ) -> None:
        self._embedder = embedder
        self._threshold = threshold

    def judge(
        self, pairs: Sequence[tuple[Question, Answer | None]], progress: Progress = silent
    ) -> list[Verdict]:
        """Return one verdict for each pair, in order; too quick to report progress."""
        del progress
        return [self._verdict(question, answer) for question, answer in pairs]

    def _verdict(self, question: Question, answer: Answer | None) -> Verdict:
        if answer is None or answer.value is None:
            reason = 'no answer' if answer is None else answer.note or 'no answer'
            return Verdict(question.id, False, self.name, answered=False, reason=reason)
        correct, reason = self._compare(question, answer)
        answered = not is_refusal(answer.value) or correct
        return Verdict(question.id, correct, self.name, answered, reason)

    def _compare(self, question: Question, answer: Answer) -> tuple[bool, str]:
        assert answer.value is not None
        if question.answer_type is AnswerType.YES_NO:
            said = as_yes_no(answer.value)
            return said is not None and said == as_yes_no(question.answer), f'said {said}'
        if question.answer_type in (AnswerType.INTEGER, AnswerType.NUMBER):
            return _close(question, answer)
        return self.same_text(str(question.answer), str(answer.value))

    def same_text(self, right: str, said: str) -> tuple[bool, str]:
        """Return whether two free texts give the same answer, and by which rule."""
        if plain(right) == plain(said):
            return True, 'equal'
        if is_refusal(said) or is_refusal(right):
            return is_refusal(said) and is_refusal(right), 'refusal'
        wanted, given = content_words(right), content_words(said)
        if not wanted or not given:
            return False, 'empty'
        if _conflict(wanted, given):
            return False, 'different color'
        if _same_words(wanted, given):
            return True, 'same words'
        return self._similar(right, said)

    def _similar(self, right: str, said: str) -> tuple[bool, str]:
        if self._embedder is None:
            return False, 'different words'
        first, second = self._embedder.embed([plain(right), plain(said)])
        cosine = float(first @ second)
        return cosine >= self._threshold, f'similarity {cosine:.2f}'


def _close(question: Question, answer: Answer) -> tuple[bool, str]:
    assert answer.value is not None
    right, said = as_number(question.answer), as_number(answer.value)
    if right is None or said is None:
        same = right is None and plain(question.answer) == plain(answer.value)
        return same, 'not a number'
    slack = question.tolerance + 1e-9
    return abs(right - said) <= slack, f'off by {abs(right - said):g}'


def _conflict(wanted: Sequence[str], given: Sequence[str]) -> bool:
    """Return whether both name colours and share none of them."""
    first, second = (
        {basic_color(word) for word in words if word in _COLORS} for words in (wanted, given)
    )
    return bool(first and second and not first & second)


def _same_words(wanted: Sequence[str], given: Sequence[str]) -> bool:
    """Return whether two answers are equal up to additional adjectives."""
    first, second = (_spelt(words) for words in (wanted, given))
    if set(first) == set(second):
        return True
    if all(word in _COLORS for word in wanted):
        return set(first) <= set(second)
    canonical = knowledge().canonical
    if canonical(' '.join(first)) == canonical(' '.join(second)):
        return True
    subset = set(first) <= set(second) or set(second) <= set(first)
    return first[-1] == second[-1] and (subset or bool(set(first[:-1]) & set(second[:-1])))


def _spelt(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        basic_color(word) if word in _COLORS else singular(material_noun(word)) for word in words
    )
