"""Accuracies of saved answers by scene, condition and category, constants next to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from osmabench_ros.vqa.answering.baselines import constant, most_frequent, question_only
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge, Judge
from osmabench_ros.vqa.published import SavedAnswer
from osmabench_ros.vqa.questions import Answer, Question
from osmabench_ros.vqa.scores import compute_paired_change, interval_over_scenes

SPATIAL = frozenset({'Object Relations - Spatial', 'Relations-Spatial'})
ALL_SCENES = 'all'
GIVEN = 'given'


@dataclass(frozen=True)
class AnswerRow:
    """Accuracies of one group of answers, as fractions.

    Scene 'all' pools the scenes of a condition; `answers` is 'given' or the name of a baseline;
    `unjudged` answers have a verdict that says neither yes nor no and count as wrong, as in the
    published code; `source` is the folder of published files; `low` and `high` bound the 95 %
    interval, over scenes where there are several, else of a proportion; changes are paired with
    the reference's.
    """

    scene: str
    condition: str
    answers: str
    questions: int
    accuracy: float
    low: float
    high: float
    accuracy_without_spatial: float | None
    categories: Mapping[str, float] = field(default_factory=dict)
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    unjudged: int = 0
    source: str = ''

    @property
    def accuracy_macro(self) -> float:
        """Mean of the accuracies of the categories, which weighs small categories like large."""
        return sum(self.categories.values()) / len(self.categories)


_Judged = Sequence[tuple[SavedAnswer, bool]]


def answer_table(
    saved: Sequence[SavedAnswer],
    *,
    reference_condition: str = '',
    baselines: bool = True,
) -> list[AnswerRow]:
    """Score saved answers by source and group: the given ones, then baselines; pooled last."""
    judge = DeterministicJudge()
    by_source: dict[str, list[SavedAnswer]] = defaultdict(list)
    for item in saved:
        by_source[item.source].append(item)
    return [
        replace(row, source=source)
        for source, items in by_source.items()
        for row in _table_of_one(items, judge, reference_condition, baselines=baselines)
    ]


def _table_of_one(
    saved: Sequence[SavedAnswer], judge: Judge, reference_condition: str, *, baselines: bool
) -> list[AnswerRow]:
    verdicts = {GIVEN: _read_given_verdicts(saved, judge)}
    for name, answers in _baselines(saved).items() if baselines else ():
        verdicts[name] = _judge_rows(saved, answers, judge)
    rows = []
    for scene, condition, positions in _groups(saved):
        for name, right in verdicts.items():
            judged = [(saved[i], right[i]) for i in positions]
            reference = _reference(saved, right, reference_condition, scene, condition)
            rows.append(_row(scene, condition, name, judged, reference))
    return rows


def _groups(saved: Sequence[SavedAnswer]) -> list[tuple[str, str, list[int]]]:
    single: dict[tuple[str, str], list[int]] = defaultdict(list)
    pooled: dict[str, list[int]] = defaultdict(list)
    for position, item in enumerate(saved):
        single[item.question.scene, item.condition].append(position)
        pooled[item.condition].append(position)
    groups = [(scene, condition, single[scene, condition]) for scene, condition in sorted(single)]
    if len({scene for scene, _ in single}) > 1:
        groups += [(ALL_SCENES, condition, pooled[condition]) for condition in sorted(pooled)]
    return groups


def _read_given_verdicts(saved: Sequence[SavedAnswer], judge: Judge) -> list[bool]:
    missing = [i for i, item in enumerate(saved) if item.similar is None and not item.unjudged]
    asked = [saved[i] for i in missing]
    judged = _judge_rows(asked, [item.answer for item in asked], judge)
    by_position = dict(zip(missing, judged, strict=True))
    return [by_position.get(i, item.similar is True) for i, item in enumerate(saved)]


def _judge_rows(
    saved: Sequence[SavedAnswer], answers: Sequence[Answer], judge: Judge
) -> list[bool]:
    # Scenes and conditions ask the same questions and often get the same answers.
    pairs: dict[tuple[Any, ...], tuple[Question, Answer]] = {}
    keys = []
    for item, answer in zip(saved, answers, strict=True):
        asked = item.question
        key = asked.answer_type, asked.answer, asked.text, asked.tolerance, answer.value
        pairs.setdefault(key, (asked, answer))
        keys.append(key)
    verdicts = judge.judge(list(pairs.values()))
    correct = {key: item.correct for key, item in zip(pairs, verdicts, strict=True)}
    return [correct[key] for key in keys]


def _baselines(saved: Sequence[SavedAnswer]) -> dict[str, list[Answer]]:
    """Return each baseline's answers, made within each scene and condition."""
    makers: dict[str, Callable[[Sequence[Question]], list[Answer]]] = {
        'always yes': lambda questions: constant(questions, 'Yes'),
        'always no': lambda questions: constant(questions, 'No'),
        'most frequent': most_frequent,
        'question only': question_only,
    }
    conditions: dict[str, list[int]] = defaultdict(list)
    for position, item in enumerate(saved):
        conditions[item.condition].append(position)
    made: dict[tuple[str, ...], dict[str, list[Answer]]] = {}
    found = {name: [item.answer for item in saved] for name in makers}
    for positions in conditions.values():
        questions = [saved[i].question for i in positions]
        # Conditions mostly share one question set: its baselines are made once.
        ids = tuple(question.id for question in questions)
        if ids not in made:
            made[ids] = {name: make(questions) for name, make in makers.items()}
        for name, answers in made[ids].items():
            for position, answer in zip(positions, answers, strict=True):
                found[name][position] = answer
    return found


