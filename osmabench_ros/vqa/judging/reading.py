"""Reads free answers: yes or no, denials, refusals, numbers with their units."""

import re
from dataclasses import dataclass
from functools import lru_cache

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
    words = re.findall(r'[a-z]+', text)
    first = words[0] if words else ''
    found = {'yes': 'yes', 'no': 'no', 'true': 'yes', 'false': 'no', 'not': 'no'}.get(first)
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
    words = re.findall(r'[a-z]+', rest)
    return bool(quantities(value)) and all(word in _APPROXIMATE for word in words)


def as_number(value: AnswerValue) -> float | None:
    """Return the only number in an answer, lengths in metres; None if there is not just one."""
    if isinstance(value, (int, float)):
        return float(value)
    found = quantities(value)
    return found[0].value if len(found) == 1 else None
