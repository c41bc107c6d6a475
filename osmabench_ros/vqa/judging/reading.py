"""Reads free answers: yes or no, denials, refusals, numbers with units, noun phrases."""

import re
from dataclasses import dataclass
from functools import lru_cache

from osmabench_ros.vqa.english import ADJECTIVES, COLORS, MATERIALS, material_noun, singular
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import AnswerValue

_COUNTED = (
    'zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten',
    'eleven', 'twelve', 'thirteen', 'fourteen', 'fifteen', 'sixteen', 'seventeen', 'eighteen',
    'nineteen', 'twenty',
)  # fmt: skip
NUMBER_WORDS = {word: number for number, word in enumerate(_COUNTED)}
_REFUSAL = re.compile(
    r"\b(?:(?:i )?(?:can ?not|can't|could not|couldn't|am unable|do not know|don't know)"
    r'|cannot be|not enough information|no answer|unanswerable|unknown|n/?a|not specified'
    r'|not mentioned|no information|null|unclear|undetermined|unspecified|insufficient|unable'
    r'|not (?:clear|known|possible|applicable|provided|described|stated|given|available)'
    r'|impossible to (?:say|tell|determine)|nothing (?:specific|specified|mentioned)'
    r"|(?:does not|doesn't|do not|don't) (?:specify|mention|provide|describe|say|state|indicate"
    r'|(?:contain|include|have) (?:\w+ ){0,2}(?:information|ability|data|details?))'
    r'|no (?:\w+ ){0,4}(?:mentioned|specified|described|given|provided|stated|identified))\b'
)
_DENIAL = re.compile(
    r'(?:no|none|nothing|nobody|neither|not)\b'
    r"|there (?:is|are|was|were)(?:n't| not| no| nothing)\b"
)
_NEGATED = re.compile(
    r"\b(?:is|are|was|were|does|do|did|has|have|can|could|will|would)(?:n't| not| no)\b|\bnever\b"
)
_STATED = re.compile(r'\b(?:is|are|was|were|does|do|has|have|can|contains?|exists?)\b')
_HEDGED = re.compile(r'\b(?:maybe|perhaps|possibly|probably|might|may|could|likely|or)\b')
LENGTHS_M = {
    'm': 1.0, 'meter': 1.0, 'meters': 1.0, 'metre': 1.0, 'metres': 1.0, 'cm': 0.01,
    'centimeter': 0.01, 'centimeters': 0.01, 'centimetre': 0.01, 'centimetres': 0.01, 'mm': 0.001,
    'millimeter': 0.001, 'millimeters': 0.001, 'millimetre': 0.001, 'millimetres': 0.001,
    'km': 1000.0, 'ft': 0.3048, 'foot': 0.3048, 'feet': 0.3048, 'inch': 0.0254, 'inches': 0.0254,
}  # fmt: skip
_QUANTITY = re.compile(rf'([-+]?\d+(?:\.\d+)?|\b(?:{"|".join(_COUNTED)})\b)(?:\s*([a-z]+)\b)?')
_APPROXIMATE = frozenset(('about', 'approximately', 'around', 'roughly', 'nearly', 'almost'))


@lru_cache(maxsize=65536)
def plain(value: AnswerValue) -> str:
    """Return an answer in lower case, without a leading 'answer:', punctuation and underscores."""
    text = re.sub(r'^\s*answer\s*:\s*', '', str(value).replace('_', ' ').lower())
    return ' '.join(re.sub(r"[^\w\s.'/+-]", ' ', text).split()).strip(' .')


def is_refusal(value: AnswerValue | None) -> bool:
    """Return whether an answer says that there is none."""
    return value is None or plain(value) in ('', 'none') or bool(_REFUSAL.search(plain(value)))


def is_denial(value: AnswerValue) -> bool:
    """Return whether an answer says that there is nothing, or that something is not there."""
    text = plain(value)
    if is_refusal(value) and text != 'none':
        return False
    clause = re.split(r'\b(?:with|that|which|without)\b', text)[0]
    return bool(_DENIAL.match(text) or _NEGATED.search(clause))


