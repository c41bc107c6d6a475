"""Reads the things that a short answer names: noun phrases, lists, places, alternatives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from osmabench_ros.vqa.english import COLORS, MATERIALS, SHADES, material_noun, singular
from osmabench_ros.vqa.judging.reading import NUMBER_WORDS

_DETERMINERS = frozenset(
    ('a', 'an', 'the', 'this', 'that', 'these', 'those', 'some', 'any', 'its', 'their', 'his',
     'her', 'my', 'your', 'another', 'other', 'both', 'each', 'every', 'either')
)  # fmt: skip
_HEDGES = frozenset(
    ('possibly', 'probably', 'maybe', 'perhaps', 'likely', 'about', 'approximately', 'mostly',
     'mainly', 'only', 'just', 'also', 'very', 'quite', 'there', 'it', 'they', 'answer')
)  # fmt: skip
_VERBS = frozenset(('is', 'are', 'was', 'were', 'be', 'being', 'has', 'have', 'can', 'exists'))
_SIDES = frozenset(
    ('above', 'across', 'against', 'along', 'alongside', 'among', 'around', 'at', 'behind',
     'below', 'beneath', 'beside', 'besides', 'between', 'beyond', 'by', 'for', 'from', 'in',
     'inside', 'into', 'near', 'next', 'off', 'on', 'onto', 'opposite', 'outside', 'over',
     'through', 'to', 'toward', 'towards', 'under', 'underneath', 'up', 'upon', 'within',
     'nearby', 'adjacent')
)  # fmt: skip
_POSTMODIFIERS = _SIDES | {
    'with', 'without', 'that', 'which', 'who', 'whose', 'where', 'while', 'because', 'but', 'as',
    'than', 'if', 'due', 'since',
}  # fmt: skip
_PARTITIVES = frozenset(
    ('set', 'piece', 'pair', 'group', 'stack', 'row', 'bunch', 'pile', 'type', 'kind', 'sort',
     'part', 'side', 'couple', 'number', 'lot', 'collection', 'variety')
)  # fmt: skip
_DESCRIPTIVE = frozenset(
    ('large', 'big', 'small', 'little', 'tiny', 'huge', 'tall', 'short', 'long', 'wide', 'narrow',
     'thin', 'thick', 'high', 'low', 'round', 'square', 'rectangle', 'oval', 'flat', 'curved',
     'straight', 'soft', 'hard', 'smooth', 'rough', 'fluffy', 'modern', 'old', 'new', 'antique',
 'open', 'closed', 'empty', 'full', 'single', 'double', 'multiple', 'several', 'various',
     'many', 'few', 'bright', 'plain', 'clear', 'standard', 'upper', 'lower', 'indoor', 'outdoor',
     'abstract', 'floral', 'geometric', 'decorative', 'colorful', 'colourful', 'hexagonal',
     'diagonal', 'horizontal', 'vertical', 'spherical', 'conical', 'neutral', 'faux', 'fake',
     'dim', 'solid', 'sliding', 'folding', 'matching', 'main', 'leafy')
)  # fmt: skip
_PLACES = frozenset(
    ('left', 'right', 'front', 'back', 'top', 'bottom', 'corner', 'wall', 'floor', 'ceiling',
     'hanging', 'standing', 'middle', 'center', 'side')
)  # fmt: skip
"""Words that describe what follows, and are things where nothing follows."""
_SUFFIXES = ('ular', 'ical', 'ish', 'less', 'shaped', 'like')
_ED = re.compile(r'[a-z]{3,}ed$')
_ING = re.compile(r'[a-z]{3,}ing$')
_HUES = frozenset(COLORS) | {'taupe'}
_MATTER = frozenset(MATERIALS) | frozenset(MATERIALS.values()) | {'metallic'}


@dataclass(frozen=True)
class NounPhrase:
    """A thing as an answer names it: its kind, e.g. 'coffee table', and the words before that."""

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


_SHAPES = {
    'circular': 'round', 'rounded': 'round', 'spherical': 'round', 'hemispherical': 'round',
    'rectangle': 'rectangular',
}  # fmt: skip
"""Shapes that answers take for one: few distinguish a circle from a ball."""
_SCREEN = re.compile(r'\bscreen (?=tv\b|television\b)')
_COLORED = re.compile(r'[- ]colou?red\b|(?<=gray|pink)ish\b|(?<=brown|green|black)ish\b')
_COMPOUND = re.compile(r'(?<=[a-z])-(?=[a-z]+(?:ed|like)\b)')


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text; of hyphens only "cube-shaped" stays one word."""
    joined = _COMPOUND.sub('', _COLORED.sub('', text.lower().replace('grey', 'gray')))
    joined = _SCREEN.sub('', joined)
    words = re.findall(r"\d+(?:\.\d+)?|[a-z0-9']+", joined.replace('-', ' '))
    return [_SHAPES.get(word, word) for word in words]


def is_adjective(word: str) -> bool:
    """Return whether a word describes a thing rather than names one, by lists and endings."""
    return (
        word in _HUES
        or word in SHADES
        or word in MATERIALS.values()
        or word in _DESCRIPTIVE
        or (len(word) > 5 and word.endswith(_SUFFIXES))
        or bool(_ED.fullmatch(word))
    )


