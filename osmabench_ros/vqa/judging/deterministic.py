"""Judges by rule: the same answer always gets the same verdict, without any network."""

import re
from collections.abc import Iterable, Sequence

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.language.embedding import Embedder
from osmabench_ros.vqa.english import basic_color, material_noun
from osmabench_ros.vqa.grading import Grade, grade
from osmabench_ros.vqa.judging import reading
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import Answer, AnswerType, AnswerValue, Question, Verdict

# Cosine of the bundled sentence embedder from which two nouns count as one class.
SIMILARITY_THRESHOLD = 0.7

ASKS_ATTRIBUTE = re.compile(
    r'\b(?:(?P<colors>colou?rs?)|(?P<materials>materials?|made (?:of|from|out of)))\b',
    re.IGNORECASE,
)
_OFFERS = re.compile(r'\bor\b', re.IGNORECASE)
_BEGINS_YES_NO = re.compile(r'(?:yes|no|true|false)\b')


class DeterministicJudge:
    """Equality for yes and no, tolerance for numbers; reads statements and names in a text.

    In this order: numbers, yes and no, what declines, what denies, opposites such as left and
    right, the colour or material that the question asks for, objects. An object is the same by
    its noun, a synonym or, with an embedder, a similar noun, unless colours or materials differ.
    Of objects that "and" joins all have to be named, of a bare enumeration one, and never more
    kinds than the right answer has.
    """

    name = 'deterministic'

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def judge(
        self, pairs: Sequence[tuple[Question, Answer | None]], progress: Progress = silent
    ) -> list[Verdict]:
        """Return one verdict for each pair, in order; too quick to report progress."""
        del progress
        if self._embedder is not None:
            # An embedder caches; one batch takes a tenth of the time of single nouns.
            nouns = {
                thing.noun
                for question, answer in pairs
                if question.answer_type is AnswerType.TEXT and answer is not None
                for text in (question.answer, answer.value)
                for thing in reading.noun_phrases(str(text))
            }
            self._embedder.embed(sorted(nouns - {''}))
        return [self._verdict(question, answer) for question, answer in pairs]

    def _verdict(self, question: Question, answer: Answer | None) -> Verdict:
        if answer is None or answer.value is None:
            reason = 'no answer' if answer is None else answer.note or 'no answer'
            return Verdict(question.id, False, self.name, answered=False, reason=reason)
        found = grade(question, answer.value) or Grade(*self._compare(question, answer.value))
        answered = not reading.is_refusal(answer.value) or found.correct
        return Verdict(
            question.id, found.correct, self.name, answered, found.reason, score=found.score
        )

    def _compare(self, question: Question, said: AnswerValue) -> tuple[bool, str]:
        if question.answer_type is AnswerType.YES_NO:
            return _same_polarity(str(question.answer), str(said))
        if question.answer_type in (AnswerType.INTEGER, AnswerType.NUMBER):
            return _is_close(question, said)
        return self.same_text(str(question.answer), str(said), question.text)

    def same_text(
        self, right: str, said: str, question: str = '', *, is_part: bool = False
    ) -> tuple[bool, str]:
        """Return whether two free texts give the same answer to a question, and by which rule.

        Where `right` is part of the right answer, `said` may name other objects too.
        """
        if reading.plain(right) == reading.plain(said):
            return True, 'equal'
        if reading.is_quantity(right):
            return _same_quantity(right, said), 'number'
        if _BEGINS_YES_NO.match(reading.plain(right)):
            return _same_polarity(right, said)
        texts = (right, said)
        refused = [reading.is_refusal(text) and not reading.is_denial(text) for text in texts]
        if any(refused):
            return all(refused), 'refusal'
        if any(map(reading.is_denial, texts)):
            return all(map(reading.is_denial, texts)), 'denial'
        if _BEGINS_YES_NO.match(reading.plain(said)):
            return False, 'yes or no to an open question'
        numbers = [{item.value for item in reading.quantities(text)} for text in texts]
        if all(numbers) and numbers[0] != numbers[1]:
            return False, 'different numbers'
        return self._same_objects(right, said, question, is_part=is_part)

    def _same_objects(
        self, right: str, said: str, question: str, *, is_part: bool
    ) -> tuple[bool, str]:
        if _is_opposite(right, said):
            return False, 'the opposite'
        if same := _same_attribute(right, said, question):
            return same
        wanted = reading.noun_phrases(right)
        given = reading.noun_phrases(said)
        if not wanted or not given:
            return False, 'empty'
        is_choice = bool(_OFFERS.search(question))
        kinds = [{knowledge().name(thing.noun) for thing in named} for named in (wanted, given)]
        if not is_part and len(kinds[1]) > len(kinds[0]):
            return False, 'names more than is right'
        found = [
            any(self._is_same(thing, other, exactly=is_choice) for other in given)
            for thing in wanted
        ]
        return all(found) if is_joint(right) else any(found), 'objects'

    def _is_same(
        self, wanted: reading.NounPhrase, given: reading.NounPhrase, *, exactly: bool
    ) -> bool:
        """Return whether two phrases name one object; `exactly` as one of several is chosen."""
        if _conflict(wanted, given):
            return False
        if not wanted.noun or not given.noun:
            return not wanted.noun and _same_description(wanted, given)
        known = knowledge()
        first = wanted.noun.split()
        second = given.noun.split()
        if ''.join(first) == ''.join(second) or known.name(wanted.noun) == known.name(given.noun):
            return True
        by_head = 1 in (len(first), len(second)) and first[-1] == second[-1]
        by_words = set(map(known.canonical, first)) == set(map(known.canonical, second))
        if not exactly and (by_head or by_words or known.calls(wanted.noun, given.noun)):
            return True
        if self._embedder is None:
            return False
        features = self._embedder.embed([wanted.noun, given.noun])
        return float(features[0] @ features[1]) >= SIMILARITY_THRESHOLD


