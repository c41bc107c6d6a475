"""Judges by rule: the same answer always gets the same verdict, without any network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.vqa.english import SHADES, material_noun
from osmabench_ros.vqa.grading import Grade, grade
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.judging.phrases import (
    NounPhrase,
    alternatives,
    directions,
    is_made_with,
    noun_phrases,
    predicate,
)
from osmabench_ros.vqa.judging.reading import (
    as_number,
    as_yes_no,
    is_denial,
    is_quantity,
    is_refusal,
    plain,
    quantities,
)
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict

SIMILARITY_THRESHOLD = 0.7
"""Cosine of the bundled sentence embedder from which two nouns count as one kind of thing."""

CHOICE_THRESHOLD = 0.5
"""The same where a question names what to choose from: the most similar one is meant."""

_BY_SYNONYM_OF_HEAD = 0.89
"""How alike a rug and a yoga mat are: enough only if what is said of both agrees."""

_ASKS_ATTRIBUTE = re.compile(
    r'\b(?:(?P<color>colou?rs?)|(?P<material>materials?|made (?:of|from|out of)))\b', re.IGNORECASE
)
_ASKS_PLACE = re.compile(r'\s*where\b|.*\b(?:location|position) of\b', re.IGNORECASE)
_ASKS_EXISTENCE = re.compile(
    r'\W*(?:(?:is|are|was|were) there\b|(?:does|do) (?:the|this) \w+ (?:contain|include)\b'
    r'|.*\b(?:present|visible|exists?)\b)',
    re.IGNORECASE,
)
_DENIES_EXISTENCE = re.compile(
    r'(?:there (?:is|are)\b|.*\bnot (?:found|present|visible|listed)\b)'
)
_BEGINS_YES_NO = re.compile(r'(?:yes|no|true|false)\b')

_ONE_COLOR = (
    {'beige', 'tan', 'cream', 'khaki', 'taupe'}, {'brown', 'tan'}, {'gray', 'silver'},
    {'yellow', 'gold'}, {'blue', 'navy'}, {'cyan', 'turquoise', 'teal'}, {'red', 'maroon'},
    {'green', 'olive'}, {'purple', 'violet'}, {'pink', 'magenta'}, {'white', 'ivory', 'cream'},
)  # fmt: skip
"""Colours that are names for one, or of which one is a kind of the other."""

_SHADE_OF = {'tan': 'light', 'cream': 'light', 'ivory': 'light', 'navy': 'dark', 'maroon': 'dark'}
"""Colours that say themselves how light they are."""

_OPPOSITES = (
    ('upper', 'lower'), ('left', 'right'), ('front', 'back'), ('top', 'bottom'),
    ('large', 'small'), ('big', 'small'), ('tall', 'short'), ('long', 'short'),
    ('wide', 'narrow'), ('thick', 'thin'), ('open', 'closed'), ('light', 'dark'),
    ('round', 'square'), ('round', 'rectangular'),
)  # fmt: skip


class Judge(Protocol):
    """Judges answers."""

    name: str

    def judge(
        self, pairs: Sequence[tuple[Question, Answer | None]], progress: Progress = silent
    ) -> list[Verdict]:
        """Return one verdict for each pair; no answer is a wrong answer."""
        ...


class DeterministicJudge:
    """Equality for yes and no, tolerance for numbers; reads what a text says and names.

    In this order: numbers, yes and no, what declines, what denies, what the question offers to
    choose from, the colour or material that it asks for, places, things. A thing is the same by
    its noun, a synonym or, with an embedder, a similar noun, unless colours, materials or
    opposites differ. Of things that "and" joins all have to be named, of a bare enumeration one.
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
            # An embedder keeps what it knows; one batch takes a tenth of the time of single nouns.
            self._embedder.embed(_nouns(pairs))
        return [self._verdict(question, answer) for question, answer in pairs]

    def _verdict(self, question: Question, answer: Answer | None) -> Verdict:
        if answer is None or answer.value is None:
            reason = 'no answer' if answer is None else answer.note or 'no answer'
            return Verdict(question.id, False, self.name, answered=False, reason=reason)
        formed = grade(question, answer.value)
        if formed is None:
            formed = Grade(*self._compare(question, answer))
        answered = not is_refusal(answer.value) or formed.correct
        correct, score = formed.correct, formed.score
        return Verdict(question.id, correct, self.name, answered, formed.reason, score=score)

    def _compare(self, question: Question, answer: Answer) -> tuple[bool, str]:
        assert answer.value is not None
        if question.answer_type is AnswerType.YES_NO:
            return _same_polarity(str(question.answer), str(answer.value), question.text)
        if question.answer_type in (AnswerType.INTEGER, AnswerType.NUMBER):
            return _close(question, answer)
        return self.same_text(str(question.answer), str(answer.value), question.text)

    def same_text(self, right: str, said: str, question: str = '') -> tuple[bool, str]:
        """Return whether two free texts give the same answer to a question, and by which rule."""
        if plain(right) == plain(said):
            return True, 'equal'
        if is_quantity(right):
            return _same_quantity(right, said), 'number'
        if _BEGINS_YES_NO.match(plain(right)):
            return _same_polarity(right, said, question)
        if is_refusal(said) or is_refusal(right):
            refused = [is_refusal(text) and not is_denial(text) for text in (right, said)]
            if any(refused):
                return all(refused), 'refusal'
        if is_denial(said) or is_denial(right):
            return is_denial(said) and is_denial(right), 'denial'
        if _BEGINS_YES_NO.match(plain(said)):
            return False, 'yes or no to an open question'
        first, second = quantities(right), quantities(said)
        if first and second and {q.value for q in first} != {q.value for q in second}:
            return False, 'different numbers'
        return self._same_things(right, said, question)

    def _same_things(self, right: str, said: str, question: str) -> tuple[bool, str]:
        if offered := alternatives(question):
            wanted = self._chosen(noun_phrases(right), offered)
            if wanted:
                return self._chosen(noun_phrases(said), offered) == wanted, 'choice'
        if same := _same_attribute(right, said, question):
            return same
        if _ASKS_PLACE.match(question):
            said = predicate(said, question)
        if not directions(right) & directions(said) and directions(right) and directions(said):
            return False, 'another direction'
        wanted_things, given = noun_phrases(right), noun_phrases(said)
        if not wanted_things or not given:
            return False, 'empty'
        shares = [max(self._likeness(thing, other) for other in given) for thing in wanted_things]
        found = min(shares) if is_joint(right) else max(shares)
        return found > 0, f'likeness {found:.2f}'

    def _chosen(
        self, given: Sequence[NounPhrase], offered: Sequence[NounPhrase]
    ) -> frozenset[int]:
        """Return which of the things that a question offers an answer names."""
        found = set()
        for phrase in given:
            scores = [self._likeness(one, phrase, CHOICE_THRESHOLD) for one in offered]
            best = max(scores)
            if best > 0 and scores.count(best) == 1:
                found.add(scores.index(best))
        return frozenset(found)

    def _likeness(
        self, wanted: NounPhrase, given: NounPhrase, threshold: float = SIMILARITY_THRESHOLD
    ) -> float:
        """Return how surely two phrases name one thing: 1 by the same noun, 0 if they do not."""
        if _conflict(wanted, given):
            return 0.0
        shared = len(set(wanted.adjectives) & set(given.adjectives))
        if not wanted.noun or not given.noun:
            return float(_same_description(wanted, given) and not wanted.noun)
        if any(is_made_with(word, wanted.noun) for word in given.adjectives):
            return 0.8
        kind = self._same_kind(wanted.noun, given.noun, threshold)
        if kind == _BY_SYNONYM_OF_HEAD and not shared:
            return 0.0
        return kind * (1 + 0.01 * shared)

    def _same_kind(self, wanted: str, given: str, threshold: float) -> float:
        if wanted.replace(' ', '') == given.replace(' ', ''):
            return 1.0
        known = knowledge()
        if known.calls(wanted, given):
            return 0.95
        first, second = wanted.split(), given.split()
        is_compound = 1 in (len(first), len(second))
        if is_compound and _is_head(first[-1], second[-1]):
            return 0.9
        if set(map(known.canonical, first)) == set(map(known.canonical, second)):
            return 0.9
        if is_compound and known.canonical(first[-1]) == known.canonical(second[-1]):
            return _BY_SYNONYM_OF_HEAD
        if any(known.calls(a, b) for a in _heads(wanted) for b in _heads(given) if a != b):
            return 0.88
        if self._embedder is None:
            return 0.0
        features = self._embedder.embed([wanted, given])
        cosine = float(features[0] @ features[1])
        return 0.85 * cosine if cosine >= threshold else 0.0


