"""Accuracies of saved answers by scene, condition and category, constants next to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from osmabench_ros.metrics.record import Mode
from osmabench_ros.vqa.answering.baselines import constant, most_frequent, question_only
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge, Judge
from osmabench_ros.vqa.published import Published, Scores
from osmabench_ros.vqa.questions import Answer, Question
from osmabench_ros.vqa.saved_answers import SavedAnswer, read_saved_answers
from osmabench_ros.vqa.scores import compute_paired_change, interval_over_scenes

if TYPE_CHECKING:
    import pandas as pd

SPATIAL = frozenset({'Object Relations - Spatial', 'Relations-Spatial'})
ALL_SCENES, GIVEN = 'all', 'given'


def saved_answers(reference: str = '', *, baselines: bool = True) -> Published[SavedAnswer]:
    """Return how saved answers are scored: accuracies by source, scene and condition.

    The scene 'all' pools the scenes of a condition; `answers` is 'given' or the name of a
    baseline; `unjudged` answers have a verdict that says neither yes nor no and count as wrong, as
    in the published code; `low` and `high` bound the 95 % interval, over scenes where there are
    several, else of a proportion; `accuracy_macro` weighs small categories like large ones;
    `accuracy_strict` takes no verdict of a file: rules judge, and each question counts once.
    Pooled rows have the change from the condition `reference`, on the same questions.
    """
    changes = ('change', 'change_low', 'change_high') if reference else ()

    def compare(saved: Sequence[SavedAnswer], _mode: Mode) -> Iterator[dict[str, Any]]:
        judge = DeterministicJudge()
        by_source: dict[str, list[SavedAnswer]] = defaultdict(list)
        for item in saved:
            by_source[item.source].append(item)
        for items in by_source.values():
            verdicts = {GIVEN: _read_given_verdicts(items, judge)}
            for name, answers in _make_baselines(items).items() if baselines else ():
                verdicts[name] = _judge_answers(items, answers, judge)
            by_rule = {GIVEN: _judge_answers(items, [item.answer for item in items], judge)}
            for name, right in verdicts.items():
                ruled = by_rule.get(name, right)
                yield from _list_outcomes(items, name, right, ruled, reference)

    def sum_up(group: Mapping[str, str], part: pd.DataFrame) -> dict[str, Any]:
        low, high = interval_over_scenes(part.groupby('of_scene')['right'].agg(list).to_dict())
        plain = part['right'][~part['category'].isin(SPATIAL)]
        categories = part.groupby('category')['right'].mean()
        paired = part[part['before'].notna()]
        change = None
        if len(paired) and group['scene'] == ALL_SCENES and group['condition'] != reference:
            keys = list(zip(paired['of_scene'], paired['id'], strict=True))
            before, after = (dict(zip(keys, paired[x], strict=True)) for x in ('before', 'right'))
            change = compute_paired_change(before, after)
        bounds = [None] * 3 if change is None else [change.value, change.low, change.high]
        return {
            'unjudged': int(part['unjudged'].sum()),
            'accuracy': float(part['right'].mean()),
            'low': low,
            'high': high,
            'accuracy_macro': float(categories.mean()),
            'accuracy_without_spatial': float(plain.mean()) if len(plain) else None,
            'accuracy_strict': float(part.groupby('question')['by_rule'].mean().mean()),
            **dict(zip(changes, bounds, strict=False)),
            'categories': categories.to_dict(),
        }

    return Published(
        read_saved_answers,
        compare,
        groups=('source', 'scene', 'condition', 'answers'),
        unit='questions',
        modes=(Mode.NONE,),
        orders={'scene': (..., ALL_SCENES), 'condition': (...,)},
        sum_up=sum_up,
        arrange=_split_categories,
    )


def _list_outcomes(
    saved: Sequence[SavedAnswer],
    name: str,
    right: Sequence[bool],
    by_rule: Sequence[bool],
    reference: str,
) -> Iterator[dict[str, Any]]:
    """Yield the answers of one source by a method or a baseline."""
    pooled = (ALL_SCENES,) if len({item.question.scene for item in saved}) > 1 else ()
    keys = [(item.question.scene, item.question.id) for item in saved]
    before = {
        key: correct
        for item, key, correct in zip(saved, keys, right, strict=True)
        if reference and item.condition == reference
    }
    for item, key, correct, ruled in zip(saved, keys, right, by_rule, strict=True):
        asked = item.question
        yield {
            'source': item.source,
            'scene': (item.question.scene, *pooled),
            'condition': item.condition,
            'answers': name,
            'of_scene': item.question.scene,
            'id': item.question.id,
            'category': item.question.category,
            'right': correct,
            'by_rule': ruled,
            'question': (asked.scene, asked.text, str(asked.answer)),
            'before': before.get(key),
            'unjudged': item.unjudged and name == GIVEN,
        }


def _split_categories(scores: Scores) -> Scores:
    """Return scores with a column for each category, and for the source if there are several."""
    names = sorted({name for row in scores for name in row['categories']})
    several = len({row['source'] for row in scores}) > 1
    hidden = {'categories', *(() if several else ('source',))}
    return [
        {key: value for key, value in row.items() if key not in hidden}
        | {name: row['categories'].get(name) for name in names}
        for row in scores
    ]


def _read_given_verdicts(saved: Sequence[SavedAnswer], judge: Judge) -> list[bool]:
    missing = [i for i, item in enumerate(saved) if item.similar is None and not item.unjudged]
    asked = [saved[i] for i in missing]
    judged = _judge_answers(asked, [item.answer for item in asked], judge)
    by_position = dict(zip(missing, judged, strict=True))
    return [by_position.get(i, item.similar is True) for i, item in enumerate(saved)]


def _judge_answers(
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


def _make_baselines(saved: Sequence[SavedAnswer]) -> dict[str, list[Answer]]:
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
