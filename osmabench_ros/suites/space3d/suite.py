"""Space3D-Bench: answers by rule from the recorded map, and grades of answers in sentences."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from osmabench_ros.suites.question_suite import ExactQuestionsSuite
from osmabench_ros.suites.space3d.folder import DetectedObject, Triple
from osmabench_ros.vqa.exact import measurement, relations, robot_tasks, space
from osmabench_ros.vqa.exact.generation import QuestionSet
from osmabench_ros.vqa.judging import reading
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.judging.phrases import noun_phrases, words_of
from osmabench_ros.vqa.kinds import COORDINATE_TOLERANCE_M, WALK_TOLERANCE_M, QueryKind
from osmabench_ros.vqa.questions import SpatialCategory

STRAIGHT_TOLERANCE_M = 0.2
"""How far a straight distance may be off."""

_SLACK_M = 1e-9
_NUMBER = r'[-+]?\d+(?:\.\d+)?'
_TRIPLE = re.compile(
    rf'[\[(]\s*({_NUMBER})\s*m?\s*,\s*({_NUMBER})\s*m?\s*,\s*({_NUMBER})\s*m?\s*[\])]'
    rf'|\bx\s*[:=]?\s*({_NUMBER})\W+y\s*[:=]?\s*({_NUMBER})\W+z\s*[:=]?\s*({_NUMBER})',
    re.IGNORECASE,
)
_IDS = re.compile(
    r'(?:\bids?\b\W{0,4}(?:(?:is|are|of|number)\W+)?|#)(\d+(?:\W{0,3}(?:and\W+|ids?\W+|#)?\d+\b)*)'
    r'(?!\.\d|\s*(?:m|cm|met(?:er|re)s?)\b)',
    re.IGNORECASE,
)
_LABEL = re.compile(r'^[A-Za-z][\w /()-]{0,60}:\s*(?=\S)')
_NAVIGABLE = re.compile(
    r'\b(?:navig\w*|walk\w*|paths?|routes?|driv\w*|travel\w*)\b', re.IGNORECASE
)
_DISTANCE = re.compile(r'\b(?:distances?|far|apart)\b', re.IGNORECASE)
_CLAUSE = re.compile(r'\b(?:is|are|was|were|has|have|can|could|would|will|there)\b', re.IGNORECASE)
_LACKS = re.compile(r"\s+(?:do|does)(?: not|n't) (?:contain|have|include)\b.*", re.IGNORECASE)
"""After a list of rooms: "kitchen, study do not contain a bed"."""

_SHORT_WORDS = 6
"""A thing that a shorter answer does not name is not hidden in a clause of it."""


@dataclass(frozen=True)
class Facts:
    """Facts of a sentence: coordinates, ids of objects, and the words left."""

    coordinates: tuple[Triple, ...]
    ids: frozenset[int]
    rest: str

    @property
    def values(self) -> list[float]:
        """Numbers other than coordinates and ids, lengths in metres; only lengths if any."""
        found = reading.quantities(self.rest)
        lengths = [item.value for item in found if item.is_length]
        return lengths or [item.value for item in found]


@lru_cache(maxsize=4096)
def facts_of(text: str) -> Facts:
    """Return the facts that a right answer or a system's answer states."""
    triples = []
    rest = text
    for match in _TRIPLE.finditer(text):
        numbers = [part for part in match.groups() if part is not None]
        if match[4] is not None or any('.' in number for number in numbers):
            x, y, z = map(float, numbers)
            triples.append((x, y, z))
            rest = rest.replace(match[0], ' ', 1)
    ids = {int(number) for match in _IDS.finditer(rest) for number in re.findall(r'\d+', match[1])}
    return Facts(tuple(triples), frozenset(ids), ' '.join(_IDS.sub(' ', rest).split()))


@dataclass(frozen=True)
class RuleGrade:
    """Whether an answer is right, None if no rule fits, and the rule."""

    correct: bool | None
    rule: str


_NO_RULE = RuleGrade(None, 'no rule fits')