def as_yes_no(value: AnswerValue) -> str | None:
    """Return 'yes' or 'no' as the first word or the sentence says, None if it says neither.

    "There is no lamp" and "It isn't" are no, "There is a lamp" is yes; an answer that declines,
    hedges or says both is neither.
    """
    if is_refusal(value) or _says_both(value):
        return None
    text = plain(value)
    first = re.search('[a-z]+', text)
    polarity = {'yes': 'yes', 'no': 'no', 'true': 'yes', 'false': 'no', 'not': 'no'}
    found = polarity.get(first[0]) if first else None
    if found is not None or _HEDGED.search(text):
        return found
    if is_denial(value):
        return 'no'
    return 'yes' if _STATED.search(text) else None


def _says_both(value: AnswerValue) -> bool:
    clauses = re.split(r'[\W_]*[^\w\s\'-][\W_]*|\b(?:or|and)\b', str(value).lower())
    first_words = {words[0] for clause in clauses if (words := clause.split())}
    return bool(first_words & {'yes', 'true'}) and bool(first_words & {'no', 'false'})


@dataclass(frozen=True)
class Quantity:
    """A number in an answer, in metres if a unit of length follows; `step` is its last digit."""

    value: float
    step: float
    is_length: bool


def quantities(value: AnswerValue) -> tuple[Quantity, ...]:
    """Return the numbers of an answer, in digits or as words to twenty."""
    found = []
    for number, unit in _QUANTITY.findall(plain(value)):
        scale = LENGTHS_M.get(unit, 1.0)
        digits = str(NUMBER_WORDS.get(number, number))
        step = 10.0 ** -len(digits.partition('.')[2])
        found.append(Quantity(float(digits) * scale, step * scale, unit in LENGTHS_M))
    return tuple(found)


def is_quantity(value: AnswerValue) -> bool:
    """Return whether an answer is a number, with or without a unit, and nothing else."""
    rest = _QUANTITY.sub(
        lambda found: '' if found[2] in (None, *LENGTHS_M) else found[2], plain(value)
    )
    return bool(quantities(value)) and _APPROXIMATE.issuperset(re.findall('[a-z]+', rest))


def as_number(value: AnswerValue) -> float | None:
    """Return the only number in an answer, lengths in metres; None if there is not just one."""
    if isinstance(value, (int, float)):
        return float(value)
    found = quantities(value)
    return found[0].value if len(found) == 1 else None


_DESCRIPTIVE = re.compile(r'[a-z]{3,}ed|(?=.{6}).*(?:ular|ical|ish|less|shaped|like)')
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
        matter = (word for word in words if word in _MATTER)
        return frozenset('metal' if word == 'metallic' else material_noun(word) for word in matter)


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
        word in _HUES | ADJECTIVES
        or word in knowledge().words['descriptive']
        or bool(_DESCRIPTIVE.fullmatch(word))
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
    ends = known['sides'] | known['relatives']
    named = False
    for position, word in enumerate(words):
        follows = set(words[position + 1 : position + 2])
        is_clause = _PARTICIPLE.fullmatch(word) and follows & (ends | _DETERMINERS)
        if named and (word in ends | _VERBS or is_clause):
            return words[:position]
        named = named or not (is_adjective(word) or word in known['empty'] | {'and', 'or'})
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
    places = known['sides'] | {'of'} | NUMBER_WORDS.keys()
    while len(words) > 1 and (words[0] in places or words[0][0].isdigit()):
        words = words[1:]
    if 'of' in words[1:-1]:
        place = words.index('of', 1)
        is_part = singular(words[place - 1]) in known['partitives']
        words = words[: place - 1] + words[place + 1 :] if is_part else words[:place]
    adjectives = [word for word in words[:-1] if is_adjective(word) or word in _MATTER]
    noun = [word for word in words[:-1] if word not in adjectives]
    return NounPhrase(' '.join((*noun, singular(words[-1]))), tuple(adjectives))


def predicate(answer: str, question: str) -> str:
    """Return the part of a sentence about an object that the question names, else the answer."""
    parts = re.split(r'\b(?:is|are|was|were)\b', answer, maxsplit=1)
    subject = [singular(word) for word in words_of(parts[0]) if word not in _DETERMINERS]
    asked = {singular(word) for word in words_of(question)}
    if len(parts) == 2 and parts[1].strip() and subject and set(subject) <= asked:
        return parts[1]
    return answer
