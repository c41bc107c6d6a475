"""Removes bad written questions by rule, and keeps the reasons."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa.exact.selection import overused
from osmabench_ros.vqa.judging.reading import as_number, as_yes_no, plain
from osmabench_ros.vqa.questions import AnswerType, Category

MOST_OVERUSED_IN_FRAME = 5
"""Questions about overused objects that one frame may contribute, as in OSMa-Bench."""

_VIEW = re.compile(
    r'\b(?:left|right|front|behind|background|foreground|facing'
    r'|in the (?:image|photo|photograph|picture|frame|view|scene description)|visible'
    r'|the statements?|camera|viewer)\b',
    re.IGNORECASE,
)  # fmt: skip
_VAGUE = re.compile(
    r'\b(?:something|anything else|some object|might|maybe|probably|possibly|seems?|appears?'
    r'|and/or|several|various|many|few|assorted|unknown|cannot be|not specified)\b',
    re.IGNORECASE,
)
_YES_NO_CATEGORIES = frozenset(
    (
        Category.EXISTENCE_POSITIVE.value,
        Category.EXISTENCE_NEGATIVE.value,
        Category.BINARY_LOGICAL.value,
    )
)


@dataclass(frozen=True)
class Candidate:
    """A written question on its way through validation; `objects` are normalised names."""

    id: str
    frame: int
    category: str
    text: str
    answer: str
    objects: tuple[str, ...]

    @property
    def answer_type(self) -> AnswerType:
        """Kind of its answer."""
        if plain(self.answer) in ('yes', 'no'):
            return AnswerType.YES_NO
        return (
            AnswerType.INTEGER if self.category == Category.MEASUREMENT.value else AnswerType.TEXT
        )


@dataclass(frozen=True)
class Removal:
    """Why a question was removed; stages are 'rules', 'overuse', 'model check' and 'balance'."""

    question_id: str
    text: str
    stage: str
    reason: str


Sifted = tuple[list[Candidate], list[Removal]]


def removed(candidate: Candidate, stage: str, reason: str) -> Removal:
    """Return the removal of a candidate."""
    return Removal(candidate.id, candidate.text, stage, reason)


def sift_by_rules(
    candidates: Sequence[Candidate], counts: Mapping[int, Mapping[str, int]]
) -> Sifted:
    """Remove malformed, view-dependent, vague, duplicate and contradictory questions.

    `counts` has, by frame, how many of each object its description has. Of two equal questions
    "Yes" beats "No", and the larger number wins, because one frame does not show everything.
    """
    kept: list[Candidate] = []
    removals: list[Removal] = []
    for candidate in candidates:
        reason = _fault(candidate, counts.get(candidate.frame, {}))
        if reason:
            removals.append(removed(candidate, 'rules', reason))
        else:
            kept.append(candidate)
    unique, more = _without_duplicates(kept)
    return unique, [*removals, *more]


def _fault(candidate: Candidate, counts: Mapping[str, int]) -> str:
    known = {category.value for category in Category}
    checks: tuple[tuple[bool, str], ...] = (
        (candidate.category not in known, f'unknown category "{candidate.category}"'),
        (bool(_VIEW.search(candidate.text)), 'depends on the viewpoint or names the image'),
        (bool(_VAGUE.search(candidate.answer)), 'the answer is vague'),
        (len(candidate.answer.split()) > 6, 'the answer is longer than a noun phrase'),
        (
            candidate.category in _YES_NO_CATEGORIES and as_yes_no(candidate.answer) is None,
            'the answer of a yes-or-no category is neither',
        ),
        (
            candidate.category == Category.MEASUREMENT.value
            and as_number(candidate.answer) is None,
            'the answer of a measurement is no number',
        ),
    )
    return next((reason for fails, reason in checks if fails), '') or _miscount(candidate, counts)


def _miscount(candidate: Candidate, counts: Mapping[str, int]) -> str:
    """Compare a count with the description it was written from."""
    number = as_number(candidate.answer)
    if candidate.category != Category.MEASUREMENT.value or number is None:
        return ''
    if len(candidate.objects) != 1 or candidate.objects[0] not in counts:
        return ''
    described = counts[candidate.objects[0]]
    return '' if described == number else f'the description has {described}'


def _without_duplicates(candidates: Sequence[Candidate]) -> Sifted:
    groups: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[plain(candidate.text).rstrip('?')].append(candidate)
    kept_ids: set[str] = set()
    removals: list[Removal] = []
    for group in groups.values():
        winner = max(group, key=_weight)
        answers = {plain(candidate.answer) for candidate in group}
        is_text = winner.answer_type is AnswerType.TEXT
        if len(answers) > 1 and is_text:
            removals += [removed(c, 'rules', 'frames contradict each other') for c in group]
            continue
        kept_ids.add(winner.id)
        losers = [candidate for candidate in group if candidate is not winner]
        removals += [removed(c, 'rules', f'duplicate of {winner.id}') for c in losers]
    return [candidate for candidate in candidates if candidate.id in kept_ids], removals


def _weight(candidate: Candidate) -> tuple[float, float]:
    number = as_number(candidate.answer)
    return (float(as_yes_no(candidate.answer) == 'yes'), -1.0 if number is None else number)


def sift_by_overuse(candidates: Sequence[Candidate]) -> Sifted:
    """Limit questions about objects that are asked about far more than the median object.

    OSMa-Bench's rule: an object is overused above three times the median; a frame keeps five
    questions about overused objects.
    """
    too_often = overused(candidates, lambda candidate: candidate.objects)
    in_frame: Counter[int] = Counter()
    kept, removals = [], []
    for candidate in candidates:
        names = sorted(too_often.intersection(candidate.objects))
        in_frame[candidate.frame] += bool(names)
        if names and in_frame[candidate.frame] > MOST_OVERUSED_IN_FRAME:
            removals.append(removed(candidate, 'overuse', f'"{names[0]}" is overused'))
        else:
            kept.append(candidate)
    return kept, removals


def object_histogram(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Return how many questions mention each object, most frequent first."""
    counts = Counter(name for candidate in candidates for name in set(candidate.objects))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def balanced(candidates: Sequence[Candidate]) -> Sifted:
    """Cut the longer side of yes and no in each category; objects asked about most go first."""
    usage = Counter(object_histogram(candidates))
    sides: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        said = as_yes_no(candidate.answer) if candidate.answer_type is AnswerType.YES_NO else None
        if said is not None:
            sides[_balance_group(candidate.category), said].append(candidate)
    removals: list[Removal] = []
    for (group, said), items in sorted(sides.items()):
        other = len(sides.get((group, 'no' if said == 'yes' else 'yes'), ()))
        room = other if other else -(-len(items) // 3)
        most_asked = sorted(items, key=lambda c: (-_usage(c, usage), c.id))
        for candidate in most_asked[: max(0, len(items) - room)]:
            removals.append(removed(candidate, 'balance', f'too many answers "{said}"'))
    gone = {removal.question_id for removal in removals}
    return [candidate for candidate in candidates if candidate.id not in gone], removals


def _balance_group(category: str) -> str:
    """Existence-Positive and -Negative hold one side each and are balanced against each other."""
    return 'Existence' if category.startswith('Existence') else category


def _usage(candidate: Candidate, usage: Mapping[str, int]) -> int:
    return max((usage.get(name, 0) for name in candidate.objects), default=0)


def normalize_objects(names: Iterable[Any]) -> tuple[str, ...]:
    """Return object names in one spelling, each once, in order."""
    return tuple(dict.fromkeys(normalised_name(str(name)) for name in names if str(name).strip()))
