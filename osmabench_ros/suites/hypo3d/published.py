"""Saved answers of Hypo3D, scored by exact and partial match: as its code does, and strictly."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.metrics.record import Mode
from osmabench_ros.suites.hypo3d.described_change import ChangeType
from osmabench_ros.vqa.judging.reading import NUMBER_WORDS
from osmabench_ros.vqa.published import Published, PublishedRow, read_document

_LATERAL = ('left', 'right')
_SIDES = ('front', 'back', *_LATERAL)

# The words for directions, as Hypo3D's metric replaces them; the longest that fits wins.
_SPOKEN: Mapping[str, str] = {
    **{f'{a} and {b}': f'{a} {b}' for a, b in product(('back', 'front'), _LATERAL)},
    **{f'behind and to the {side}': f'back {side}' for side in _LATERAL},
    'in front and to the right': 'front right',
    **dict.fromkeys(('to the', 'by the', 'on the', 'near', 'next', 'corner'), ''),
    **dict.fromkeys(('behind', 'bottom', 'bottom of', 'south', 'backward'), 'back'),
    **dict.fromkeys(('top', 'in front of', 'north', 'forward'), 'front'),
    **{f'{side} {word}': side for side in _SIDES for word in ('side', 'of')},
    **{f'on the {side}{word}': side for side in _LATERAL for word in ('', ' of')},
    'east': 'right',
    'west': 'left',
    'northwest': 'front left',
    'northeast': 'front right',
    'southwest': 'back left',
    'southeast': 'back right',
}
_TENS = ('thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety')
_POWERS = {'hundred': 10**2, 'thousand': 10**3, 'million': 10**6, 'billion': 10**9}
_NUMBERS: Mapping[str, int] = {
    **NUMBER_WORDS,
    **{word: 10 * number for number, word in enumerate(_TENS, start=3)},
    **_POWERS,
}
_COMPAT_NUMBERS = {**_NUMBERS, 'point': 0}


def _compile_words(words: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(rf'\b({"|".join(map(re.escape, longest_first))})\b')


_COMPAT = _compile_words(_SPOKEN)
_ARTICLES = re.compile(r'\b(?:a|an|the)\b')


@lru_cache(maxsize=65536)
def normalised(text: str) -> str:
    """Return an answer as Hypo3D's metric compares it, with all its quirks.

    "north-west" loses its hyphen and stays one word, "top" and "bottom" of an object become its
    front and back, "near" becomes nothing, numbers are taken word by word ("point" is 0), and
    words that are not numbers are dropped after the first one that is.
    """
    text = _COMPAT.sub(lambda match: _SPOKEN[match[0]], text.lower())
    text = re.sub(r'[^a-z0-9\s]', '', _ARTICLES.sub('', text))
    words = [str(_COMPAT_NUMBERS.get(word, word)) for word in text.split()]
    first = next((place for place, word in enumerate(words) if word.isdigit()), len(words))
    numbers = [str(int(word)) for word in words[first:] if word.isdigit()]
    return ' '.join(words[:first] + numbers)


_STRICT_SPOKEN = {
    key: value for key, value in _SPOKEN.items() if not re.match(r'(top|bottom)\b', key) and value
} | {'in front and to the left': 'front left', 'next to': '', 'to the': '', 'by the': '',
     'on the': ''}  # fmt: skip
_STRICT = _compile_words(_STRICT_SPOKEN)
_MAP_SIDE = re.compile(
    r'\b(top|bottom)\b(?=(?: (?:of )?(?:the )?)(?:map|left|right|corner)\b)'
    r'|(?<=left )\b(top|bottom)\b|(?<=right )\b(top|bottom)\b'
)
_FILLERS = re.compile(r'\b(?:near|next|corner|side)\b')


@lru_cache(maxsize=65536)
def strictly_normalised(text: str) -> str:
    """Return an answer without the quirks of `normalised`.

    Compass points may be joined by a hyphen; "top" and "bottom" are directions only next to left,
    right or corner, as on a map; "near" stays where nothing else is said; numbers are read whole,
    beyond ten and with decimals, and words after them are kept.
    """
    text = re.sub(r'\b(north|south)[-\s]?(east|west)(?:ern)?\b', r'\1\2', text.lower())
    text = re.sub(r'(left|right)[-\s]hand\b', r'\1', text)
    text = ' '.join(re.sub(r'(?<!\d)\.|\.(?!\d)|[^a-z0-9.\s]', ' ', text).split())
    text = _MAP_SIDE.sub(lambda match: 'front' if match[0] == 'top' else 'back', text)
    text = _STRICT.sub(lambda match: _STRICT_SPOKEN[match[0]], text)
    text = ' '.join(_ARTICLES.sub(' ', text).split())
    text = re.sub(rf'\b({"|".join(_POWERS)}) and (?=(?:{"|".join(_NUMBERS)})\b)', r'\1 ', text)
    said = ' '.join(_FILLERS.sub(' ', text).split())
    text = _DIGITS.sub(_round_number, said or text)
    return _SPELT.sub(_read_number, text)


def _round_number(match: re.Match[str]) -> str:
    return str(int(match[0])) if match[0].isdigit() else f'{float(match[0]):g}'


_DIGITS = re.compile(r'(?<!\S)\d+(?:\.\d+)?(?!\S)')
_WORD = rf'(?:{"|".join(_NUMBERS)})(?!\S)'
_DIGIT = rf'(?:{"|".join(word for word, number in _NUMBERS.items() if number < 10)})(?!\S)'
_SPELT = re.compile(
    rf'(?<!\S)(?<!\bno )(?P<whole>{_WORD}(?: {_WORD})*)(?: point(?P<decimals>(?: {_DIGIT})+))?'
)


def _read_number(match: re.Match[str]) -> str:
    """Return a number in digits that is spelt in words: twenty one, one point five."""
    total = part = 0
    for word in match['whole'].split():
        number = _NUMBERS[word]
        if number >= 1000:
            total, part = total + max(part, 1) * number, 0
        else:
            part = max(part, 1) * number if number == 100 else part + number
    decimals = ''.join(str(_NUMBERS[word]) for word in (match['decimals'] or '').split())
    return f'{total + part}.{decimals}' if decimals else str(total + part)


def partial_match(predicted: str, reference: str) -> float:
    """Return the different words that two answers share per word of the reference (Hypo3D).

    An empty reference, such as "near" in compat, gives 0. An answer can raise it by naming more.
    """
    words = reference.split()
    return len(set(predicted.split()) & set(words)) / len(words) if words else 0.0


def word_f1(predicted: str, reference: str) -> float:
    """Return the F1 of the words of an answer; words that the reference lacks cost precision."""
    said = Counter(predicted.split())
    wanted = Counter(reference.split())
    total = said.total() + wanted.total()
    return 2 * (said & wanted).total() / total if said and wanted else 0.0


class _Asked(PublishedRow):
    question_type: str
    question: str
    answer: str
    predicted_answer: str


class _Changed(PublishedRow):
    context_change: str
    change_type: str
    questions_answers: tuple[_Asked, ...]


# Changes by scene.
_File = dict[str, tuple[_Changed, ...]]

# An answer with its scene and its change.
Row = tuple[str, _Changed, _Asked]


def read_hypo3d(paths: Sequence[Path]) -> list[Row]:
    """Read files of answers as Hypo3D's code writes them; QuestionError names file and key."""
    remedy = 'a scored file has "predicted_answer" next to each "answer"'
    return [
        (scene, change, item)
        for path in paths
        for scene, changes in read_document(_File, path, remedy=remedy).items()
        for change in changes
        for item in change.questions_answers
    ]


