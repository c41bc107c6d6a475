"""How well a judge agrees with published verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from osmabench_ros.base.progress import Progress, counted, silent
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge, Judge
from osmabench_ros.vqa.judging.reading import plain
from osmabench_ros.vqa.published import SavedAnswer
from osmabench_ros.vqa.questions import Answer, AnswerType, Question


@dataclass(frozen=True)
class Agreement:
    """Agreement of two judges on `n` answers: all, those with different strings, or of a category.

    `kappa` is Cohen's (1960), NaN where both always say the same; the other figures are shares.
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
    `doubtful` are yes/no and numeric answers whose published verdict contradicts equality;
    `unjudged` answers have no published verdict and are left out.
    """

    judge: str
    rows: tuple[Agreement, ...]
    equal_strings_rejected: tuple[SavedAnswer, ...]
    doubtful: tuple[SavedAnswer, ...]
    unjudged: int = 0


def check_judge(
    saved: Sequence[SavedAnswer], judge: Judge, progress: Progress = silent
) -> JudgeCheck:
    """Judge the saved answers that have a verdict, and compare."""
    known = [item for item in saved if item.similar is not None]
    pairs = judged_answers(known)
    verdicts = judge.judge(pairs, counted(progress, 'judged', len(pairs), 'answers'))
    groups: dict[str, list[tuple[bool, bool]]] = {'all': [], 'different strings': []}
    by_category: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    rejected = []
    for item, verdict in zip(known, verdicts, strict=True):
        pair = (verdict.correct, bool(item.similar))
        groups['all'].append(pair)
        if _is_equal(item):
            rejected += [] if verdict.correct else [item]
            continue
        groups['different strings'].append(pair)
        by_category[item.question.category].append(pair)
    groups.update((name, by_category[name]) for name in sorted(by_category))
    rows = tuple(_agreement(name, pairs) for name, pairs in groups.items() if pairs)
    unjudged = len(saved) - len(known)
    return JudgeCheck(judge.name, rows, tuple(rejected), doubtful_verdicts(known), unjudged)


def judged_answers(saved: Sequence[SavedAnswer]) -> list[tuple[Question, Answer]]:
    """Return questions and answers with a saved verdict, as a judge takes them.

    Conditions share the ids of their questions, which paired changes need; a judge joins by id.
    """
    known = [item for item in saved if item.similar is not None]
    return [
        (replace(item.question, id=str(number)), replace(item.answer, question_id=str(number)))
        for number, item in enumerate(known)
    ]


def _is_equal(item: SavedAnswer) -> bool:
    return plain(item.question.answer) == plain(item.answer.value or '')


def doubtful_verdicts(saved: Sequence[SavedAnswer]) -> tuple[SavedAnswer, ...]:
    """Return the answers to yes/no and count questions whose verdict contradicts equality."""
    exact = [
        item
        for item in saved
        if item.similar is not None and item.question.answer_type is not AnswerType.TEXT
    ]
    verdicts = DeterministicJudge().judge([(item.question, item.answer) for item in exact])
    return tuple(
        item
        for item, verdict in zip(exact, verdicts, strict=True)
        if verdict.correct is not item.similar
    )


def _agreement(group: str, pairs: Sequence[tuple[bool, bool]]) -> Agreement:
    n = len(pairs)
    first = sum(a for a, _ in pairs) / n
    second = sum(b for _, b in pairs) / n
    observed = sum(a == b for a, b in pairs) / n
    expected = first * second + (1 - first) * (1 - second)
    kappa = (observed - expected) / (1 - expected) if expected < 1 else float('nan')
    return Agreement(group, n, observed, kappa, first, second)