def is_made_with(adjective: str, noun: str) -> bool:
    """Return whether an adjective says that a thing has a noun: a potted plant has a pot."""
    stem = adjective.removesuffix('ed')
    return stem != adjective and bool(noun) and stem in (noun, noun + noun[-1], noun.rstrip('e'))


@lru_cache(maxsize=65536)
def noun_phrases(text: str) -> tuple[NounPhrase, ...]:
    """Return the things that an answer names, each once for each item of a list.

    What follows a preposition or a relative describes the thing before it and is left out, a list
    of such things too ("a room with a bed, a door, and a lamp"); items that are adjectives alone
    ("black, round table"; "couch, beige, soft") join their thing.
    """
    items: list[list[str]] = []
    for sentence in re.split(r'[;&\n]|\.(?:\s|$)', text):
        parts = [words_of(part) for part in sentence.split(',')]
        for position, part in enumerate(parts):
            named = _before_postmodifiers(part)
            for item in _split(named, ('and', 'or')):
                words = [word for word in item if word not in _DETERMINERS | _HEDGES | _VERBS]
                if words:
                    items.append(words)
            later = parts[position + 1 :]
            if len(named) < len(part) and any(p[:1] in (['and'], ['or']) for p in later):
                break
    return _joined(items)


def _split(words: list[str], marks: tuple[str, ...]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for word in words:
        if word in marks:
            found.append([])
        else:
            found[-1].append(word)
    return found


def _before_postmodifiers(words: list[str]) -> list[str]:
    named = False
    for position, word in enumerate(words):
        follows = words[position + 1] if position + 1 < len(words) else ''
        if named and word in _POSTMODIFIERS | _VERBS:
            return words[:position]
        if named and _ING.fullmatch(word) and follows in _POSTMODIFIERS | _DETERMINERS:
            return words[:position]
        if named and _ED.fullmatch(word) and follows in _POSTMODIFIERS:
            return words[:position]
        named = named or not (
            is_adjective(word) or word in _DETERMINERS | _HEDGES | _VERBS | {'and', 'or'}
        )
    return words


def _is_description(words: list[str]) -> bool:
    """Return whether an item of a list names no thing: "wood" says what a thing is made of."""
    return all(is_adjective(word) for word in words) or (len(words) == 1 and words[0] in _MATTER)


def _joined(items: list[list[str]]) -> tuple[NounPhrase, ...]:
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
    # A place ("on the wall") is read for its thing, and a number of things for their kind.
    while len(words) > 1 and (words[0] in _SIDES | {'of'} or _is_number(words[0])):
        words = words[1:]
    if 'of' in words[1:-1]:
        place = words.index('of', 1)
        if singular(words[place - 1]) in _PARTITIVES:
            words = words[: place - 1] + words[place + 1 :]
        else:
            words = words[:place]
    described = [is_adjective(word) or word in _PLACES | _MATTER for word in words[:-1]]
    noun = [word for word, is_one in zip(words, described, strict=False) if not is_one]
    adjectives = [word for word, is_one in zip(words, described, strict=False) if is_one]
    return NounPhrase(' '.join((*noun, singular(words[-1]))), tuple(adjectives))


_OFFERED = re.compile(
    r'(?:[:,]|\b(?:between|of|is|are|does|do|has|have)\b)(?P<list>[^:?]*?\bor\b[^:?,]*)\?*\s*$',
    re.IGNORECASE,
)
_COMPARED = re.compile(r'\b(?:(?:more|less) \w+|\w{3,}er)\s*$')


@lru_cache(maxsize=65536)
def alternatives(question: str) -> tuple[NounPhrase, ...]:
    """Return the things that a question offers to choose from, () if it offers none."""
    match = _OFFERED.search(question.strip())
    if match is None:
        return ()
    offered = re.split(r',|\bor\b', _COMPARED.sub('', match['list']))
    found = tuple(phrases[0] for item in offered if (phrases := noun_phrases(item)))
    return found if len(found) > 1 else ()


def predicate(answer: str, question: str) -> str:
    """Return what a sentence says of a thing that the question names, else the answer."""
    parts = re.split(r'\b(?:is|are|was|were)\b', answer, maxsplit=1)
    subject = [singular(word) for word in words_of(parts[0]) if word not in _DETERMINERS]
    asked = {singular(word) for word in words_of(question)}
    if len(parts) == 2 and parts[1].strip() and subject and set(subject) <= asked:
        return parts[1]
    return answer


_DIRECTIONS = {
    'on': 'on', 'onto': 'on', 'upon': 'on', 'atop': 'on', 'in': 'in', 'inside': 'in',
    'within': 'in', 'under': 'under', 'underneath': 'under', 'below': 'under',
    'beneath': 'under', 'above': 'above', 'over': 'above', 'behind': 'behind',
    'front': 'front', 'left': 'left', 'right': 'right', 'near': 'near', 'next': 'near',
    'beside': 'near', 'adjacent': 'near', 'by': 'near', 'alongside': 'near', 'close': 'near',
    'outside': 'outside', 'opposite': 'opposite', 'between': 'between',
}  # fmt: skip


def directions(answer: str) -> frozenset[str]:
    """Return where an answer that begins with a place says that something is, in basic words."""
    found: list[str] = []
    for word in words_of(answer):
        if word in _DIRECTIONS:
            found.append(_DIRECTIONS[word])
        elif word not in _DETERMINERS | _HEDGES | _VERBS | {'located', 'of', 'to', 'top', 'side'}:
            break
    return frozenset(found)