def _is_head(first: str, second: str) -> bool:
    """Return whether words name one kind; a doorway is a door, and a countertop a counter."""
    short, long = sorted((first, second), key=len)
    return long in (short, f'{short}way', f'{short}top')


def _heads(noun: str) -> tuple[str, ...]:
    """Return what a compound may be called for short: a "corner bookshelf" a "bookshelf"."""
    words = noun.split()
    return tuple(' '.join(words[start:]) for start in range(len(words)))


def is_joint(right: str) -> bool:
    """Return whether "and" joins things of a right answer, so that all have to be named."""
    parts = [part for part in right.split(',') if any(t.noun for t in noun_phrases(part))]
    return len(noun_phrases(right)) > len(parts)


def _nouns(pairs: Sequence[tuple[Question, Answer | None]]) -> list[str]:
    texts = [
        text
        for question, answer in pairs
        if question.answer_type is AnswerType.TEXT and answer is not None
        for text in (str(question.answer), str(answer.value))
    ]
    return sorted({thing.noun for text in texts for thing in noun_phrases(text) if thing.noun})


def _same_polarity(right: str, said: str, question: str) -> tuple[bool, str]:
    found = as_yes_no(said)
    if found and not _ASKS_EXISTENCE.match(question) and _DENIES_EXISTENCE.match(plain(said)):
        # That there is no sofa does not answer whether the sofa is blue.
        found = None
    return found is not None and found == as_yes_no(right), f'said {found}'


