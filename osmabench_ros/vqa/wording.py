"""How questions are worded, and how that wording is read back."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from osmabench_ros.vqa import english
from osmabench_ros.vqa.kinds import KINDS, Kind, Query, QueryKind
from osmabench_ros.vqa.knowledge import AFFORDANCES, COMPARATIVES

RELATIONS = ('attached to', 'next to', 'near', 'under', 'in', 'on')
_SHADED = f'(?:(?:{"|".join(english.SHADES)}) )?(?:{"|".join(english.COLORS)})'
_SIDES = 'front|left|back|right'
_LISTS = {
    'relation': '|'.join(RELATIONS),
    'color': _SHADED,
    'material': '|'.join(english.MATERIALS),
    'more': '|'.join(COMPARATIVES),
    'done': '|'.join(AFFORDANCES),
    'number': r'\d+(?:\.\d+)?',
    'side': _SIDES,
    'facing': f'the .+? at the (?:{_SIDES})',
}
_SLOT = re.compile(r'\{(?:(\d):)?(\w+)\}')
_ARTICLES = {'a': r'(?:a|an) ', 'the': 'the ', 's': '', 'bare': '', 'name': ''}
_FORMS: Mapping[str, Callable[[str], str]] = {
    'a': english.indefinite,
    'the': english.definite,
    's': english.plural,
    'bare': english.bare,
    'name': str,
}
_NOUN = r'[^?,:.]+?'


def worded(query: Query, choice: int) -> str:
    """Return a query as a question; `choice` picks one of the wordings, modulo their number."""
    wordings = query.kind.wordings
    words = dict.fromkeys(_LISTS, query.word) | {'number': f'{query.number or 0.0:g}'}
    return fill_wording(wordings[choice % len(wordings)], query.phrases, words)


def fill_wording(wording: str, nouns: Sequence[str], words: Mapping[str, str]) -> str:
    """Return a wording with its slots filled: nouns by number, words by name."""

    def fill(slot: re.Match[str]) -> str:
        position, form = slot.groups()
        return words[form] if position is None else _FORMS[form](nouns[int(position)])

    return _SLOT.sub(fill, wording)


def compile_wording(wording: str) -> re.Pattern[str]:
    """Return a pattern of what `fill_wording` makes of a wording, for `read_match`."""
    start, *rest = _SLOT.split(wording)
    pattern = re.escape(start)
    for position, form, text in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if position is None:
            pattern += f'(?P<{form}>{_LISTS[form]})'
        else:
            many = '_s' if form == 's' else ''
            pattern += f'{_ARTICLES[form]}(?P<n{position}{many}>{_NOUN})'
        pattern += re.escape(text)
    return re.compile(pattern, re.IGNORECASE)


def read_match(match: re.Match[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the nouns and words that fill the slots of a text, in lower case."""
    nouns: dict[str, str] = {}
    words: dict[str, str] = {}
    for name, value in match.groupdict().items():
        if name in _LISTS:
            words[name] = value.lower()
        else:
            form = english.singular if name.endswith('_s') else english.without_article
            nouns[name] = form(value).lower()
    return tuple(nouns[key] for key in sorted(nouns)), words


@lru_cache(maxsize=1)
def _compile(kinds: tuple[Kind, ...]) -> tuple[tuple[str, Kind, re.Pattern[str]], ...]:
    """Wordings with the longest literal text first, so that the most specific one wins."""
    entries = [(wording, kind) for kind in kinds for wording in kind.wordings]
    entries.sort(key=lambda entry: (-len(_SLOT.sub('', entry[0])), entry[0]))
    return tuple((_SLOT.split(w)[0].lower(), kind, compile_wording(w)) for w, kind in entries)


def parsed(text: str) -> Query | None:
    """Return the meaning of a question, None if the wording is not one of a kind."""
    text = ' '.join(text.split())
    lowered = text.lower()
    for start, kind, pattern in _compile(tuple(KINDS.values())):
        match = pattern.fullmatch(text) if lowered.startswith(start) else None
        if match is not None:
            nouns, words = read_match(match)
            number = float(words.pop('number')) if 'number' in words else None
            return Query(kind, nouns, ''.join(words.values()), number)
    return None


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