_MODES: Mapping[Mode, tuple[Callable[[str], str], Callable[[str, str], float]]] = {
    Mode.COMPAT: (normalised, partial_match),
    Mode.STRICT: (strictly_normalised, word_f1),
}


def compare_answers(rows: Sequence[Row], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yield exact and partial match of answers, and the cosine of their sentence embeddings.

    The partial match of strict is `word_f1`, so that an answer gains nothing by naming more. An
    answer of several question types counts for each of them. The embedder is all-MiniLM-L6-v2 if
    it is installed.
    """
    normaliser, match = _MODES[mode]
    said = [(normaliser(x.predicted_answer), normaliser(x.answer)) for _, _, x in rows]
    alike: Sequence[float | None] = [None] * len(said)
    if SentenceEmbedder.is_available():
        embed = SentenceEmbedder().embed
        first, second = (embed(texts) for texts in zip(*said, strict=True))
        alike = (first * second).sum(axis=1).tolist()
    for (_, change, item), pair, close in zip(rows, said, alike, strict=True):
        known = (kind.value for kind in ChangeType if kind.value in change.change_type.lower())
        yield {
            'change_type': ('', next(known, change.change_type)),
            'question_type': ('', *item.question_type.split()),
            'em': float(pair[0] == pair[1]),
            'pm': match(*pair),
            'similarity': close,
        }


# Exact and partial match over all answers, by change, by question, and by both.
PUBLISHED = Published(
    read_hypo3d,
    compare_answers,
    groups=('change_type', 'question_type'),
    key=lambda row: (row[0], row[1].context_change, row[2].question, row[2].question_type),
    orders={'question_type': ('', 'Scale', 'Direction', 'Semantic', ...)},
)
