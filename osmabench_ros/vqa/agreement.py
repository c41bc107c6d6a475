"""How well a judge agrees with published verdicts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from osmabench_ros.base.progress import Progress, counted, silent
from osmabench_ros.vqa.judging import Judge, reading
from osmabench_ros.vqa.judging.deterministic import ASKS_ATTRIBUTE, is_joint
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import Answer, AnswerType, Question
from osmabench_ros.vqa.saved_answers import SavedAnswer


@dataclass(frozen=True)
class Agreement:
    """Agreement of two judges on `n` answers: all, those with different strings, or of a category.

    'without doubtful verdicts' are those with different strings that no fault was found in.

    `kappa` is Cohen's (1960), NaN where both always say the same; the others are fractions.
    """

    group: str
    n: int
    agreement: float
    kappa: float
    judge_yes: float
    published_yes: float


@dataclass(frozen=True)
class JudgeCheck:
    """Result of comparing a judge with published verdicts.

    `equal_strings_rejected` are equal strings that the judge calls wrong, and must be empty;
    `doubtful` are published verdicts that the judge does not share and in which the words show a
    fault, each with it; for yes/no and numeric answers it is that equality is contradicted;
    `unjudged` answers have no published verdict and are left out.
    """

    judge: str
    rows: tuple[Agreement, ...]
    equal_strings_rejected: tuple[SavedAnswer, ...]
    doubtful: tuple[tuple[SavedAnswer, str], ...]
    unjudged: int = 0


def check_judge(
    saved: Sequence[SavedAnswer], judge: Judge, progress: Progress = silent
) -> JudgeCheck:
    """Judge the saved answers that have a verdict, and compare."""
    known = [item for item in saved if item.similar is not None]
    # Conditions share the ids of their questions, which paired changes need; a judge joins by id.
    pairs: list[tuple[Question, Answer | None]] = [
        (replace(item.question, id=str(number)), replace(item.answer, question_id=str(number)))
        for number, item in enumerate(known)
    ]
    verdicts = judge.judge(pairs, counted(progress, 'judged', len(pairs), 'answers'))
    groups: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    rejected = []
    doubtful = []
    alike: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for item in known:
        alike[_wording(item)].append(bool(item.similar))
    for item, verdict in zip(known, verdicts, strict=True):
        pair = (verdict.correct, bool(item.similar))
        fault = _fault(item, alike[_wording(item)]) if pair[0] is not pair[1] else ''
        doubtful += [(item, fault)] if fault else []
        groups[_ALL].append(pair)
        _, right, said = _wording(item)
        if right != said:
            groups[_DIFFERENT].append(pair)
            groups[item.question.category].append(pair)
            groups[_CLEAR] += [] if fault else [pair]
        elif not verdict.correct:
            rejected.append(item)
    order = sorted(groups, key=lambda name: (name not in _GROUPS, name))
    rows = tuple(_agreement(name, groups[name]) for name in order if groups[name])
    unjudged = len(saved) - len(known)
    return JudgeCheck(judge.name, rows, tuple(rejected), tuple(doubtful), unjudged)


_GROUPS = _ALL, _DIFFERENT, _CLEAR = 'all', 'different strings', 'without doubtful verdicts'
_EMPTY_WORDS = ('', 'answer', 'yes', 'no', 'none')


def _wording(item: SavedAnswer) -> tuple[str, str, str]:
    question = item.question
    return (
        question.text.lower(),
        reading.plain(question.answer),
        reading.plain(item.answer.value or ''),
    )


def _fault(item: SavedAnswer, alike: Sequence[bool]) -> str:
    """Return the reason why the words show a published verdict to be wrong, '' if none.

    `alike` are the published verdicts on the same question, right answer and answer.
    """
    question, right, said = item.question, str(item.question.answer), str(item.answer.value or '')
    if 2 * alike.count(bool(item.similar)) < len(alike):
        return 'most verdicts on the same words are the other way'
    if question.answer_type is not AnswerType.TEXT:
        return 'equality is contradicted'
    return _too_lenient(right, said, question.text) if item.similar else _too_strict(right, said)


def _too_strict(right: str, said: str) -> str:
    """Return why an answer should not have been rejected, '' if nothing shows it."""
    if reading.is_refusal(said) and reading.is_refusal(right):
        return 'declining is rejected where it is right'
    wanted = reading.noun_phrases(right)
    given = reading.noun_phrases(said)
    less = [thing for thing in wanted if len(given) == 1 and _is_less_of(given[0], thing)]
    if any(thing.noun == given[0].noun for thing in less):
        return 'the thing is rejected for what is left out of it'
    return 'the thing is rejected under another name of it' if less else ''


def _too_lenient(right: str, said: str, question: str) -> str:
    """Return why an answer should not have been accepted, '' if nothing shows it."""
    if reading.plain(said) in _EMPTY_WORDS:
        return 'a word that says nothing here is accepted'
    if reading.is_refusal(said) != reading.is_refusal(right):
        return 'declining is accepted for an answer, or the other way'
    if reading.is_denial(said) and not reading.is_denial(right):
        return 'that there is none is accepted'
    wanted = reading.noun_phrases(right)
    given = reading.noun_phrases(said)
    asked_for = ASKS_ATTRIBUTE.search(question)
    kind = asked_for.lastgroup if asked_for else None
    if kind and any(getattr(item, kind) for item in wanted) > any(
        getattr(item, kind) for item in given
    ):
        return f'an answer without {kind}, which are asked for, is accepted'
    nouns = {thing.noun for thing in given}
    if is_joint(right) and nouns & {thing.noun for thing in wanted if thing.noun}:
        return 'one of the things that "and" joins is accepted for all'
    numbers = {word for word in reading.words_of(said) if word[0].isdigit()}
    if wanted and all(thing.noun for thing in wanted) and not any(nouns - numbers):
        return 'an answer that names no thing is accepted for one'
    name = knowledge().name
    asked = {name(word) for word in reading.words_of(question)}
    named = all(noun and {name(word) for word in noun.split()} <= asked for noun in nouns)
    if named and not {name(noun) for noun in nouns} & {name(thing.noun) for thing in wanted}:
        return 'only what the question names itself is accepted'
    return ''


def _is_less_of(given: reading.NounPhrase, wanted: reading.NounPhrase) -> bool:
    """Return whether one object is named, by its noun or a synonym, and nothing new said of it."""
    name = knowledge().name
    return name(given.noun) == name(wanted.noun) and {*given.adjectives} <= {*wanted.adjectives}


def _agreement(group: str, pairs: Sequence[tuple[bool, bool]]) -> Agreement:
    n = len(pairs)
    first = sum(a for a, _ in pairs) / n
    second = sum(b for _, b in pairs) / n
    observed = sum(a == b for a, b in pairs) / n
    expected = first * second + (1 - first) * (1 - second)
    kappa = (observed - expected) / (1 - expected) if expected < 1 else float('nan')
    return Agreement(group, n, observed, kappa, first, second)
