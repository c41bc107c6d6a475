"""How questions are worded, and how that wording is read back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from osmabench_ros.vqa import english
from osmabench_ros.vqa.knowledge import AFFORDANCES, COMPARATIVES
from osmabench_ros.vqa.questions import Query, QueryKind

# {0:a} "a red chair", {0:the} "the red chair", {0:s} "red chairs", {0:bare} "red chair";
# {relation}, {color}, {material}, {more}, {done} are words of closed lists; {number} is metres.
WORDINGS: Mapping[QueryKind, tuple[str, ...]] = MappingProxyType(
    {
        QueryKind.EXISTS: (
            'Is there {0:a} in the scene?',
            'Is there {0:a} here?',
            'Does the scene contain {0:a}?',
            'Could one find {0:a} in this place?',
            'Is {0:a} present in the scene?',
        ),
        QueryKind.ABSENT: (
            'Is the scene without {0:a}?',
            'Is it true that there is no {0:bare} here?',
            'Is {0:a} missing from the scene?',
            'Would one search this place for {0:a} in vain?',
        ),
        QueryKind.BOTH: (
            'Is there {0:a} AND {1:a}?',
            'Does the scene contain both {0:a} and {1:a}?',
            'Are {0:a} and {1:a} both present?',
        ),
        QueryKind.EITHER: (
            'Is there {0:a} OR {1:a}?',
            'Is at least one of these two present: {0:a} or {1:a}?',
            'Does the scene contain {0:a} or {1:a}, or both?',
        ),
        QueryKind.FIRST_ONLY: (
            'Is there {0:a} but NOT {1:a}?',
            'Does the scene contain {0:a} and no {1:bare}?',
        ),
        QueryKind.NEITHER: (
            'Is there NEITHER {0:a} NOR {1:a}?',
            'Are {0:a} and {1:a} both missing?',
        ),
        QueryKind.COUNT: (
            'How many {0:s} are there?',
            'How many {0:s} are in the scene?',
            'What is the number of {0:s} in the scene?',
            'Counting all {0:s} here, what is the total?',
        ),
        QueryKind.MORE_OF: ('Are there more {0:s} than {1:s}?', 'Do {0:s} outnumber {1:s} here?'),
        QueryKind.HEIGHT: (
            'How tall is {0:the} in metres?',
            'What is the height of {0:the} in metres, from its lowest to its highest point?',
            'How many metres does {0:the} measure from bottom to top?',
        ),
        QueryKind.DISTANCE: (
            'How far apart are the centres of {0:the} and {1:the} in metres?',
            'What is the distance in metres between the centre of {0:the} and that of {1:the}?',
        ),
        QueryKind.COLOR_OF: (
            'What color is {0:the}?',
            'What is the color of {0:the}?',
            'Which color does {0:the} have?',
        ),
        QueryKind.HAS_COLOR: (
            'Is {0:the} {color}?',
            'Is {color} the color of {0:the}?',
            'Does {0:the} have the color {color}?',
        ),
        QueryKind.MATERIAL_OF: (
            'What is {0:the} made of?',
            'Which material is {0:the} made of?',
            'What is the material of {0:the}?',
        ),
        QueryKind.HAS_MATERIAL: (
            'Is {0:the} made of {material}?',
            'Is {material} the material of {0:the}?',
        ),
        QueryKind.RELATED: (
            'Is {0:the} {relation} {1:the}?',
            'Is it true that {0:the} is {relation} {1:the}?',
            'Would one find {0:the} {relation} {1:the}?',
        ),
        QueryKind.RELATED_TO: (
            'What is {relation} {0:the}?',
            'Which object is {relation} {0:the}?',
            'What can be found {relation} {0:the}?',
        ),
        QueryKind.SUPPORT_OF: (
            'Which object supports {0:the}?',
            'What serves as support for {0:the}?',
            'What bears the weight of {0:the}?',
        ),
        QueryKind.SUPPORTED_BY: (
            'Which object does {0:the} support?',
            'What does {0:the} serve as support for?',
        ),
        QueryKind.CONTAINER_OF: (
            'Which object contains {0:the}?',
            'What does {0:the} lie inside of?',
            'What serves as container for {0:the}?',
        ),
        QueryKind.FIXED_TO: ('What is {0:the} fixed to?', 'Which object holds {0:the} in place?'),
        QueryKind.WHICH_MORE: (
            'Which is {more}: {0:the} or {1:the}?',
            'Which of the two is {more}, {0:the} or {1:the}?',
            'Comparing {0:the} with {1:the}, which is {more}?',
        ),
        QueryKind.IS_MORE: (
            'Is {0:the} {more} than {1:the}?',
            'Compared with {1:the}, is {0:the} {more}?',
        ),
        QueryKind.CLOSER: (
            'Which is closer to {2:the}: {0:the} or {1:the}?',
            'Starting from {2:the}, which is nearer: {0:the} or {1:the}?',
        ),
        QueryKind.REACHABLE: (
            'Can a gripper that reaches {number} m above the floor touch the top of {0:the}?',
            'Is the top of {0:the} within reach of an arm that ends {number} m above the floor?',
        ),
        QueryKind.PASSABLE: (
            'Is the gap between {0:the} and {1:the} wide enough for a robot of {number} m?',
            'Could a robot {number} m wide drive between {0:the} and {1:the}?',
        ),
        QueryKind.CLEARANCE: (
            'Are the {number} m above {0:the} free of other objects?',
            'Is there at least {number} m between the top of {0:the} and the next object above?',
        ),
        QueryKind.AFFORDS_ON: (
            'Is there anything on {0:the} that can be {done}?',
            'Does {0:the} bear anything that can be {done}?',
        ),
        QueryKind.AFFORDS_NEAR: (
            'Is there something next to {0:the} that can be {done}?',
            'Can anything next to {0:the} be {done}?',
        ),
        QueryKind.AFFORDS_COUNT: (
            'How many objects of the scene can be {done}?',
            'What is the number of objects here that can be {done}?',
        ),
        QueryKind.LOADED: (
            'Must anything be taken off {0:the} before it can be carried away?',
            'Does {0:the} have to be cleared before a robot moves it?',
        ),
        QueryKind.UNLOADED: (
            'Is {0:the} bare on top, so that it can be carried away at once?',
            'Can a robot move {0:the} without first taking something off it?',
        ),
        QueryKind.OPEN_FIRST: (
            'What must be opened before {0:the} can be taken out?',
            'Which object has to be opened to get at {0:the}?',
        ),
        QueryKind.CENTER: (
            'What are the coordinates of the centre of {0:the} in metres?',
            'Where is the centre of {0:the}, as x, y and z in metres?',
        ),
        QueryKind.SAME_ROOM: (
            'Are {0:the} and {1:the} in the same room?',
            'Do {0:the} and {1:the} stand in one room?',
        ),
        QueryKind.COUNT_WITH: (
            'How many {0:s} are in the room with {1:the}?',
            'In the room with {1:the}, how many {0:s} are there?',
        ),
        QueryKind.ROOM_AREA: (
            'What is the floor area in square metres of the room with {0:the}?',
            'How many square metres of floor are in the room with {0:the}?',
        ),
        QueryKind.WALK: (
            'What is the navigable distance in metres between {0:the} and {1:the}?',
            'How long is the shortest way for a robot from {0:the} to {1:the} in metres?',
        ),
        QueryKind.WALK_CLOSER: (
            'Which is the shorter way for a robot from {2:the}: to {0:the} or to {1:the}?',
            'Driving off at {2:the}, is the way shorter to {0:the} or to {1:the}?',
        ),
        QueryKind.ROUND: (
            'How many {0:s} stand right next to {1:the}?',
            'What is the number of {0:s} right next to {1:the}?',
        ),
        QueryKind.ALIKE: (
            'Are all {0:s} of the scene equally tall?',
            'Do all {0:s} here have one and the same height?',
        ),
        QueryKind.ROW: (
            'Do all {0:s} of the scene stand in one straight line?',
            'Are all {0:s} here lined up in a row?',
        ),
        QueryKind.FITS_ON: (
            'Would {0:the} fit on top of {1:the} without jutting out?',
            'If {0:the} were put onto {1:the}, would it lie there without jutting out?',
        ),
        QueryKind.WHICH_FITS: (
            'Which would fit on top of {2:the} without jutting out: {0:the} or {1:the}?',
            'Put onto {2:the}, which would lie there without jutting out: {0:the} or {1:the}?',
        ),
        QueryKind.WALK_SIDE: (
            'On the shortest way for a robot from {0:the} to {1:the}, to which side does it turn '
            'off the straight line, left or right?',
            'Does the shortest way for a robot from {0:the} to {1:the} lie left or right of the '
            'straight line?',
        ),
        QueryKind.ROOMS_ALIKE: (
            'Is the room with {0:the} about as large as the room with {1:the}?',
            'Do the room with {0:the} and the room with {1:the} have similar floor areas?',
        ),
        QueryKind.MIRRORED: (
            'Do the two {0:s} of the scene stand symmetrically about {1:the}?',
            'Are the two {0:s} here mirror images in their places on both sides of {1:the}?',
        ),
        QueryKind.UPSTAIRS: (
            'Is {0:the} upstairs?',
            'Does one have to go upstairs to get to {0:the}?',
        ),
        QueryKind.FLOOR_OF: (
            'On which floor is {0:the}, counted from 0 at the bottom?',
            'What is the number of the floor with {0:the}, where the lowest is 0?',
        ),
    }
)

RELATIONS = ('attached to', 'next to', 'near', 'under', 'in', 'on')
_SHADED = f'(?:(?:{"|".join(english.SHADES)}) )?(?:{"|".join(english.COLORS)})'
_LISTS = {
    'relation': '|'.join(RELATIONS),
    'color': _SHADED,
    'material': '|'.join(english.MATERIALS),
    'more': '|'.join(COMPARATIVES),
    'done': '|'.join(AFFORDANCES),
    'number': r'\d+(?:\.\d+)?',
}
_SLOT = re.compile(r'\{(?:(\d):)?(\w+)\}')
_ARTICLES = {'a': r'(?:a|an) ', 'the': 'the ', 's': '', 'bare': ''}
_FORMS: Mapping[str, Callable[[str], str]] = {
    'a': english.indefinite,
    'the': english.definite,
    's': english.plural,
    'bare': english.bare,
}
_NOUN = r'[^?,:.]+?'


def worded(query: Query, choice: int) -> str:
    """Return a query as a question; `choice` picks one of the wordings, modulo their number."""
    wordings = WORDINGS[query.kind]

    def filled(slot: re.Match[str]) -> str:
        position, form = slot.groups()
        if position is None:
            return f'{query.number:g}' if form == 'number' else query.word
        noun = query.phrases[int(position)]
        return _FORMS[form](noun)

    return _SLOT.sub(filled, wordings[choice % len(wordings)])


def _pattern(wording: str) -> re.Pattern[str]:
    parts, end = [], 0
    for slot in _SLOT.finditer(wording):
        parts.append(re.escape(wording[end : slot.start()]))
        position, form = slot.groups()
        if position is None:
            parts.append(f'(?P<{"number" if form == "number" else "word"}>{_LISTS[form]})')
        else:
            many = '_s' if form == 's' else ''
            parts.append(f'{_ARTICLES[form]}(?P<n{position}{many}>{_NOUN})')
        end = slot.end()
    parts.append(re.escape(wording[end:]))
    return re.compile(''.join(parts), re.IGNORECASE)


@lru_cache(maxsize=1)
def _grammar() -> tuple[tuple[str, QueryKind, re.Pattern[str]], ...]:
    """Wordings with the longest literal text first, so that the most specific one wins."""
    entries = [(wording, kind) for kind, wordings in WORDINGS.items() for wording in wordings]
    entries.sort(key=lambda entry: (-len(_SLOT.sub('', entry[0])), entry[0]))
    return tuple((_SLOT.split(w)[0].lower(), kind, _pattern(w)) for w, kind in entries)


def parsed(text: str) -> Query | None:
    """Return the meaning of a question, None if the wording is not one of `WORDINGS`."""
    text = ' '.join(text.split())
    lowered = text.lower()
    for start, kind, pattern in _grammar():
        if not lowered.startswith(start):
            continue
        match = pattern.fullmatch(text)
        if match is not None:
            return _query(kind, match.groupdict())
    return None


def _query(kind: QueryKind, groups: Mapping[str, str]) -> Query:
    phrases = {}
    for name, value in groups.items():
        if name.startswith('n') and name != 'number':
            many = name.endswith('_s')
            noun = english.singular(value) if many else english.without_article(value)
            phrases[name[1]] = noun.lower()
    number = float(groups['number']) if 'number' in groups else None
    nouns = tuple(phrases[key] for key in sorted(phrases))
    return Query(kind, nouns, groups.get('word', '').lower(), number)


def evidence_of(query: Query) -> str:
    """Return 'colors' or 'materials' if the answer rests on one, colours first, else 'rest'."""
    adjectives = {
        word
        for phrase in query.phrases
        for word in phrase.removesuffix(english.without_adjectives(phrase)).split()
    }
    if query.kind in (QueryKind.COLOR_OF, QueryKind.HAS_COLOR):
        return 'colors'
    if query.kind in (QueryKind.MATERIAL_OF, QueryKind.HAS_MATERIAL):
        return 'materials'
    materials = set(english.MATERIALS.values())
    if adjectives - materials:
        return 'colors'
    return 'materials' if adjectives else 'rest'