def _is_opposite(right: str, said: str) -> bool:
    """Return whether one text has a word, and the other only its opposite."""
    words = set(reading.words_of(right)), set(reading.words_of(said))
    return any(
        {a, b} & words[0] == {a} and {a, b} & words[1] == {b}
        for pair in knowledge().opposites
        for a, b in (pair, pair[::-1])
    )


def is_joint(right: str) -> bool:
    """Return whether "and" joins objects of a right answer, so that all have to be named."""
    parts = [part for part in right.split(',') if any(t.noun for t in reading.noun_phrases(part))]
    return len(reading.noun_phrases(right)) > len(parts)


def _same_polarity(right: str, said: str) -> tuple[bool, str]:
    found = reading.as_yes_no(said)
    return found is not None and found == reading.as_yes_no(right), f'said {found}'


def _is_close(question: Question, value: AnswerValue) -> tuple[bool, str]:
    right = reading.as_number(question.answer)
    said = reading.as_number(value)
    # "There are no chairs" counts them, a bare "no" does not.
    if said is None and right == 0 and reading.is_denial(value) and reading.plain(value) != 'no':
        said = 0.0
    if right is None or said is None:
        same = right is None and reading.plain(question.answer) == reading.plain(value)
        return same, 'not a number'
    return abs(right - said) <= question.tolerance + 1e-9, f'off by {abs(right - said):g}'


# Error that a number in a free text may have; the wording of an answer does not widen it.
RELATIVE_TOLERANCE = 0.01


def _same_quantity(right: str, said: str) -> bool:
    """Return whether an answer gives the right number, to half its last digit or 1 %."""
    wanted = reading.quantities(right)
    given = reading.quantities(said)
    if not len(wanted) == len(given) == 1:
        return [item.value for item in wanted] == [item.value for item in given]
    slack = max(wanted[0].step / 2, RELATIVE_TOLERANCE * abs(wanted[0].value)) + 1e-9
    return abs(wanted[0].value - given[0].value) <= slack


def _same_attribute(right: str, said: str, question: str) -> tuple[bool, str] | None:
    """Return whether the attribute that a question asks for is right, None if it asks for none."""
    asked = ASKS_ATTRIBUTE.search(question)
    wanted = reading.noun_phrases(right)
    given = reading.noun_phrases(reading.predicate(said, question))[:1]
    if asked and asked['materials'] and any(thing.materials for thing in wanted):
        true, found = (frozenset().union(*(x.materials for x in part)) for part in (wanted, given))
        # All that is said has to be right, as of colours, so that a list of all gains nothing.
        return bool(found) and found <= true, 'material'
    colors = [color for thing in wanted[:1] for color in thing.colors]
    if asked and asked['colors'] and colors:
        # "black and white" is not "white".
        stated = [color for thing in given for color in thing.colors]
        return bool(stated) and all(_is_one_of(color, colors) for color in stated), 'color'
    return None


def _is_one_of(color: str, others: Iterable[str]) -> bool:
    alike = (group for group in knowledge().one_color if color in group)
    return not {color}.union(*alike).isdisjoint(others)


def _same_description(wanted: reading.NounPhrase, given: reading.NounPhrase) -> bool:
    """Return whether one of two phrases without a noun says all that the other says."""
    first, second = ({*map(material_noun, phrase.adjectives)} for phrase in (wanted, given))
    first, second = ({basic_color(word) for word in words} for words in (first, second))
    return bool(first and second) and (first <= second or second <= first)


def _conflict(wanted: reading.NounPhrase, given: reading.NounPhrase) -> bool:
    """Return whether both give colours or materials, and share none of them."""
    shared = any(_is_one_of(color, wanted.colors) for color in given.colors)
    if wanted.colors and given.colors and not shared:
        return True
    return bool(wanted.materials and given.materials and not wanted.materials & given.materials)