def _reference(
    saved: Sequence[SavedAnswer],
    right: Sequence[bool],
    reference_condition: str,
    scene: str,
    condition: str,
) -> dict[tuple[str, str], bool]:
    if not reference_condition or condition == reference_condition or scene != ALL_SCENES:
        return {}
    return {
        (item.question.scene, item.question.id): correct
        for item, correct in zip(saved, right, strict=True)
        if item.condition == reference_condition
    }


def _row(
    scene: str,
    condition: str,
    answers: str,
    judged: _Judged,
    reference: Mapping[tuple[str, str], bool],
) -> AnswerRow:
    by_scene: dict[str, list[bool]] = defaultdict(list)
    by_category: dict[str, list[bool]] = defaultdict(list)
    for item, right in judged:
        by_scene[item.question.scene].append(right)
        by_category[item.question.category].append(right)
    low, high = interval_over_scenes(by_scene)
    plain = [right for item, right in judged if item.question.category not in SPATIAL]
    change = None
    if reference:
        own = {(item.question.scene, item.question.id): right for item, right in judged}
        change = compute_paired_change(reference, own)
    return AnswerRow(
        scene,
        condition,
        answers,
        len(judged),
        _mean([right for _, right in judged]),
        low,
        high,
        _mean(plain) if plain else None,
        {name: _mean(by_category[name]) for name in sorted(by_category)},
        change.value if change is not None else None,
        change.low if change is not None else None,
        change.high if change is not None else None,
        sum(item.unjudged for item, _ in judged) if answers == GIVEN else 0,
    )


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


_CHANGES = ('change', 'change_low', 'change_high')


def flat_rows(table: Sequence[AnswerRow], *, with_changes: bool) -> list[dict[str, Any]]:
    """Return rows for a file, with a column for each category; of one source without it."""
    categories = sorted({name for row in table for name in row.categories})
    several = len({row.source for row in table}) > 1
    return [
        {
            **({'source': row.source} if several else {}),
            'scene': row.scene,
            'condition': row.condition,
            'answers': row.answers,
            'questions': row.questions,
            'unjudged': row.unjudged,
            'accuracy': row.accuracy,
            'low': row.low,
            'high': row.high,
            'accuracy_macro': row.accuracy_macro,
            'accuracy_without_spatial': row.accuracy_without_spatial,
            **{name: getattr(row, name) for name in _CHANGES if with_changes},
            **{name: row.categories.get(name) for name in categories},
        }
        for row in table
    ]
