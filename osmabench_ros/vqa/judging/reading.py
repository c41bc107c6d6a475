"""Reads free answers: yes or no, numbers, plain noun phrases, refusals."""

from __future__ import annotations

import re
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
    r'|not mentioned|no information)\b'
)
_NUMBER = re.compile(r'[-+]?\d+(?:\.\d+)?')
_DROPPED = frozenset(
    ('a', 'an', 'the', 'is', 'are', 'it', 'its', 'there', 'and', 'of', 'with', 'in', 'on', 'at',
     'to', 'placed', 'located', 'color', 'colour')
)  # fmt: skip


@lru_cache(maxsize=65536)
def plain(value: AnswerValue) -> str:
    """Return an answer in lower case, without a leading 'answer:', punctuation and underscores."""
    text = re.sub(r'^\s*answer\s*:\s*', '', str(value).replace('_', ' ').lower())
    return ' '.join(re.sub(r"[^\w\s.'/+-]", ' ', text).split()).strip(' .')


def is_refusal(value: AnswerValue | None) -> bool:
    """Return whether an answer says that there is none."""
    return value is None or plain(value) in ('', 'none') or bool(_REFUSAL.search(plain(value)))


def as_yes_no(value: AnswerValue) -> str | None:
    """Return 'yes' or 'no' as the first word says, None if it says neither or declines."""
    if is_refusal(value):
        return None
    words = re.findall(r'[a-z]+', plain(value))
    first = words[0] if words else ''
    return {'yes': 'yes', 'no': 'no', 'true': 'yes', 'false': 'no'}.get(first)


def as_number(value: AnswerValue) -> float | None:
    """Return the only number in an answer, in digits or as a word to twenty; None otherwise."""
    if isinstance(value, (int, float)):
        return float(value)
    text = plain(value)
    numbers = [float(match) for match in _NUMBER.findall(text)]
    numbers += [float(NUMBER_WORDS[w]) for w in re.findall(r'[a-z]+', text) if w in NUMBER_WORDS]
    return numbers[0] if len(numbers) == 1 else None


def content_words(value: AnswerValue) -> tuple[str, ...]:
    """Return the words of an answer that carry meaning, in order."""
    words = re.findall(r"[a-z0-9'-]+", plain(value).replace('-', ' '))
    return tuple(
        'gray' if word in ('grey', 'greyish', 'grayish') else word
        for word in words
        if word not in _DROPPED
    )