def _close(question: Question, answer: Answer) -> tuple[bool, str]:
    assert answer.value is not None
    right, said = as_number(question.answer), as_number(answer.value)
    # "There are no chairs" counts them, a bare "no" does not.
    if said is None and right == 0 and is_denial(answer.value) and plain(answer.value) != 'no':
        said = 0.0
    if right is None or said is None:
        same = right is None and plain(question.answer) == plain(answer.value)
        return same, 'not a number'
    slack = question.tolerance + 1e-9
    return abs(right - said) <= slack, f'off by {abs(right - said):g}'


def _same_quantity(right: str, said: str) -> bool:
    """Return whether an answer gives the right number, as exactly as either of them is given."""
    (wanted, *others), given = quantities(right), quantities(said)
    if others or len(given) != 1:
        return [q.value for q in quantities(right)] == [q.value for q in given]
    slack = max(wanted.step, given[0].step) / 2 + 1e-9
    return abs(wanted.value - given[0].value) <= slack


def _same_attribute(right: str, said: str, question: str) -> tuple[bool, str] | None:
    """Return whether the attribute that a question asks for is right, None if it asks for none."""
    asked = _ASKS_ATTRIBUTE.search(question)
    stated, wanted = predicate(said, question), noun_phrases(right)
    if asked and asked['material'] and any(thing.materials for thing in wanted):
        given = {material for thing in noun_phrases(stated)[:1] for material in thing.materials}
        return any(thing.materials & given for thing in wanted), 'material'
    shades = _shades(right)
    # "Light wooden" names a material in place of a colour.
    names_color = any(color for _, color in shades) or not any(t.materials for t in wanted)
    if asked and asked['color'] and shades and names_color:
        return _same_color(right, stated), 'color'
    return None


def lacks_attribute(right: str, said: str, question: str) -> str:
    """Return the attribute that is asked for and right, and of which an answer says nothing."""
    asked = _ASKS_ATTRIBUTE.search(question)
    if asked and asked['color'] and _shades(right) and not _shades(said):
        return 'colour'
    wanted, given = (any(t.materials for t in noun_phrases(text)) for text in (right, said))
    return 'material' if asked and asked['material'] and wanted and not given else ''


def _same_color(right: str, said: str) -> bool:
    """Return whether all colours that are said are among the right ones, and there is one."""
    wanted, given = _shades(right), _shades(said)
    return bool(given) and all(any(_is_same_shade(a, b) for b in wanted) for a in given)


def _shades(text: str) -> list[tuple[str, str]]:
    """Return the colours of an answer's things with the shade before each, '' for none."""
    found = []
    for phrase in (
        noun_phrases(text)[:1] if any(p.noun for p in noun_phrases(text)) else noun_phrases(text)
    ):
        shade = ''
        for word in phrase.adjectives:
            if word in SHADES:
                shade = word
            elif word in phrase.colors:
                found.append((shade, word))
                shade = ''
        if shade:
            found.append((shade, ''))
    return found


def _is_same_shade(first: tuple[str, str], second: tuple[str, str]) -> bool:
    shades = {shade or _SHADE_OF.get(color, '') for shade, color in (first, second)} - {''}
    if '' in (first[1], second[1]):
        return len(shades) == 1 and (
            first[1] == second[1] or first[0] == second[0] or 'black' in (first[1], second[1])
        )
    return len(shades) < 2 and _is_same_color(first[1], second[1])


def _is_same_color(first: str, second: str) -> bool:
    return first == second or any({first, second} <= group for group in _ONE_COLOR)


def _same_description(wanted: NounPhrase, given: NounPhrase) -> bool:
    """Return whether two phrases describe alike: all that one says, colours apart, says the other.

    Colours that differ are a conflict before; alone they are a description too.
    """
    first, second = (
        {material_noun(word) for word in phrase.adjectives if word not in phrase.colors}
        for phrase in (wanted, given)
    )
    if first and second:
        return first <= second or second <= first
    return not first and bool(wanted.colors and given.colors)


def _is_other_than_wood(painted: NounPhrase, wooden: NounPhrase) -> bool:
    """Return whether one thing has a colour that wood has not, and the other is of plain wood."""
    return (
        'wood' in wooden.materials
        and not wooden.colors
        and 'wood' not in painted.materials
        and bool(painted.colors)
        and not any(_is_same_color(color, 'brown') or color == 'beige' for color in painted.colors)
    )


def _conflict(wanted: NounPhrase, given: NounPhrase) -> bool:
    """Return whether both give colours or materials, or opposites, and share none of them."""
    if wanted.colors and given.colors:
        pairs = ((a, b) for a in wanted.colors for b in given.colors)
        if not any(_is_same_color(a, b) for a, b in pairs):
            return True
    if wanted.materials and given.materials and not wanted.materials & given.materials:
        return True
    if _is_other_than_wood(wanted, given) or _is_other_than_wood(given, wanted):
        return True
    words = set(wanted.adjectives), set(given.adjectives)
    return any(
        a in words[0] and b in words[1] for pair in _OPPOSITES for a, b in (pair, pair[::-1])
    )