@dataclass(frozen=True)
class SentenceGrader:
    """Grades answers against right answers in text.

    In this order: what declines; coordinates; distances, navigable ones with a larger tolerance;
    yes and no; a number of objects; ids; names of objects. The two objects of a distance
    have to be the ones of the right answer, by id or by the coordinates of their `detections`; an
    answer that leaves them open is left to a judge, as is one that gives several numbers of which
    only some are right.
    """

    detections: Mapping[int, DetectedObject] = field(default_factory=dict)
    judge: DeterministicJudge = field(default_factory=DeterministicJudge)

    def grade(self, question: str, right: str, said: str, criterion: str = '') -> RuleGrade:
        """Return the grade of an answer to a question."""
        if not reading.is_refusal(right):
            sentences = re.split(r'(?<=[.;\n])\s+', said)
            if reading.is_refusal(sentences[0]):
                return RuleGrade(False, 'declines')
            # A later one may say of another room that something is not known of it.
            said = ' '.join(sentence for sentence in sentences if not reading.is_refusal(sentence))
        wanted, given = facts_of(right), facts_of(said)
        wanted = replace(wanted, rest=_LABEL.sub('', wanted.rest.strip(' ,;.')))
        if wanted.coordinates:
            return self._grade_coordinates(wanted, given)
        context = f'{question} {right} {criterion}'
        lengths = [item for item in reading.quantities(wanted.rest) if item.is_length]
        numbers = len(reading.quantities(wanted.rest))
        if numbers == 1 and (lengths or (_DISTANCE.search(f'{question} {right}'))):
            tolerance_m = WALK_TOLERANCE_M if _NAVIGABLE.search(context) else STRAIGHT_TOLERANCE_M
            return self._grade_distance(wanted, given, tolerance_m)
        if re.match(r'(?:yes|no)\b', reading.plain(right)):
            polarity = reading.as_yes_no(said)
            if polarity is None:
                return _NO_RULE
            return RuleGrade(polarity == reading.as_yes_no(right), 'yes or no')
        if reading.is_quantity(wanted.rest) and numbers == 1:
            return _count(wanted, given, said)
        if wanted.ids and not re.search(r'[A-Za-z]{3,}', wanted.rest):
            if not given.ids:
                return _NO_RULE
            return RuleGrade(wanted.ids == given.ids, 'ids')
        return self._grade_objects(wanted.rest, said, question)

    def _grade_coordinates(self, wanted: Facts, given: Facts) -> RuleGrade:
        stated = [*given.coordinates, *self._find_centers(given.ids)]
        if not stated:
            return _NO_RULE
        return RuleGrade(
            all(any(_is_near(a, b) for b in stated) for a in wanted.coordinates)
            and len(given.coordinates) <= len(wanted.coordinates),
            'coordinates',
        )

    def _grade_distance(self, wanted: Facts, given: Facts, tolerance_m: float) -> RuleGrade:
        (right,) = wanted.values
        near = [abs(value - right) <= tolerance_m + _SLACK_M for value in given.values]
        if not near:
            return _NO_RULE
        if not any(near):
            return RuleGrade(False, f'distance, {tolerance_m} m')
        if not all(near):
            return _NO_RULE
        if wanted.ids and given.ids:
            return RuleGrade(wanted.ids == given.ids, 'distance and ids')
        if wanted.ids and given.coordinates:
            centers = self._find_centers(wanted.ids)
            if len(centers) < len(wanted.ids):
                return _NO_RULE
            same = all(any(_is_near(a, b) for b in given.coordinates) for a in centers)
            return RuleGrade(same, 'distance and coordinates')
        return _NO_RULE if wanted.ids else RuleGrade(True, f'distance, {tolerance_m} m')

    def _find_centers(self, ids: frozenset[int]) -> list[Triple]:
        known = self.detections
        return [known[number].center for number in sorted(ids) if number in known]

    def _grade_objects(self, right: str, said: str, question: str) -> RuleGrade:
        """Return whether all objects or rooms are named, for an answer that only names some."""
        right, said = _LACKS.sub('', right), _LACKS.sub('', said)
        if not right or _CLAUSE.search(right) or len(words_of(right)) > 3 * _SHORT_WORDS:
            return _NO_RULE
        parts = [part.strip() for part in re.split(r',|\band\b', right) if part.strip()]
        if not all(noun_phrases(part) for part in parts):
            return _NO_RULE
        named = [self.judge.same_text(part, said, question, is_part=True)[0] for part in parts]
        is_list = not _CLAUSE.search(said)
        if all(named):
            more = is_list and len(noun_phrases(said)) > len(parts)
            return RuleGrade(not more, 'named things')
        short = len(words_of(said)) <= _SHORT_WORDS
        return RuleGrade(False, 'named things') if short or any(named) else _NO_RULE


def _count(wanted: Facts, given: Facts, said: str) -> RuleGrade:
    (right,) = wanted.values
    values = set(given.values)
    if not values and reading.is_denial(said):
        values = {0.0}
    if len(values) != 1:
        return RuleGrade(False, 'gives no number') if not values else _NO_RULE
    return RuleGrade(abs(values.pop() - right) <= _SLACK_M, 'number')


def _is_near(first: Triple, second: Triple) -> bool:
    off = np.abs(np.subtract(first, second))
    return bool((off <= COORDINATE_TOLERANCE_M + _SLACK_M).all())


_KINDS = {
    SpatialCategory.LOCATION: (QueryKind.CENTER, QueryKind.SAME_ROOM),
    SpatialCategory.MEASUREMENT: (
        QueryKind.DISTANCE,
        QueryKind.HEIGHT,
        QueryKind.COUNT,
        QueryKind.COUNT_WITH,
        QueryKind.ROOM_AREA,
    ),
    SpatialCategory.RELATION: (
        QueryKind.RELATED,
        QueryKind.RELATED_TO,
        QueryKind.SUPPORT_OF,
        QueryKind.CONTAINER_OF,
    ),
    SpatialCategory.NAVIGATION: (QueryKind.WALK, QueryKind.WALK_CLOSER, QueryKind.WALK_SIDE),
    SpatialCategory.PATTERN: (
        QueryKind.ROUND,
        QueryKind.ALIKE,
        QueryKind.ROW,
        QueryKind.MORE_OF,
        QueryKind.ROOMS_ALIKE,
        QueryKind.MIRRORED,
    ),
    SpatialCategory.PREDICTION: (
        QueryKind.FITS_ON,
        QueryKind.WHICH_FITS,
        QueryKind.PASSABLE,
        QueryKind.REACHABLE,
        QueryKind.CLEARANCE,
    ),
}

SPACE3D = QuestionSet(
    'space3d',
    'space3d/2',
    tuple(category.value for category in SpatialCategory),
    (
        space.places,
        space.rooms,
        measurement.counts,
        measurement.lengths,
        relations.spatial,
        relations.functional,
        space.ways,
        space.patterns,
        measurement.numbers,
        space.fits,
        robot_tasks.reachability,
    ),
    {kind: category for category, kinds in _KINDS.items() for kind in kinds},
    {QueryKind.DISTANCE: STRAIGHT_TOLERANCE_M},
)


class Space3dSuite(ExactQuestionsSuite):
    """Accuracy of the answers a recorded map gives to the six kinds of Space3D-Bench.

    Ways are looked for on the map's own points.
    """

    name = SPACE3D.suite
    asked = SPACE3D
