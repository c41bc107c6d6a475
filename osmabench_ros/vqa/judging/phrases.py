"""Reads the noun phrases of a short answer, with the words of `knowledge.yaml`."""

import re
from dataclasses import dataclass
from functools import lru_cache

from osmabench_ros.vqa.english import COLORS, MATERIALS, SHADES, material_noun, singular
from osmabench_ros.vqa.judging.reading import NUMBER_WORDS
from osmabench_ros.vqa.knowledge import knowledge

_SUFFIXES = ('ular', 'ical', 'ish', 'less', 'shaped', 'like')
_PARTICIPLE = re.compile(r'[a-z]{3,}(?:ed|ing)$')
_VERBS = frozenset(('is', 'are', 'was', 'were', 'be', 'being', 'has', 'have', 'can', 'exists'))
_DETERMINERS = frozenset(('a', 'an', 'the', 'this', 'that', 'these', 'those', 'its', 'their'))
_HUES = frozenset(COLORS) | {'taupe'}
_MATTER = frozenset(MATERIALS) | frozenset(MATERIALS.values()) | {'metallic'}


@dataclass(frozen=True)
class NounPhrase:
    """An object as an answer names it: its kind, e.g. 'coffee table', and the words before it."""

    noun: str
    adjectives: tuple[str, ...] = ()

    @property
    def colors(self) -> tuple[str, ...]:
        """Colours among the adjectives."""
        return tuple(word for word in self.adjectives if word in _HUES)

    @property
    def materials(self) -> frozenset[str]:
        """Materials among the adjectives and in the noun."""
        words = (*self.adjectives, *self.noun.split())
        return frozenset(_material(word) for word in words if word in _MATTER)


def _material(word: str) -> str:
    return 'metal' if word == 'metallic' else material_noun(word)


def _is_number(word: str) -> bool:
    return word in NUMBER_WORDS or word[0].isdigit()


_SCREEN = re.compile(r'\bscreen (?=tv\b|television\b)')
_COLORED = re.compile(r'[- ]colou?red\b|(?<=gray|pink)ish\b|(?<=brown|green|black)ish\b')


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text without hyphens, "gray-coloured" as "gray"."""
    text = _SCREEN.sub('', _COLORED.sub('', text.lower().replace('grey', 'gray')))
    words = re.findall(r"\d+(?:\.\d+)?|[a-z0-9']+", text.replace('-', ' '))
    return ['round' if word in knowledge().words['round'] else word for word in words]


def is_adjective(word: str) -> bool:
    """Return whether a word is descriptive rather than a name, by lists and endings."""
    return (
        word in _HUES
        or word in SHADES
        or word in MATERIALS.values()
        or word in knowledge().words['descriptive']
        or (len(word) > 5 and word.endswith(_SUFFIXES))
        or bool(re.fullmatch(r'[a-z]{3,}ed', word))
    )


@lru_cache(maxsize=65536)
def noun_phrases(text: str) -> tuple[NounPhrase, ...]:
    """Return the objects that an answer names, each once for each item of a list.

    Words after a preposition or a relative describe the object before it and are left out, a list
    of objects too ("a room with a bed, a door, and a lamp"); items that are only adjectives
    ("black, round table"; "couch, beige, soft") join their object.
    """
    items: list[list[str]] = []
    for sentence in re.split(r'[;&\n]|\.(?:\s|$)', text):
        parts = [words_of(part) for part in sentence.split(',')]
        for position, part in enumerate(parts):
            named = _before_postmodifiers(part)
            for item in re.split(r'\b(?:and|or)\b', ' '.join(named)):
                words = [word for word in item.split() if word not in knowledge().words['empty']]
                items += [words] if words else []
            later = parts[position + 1 :]
            if len(named) < len(part) and any(p[:1] in (['and'], ['or']) for p in later):
                break
    return _join_phrases(items)


def _before_postmodifiers(words: list[str]) -> list[str]:
    known = knowledge().words
    empty, ends = known['empty'], known['sides'] | known['relatives']
    named = False
    for position, word in enumerate(words):
        follows = words[position + 1] if position + 1 < len(words) else ''
        is_participle = bool(_PARTICIPLE.fullmatch(word))
        if named and (word in ends | _VERBS or (is_participle and follows in ends | _DETERMINERS)):
            return words[:position]
        named = named or not (is_adjective(word) or word in empty | {'and', 'or'})
    return words


def _is_description(words: list[str]) -> bool:
    """Return whether an item of a list does not name an object: "wood" is only a material."""
    return all(is_adjective(word) for word in words) or (len(words) == 1 and words[0] in _MATTER)


def _join_phrases(items: list[list[str]]) -> tuple[NounPhrase, ...]:
    found: list[NounPhrase] = []
    waiting: list[str] = []
    for position, words in enumerate(items):
        if _is_description(words):
            if found and all(_is_description(later) for later in items[position + 1 :]):
                last = found[-1]
                found[-1] = NounPhrase(last.noun, (*last.adjectives, *words))
            else:
                waiting += words
            continue
        phrase = _phrase(words)
        found.append(NounPhrase(phrase.noun, (*waiting, *phrase.adjectives)))
        waiting = []
    if waiting:
        found.append(NounPhrase('', tuple(waiting)))
    return tuple(found)


def _phrase(words: list[str]) -> NounPhrase:
    known = knowledge().words
    # A place ("on the wall") is read for its object, and a number of objects for their kind.
    while len(words) > 1 and (words[0] in known['sides'] | {'of'} or _is_number(words[0])):
        words = words[1:]
    if 'of' in words[1:-1]:
        place = words.index('of', 1)
        if singular(words[place - 1]) in known['partitives']:
            words = words[: place - 1] + words[place + 1 :]
        else:
            words = words[:place]
    described = [is_adjective(word) or word in _MATTER for word in words[:-1]]
    noun = [word for word, is_one in zip(words, described, strict=False) if not is_one]
    adjectives = [word for word, is_one in zip(words, described, strict=False) if is_one]
    return NounPhrase(' '.join((*noun, singular(words[-1]))), tuple(adjectives))


def predicate(answer: str, question: str) -> str:
    """Return the part of a sentence about an object that the question names, else the answer."""
    parts = re.split(r'\b(?:is|are|was|were)\b', answer, maxsplit=1)
    subject = [singular(word) for word in words_of(parts[0]) if word not in _DETERMINERS]
    asked = {singular(word) for word in words_of(question)}
    if len(parts) == 2 and parts[1].strip() and subject and set(subject) <= asked:
        return parts[1]
    return answer
