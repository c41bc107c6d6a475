"""How questions are worded, and how that wording is read back."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from osmabench_ros.vqa import english
from osmabench_ros.vqa.kinds import KINDS, Kind, Query, QueryKind
from osmabench_ros.vqa.knowledge import AFFORDANCES, COMPARATIVES

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
    wordings = query.kind.wordings

    def fill(slot: re.Match[str]) -> str:
        position, form = slot.groups()
        if position is None:
            return f'{query.number:g}' if form == 'number' else query.word
        noun = query.phrases[int(position)]
        return _FORMS[form](noun)

    return _SLOT.sub(fill, wordings[choice % len(wordings)])


def _compile_wording(wording: str) -> re.Pattern[str]:
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
def _compile(kinds: tuple[Kind, ...]) -> tuple[tuple[str, Kind, re.Pattern[str]], ...]:
    """Wordings with the longest literal text first, so that the most specific one wins."""
    entries = [(wording, kind) for kind in kinds for wording in kind.wordings]
    entries.sort(key=lambda entry: (-len(_SLOT.sub('', entry[0])), entry[0]))
    return tuple((_SLOT.split(w)[0].lower(), kind, _compile_wording(w)) for w, kind in entries)


def parsed(text: str) -> Query | None:
    """Return the meaning of a question, None if the wording is not one of a kind."""
    text = ' '.join(text.split())
    lowered = text.lower()
    for start, kind, pattern in _compile(tuple(KINDS.values())):
        if not lowered.startswith(start):
            continue
        match = pattern.fullmatch(text)
        if match is not None:
            return _query(kind, match.groupdict())
    return None


def _query(kind: Kind, groups: Mapping[str, str]) -> Query:
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
