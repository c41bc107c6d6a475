"""Accuracies with intervals, overall and by category."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from osmabench_ros.maps.holdings import holdings
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.statistics import (
    RESAMPLES,
    Interval,
    bootstrap_interval,
    ratio_statistic,
    wilson_interval,
)
from osmabench_ros.vqa.questions import Category, Question, Verdict

RELATION_CATEGORIES = frozenset(
    {
        Category.RELATIONS_SPATIAL.value,
        Category.RELATIONS_FUNCTIONAL.value,
        'Object Relations - Spatial',
        'Object Relations - Functional',
    }
)
"""Categories about relations, under today's names and those of the published files."""

UNSERVED = 'not applicable: the map holds nothing that such questions are answered from'
"""Note on the answer to a question that was not asked, and reason of its verdict."""


def unserved_categories(
    semantic_map: SemanticMap, questions: Sequence[Question]
) -> frozenset[str]:
    """Return the categories that a map holds nothing for, and those that it says it lacks.

    Without things these are all, without edges between things those about relations, without
    attributes and captions those about attributes.
    """
    held = holdings(semantic_map)
    if not held.things:
        return frozenset(question.category for question in questions)
    stated = semantic_map.extras.get('unserved_question_categories', ())
    found = {str(item) for item in stated} if isinstance(stated, (list, tuple)) else set()
    if not held.relations:
        found |= RELATION_CATEGORIES
    if not held.attributes and not held.captions:
        found.add(Category.OBJECT_ATTRIBUTES.value)
    return frozenset(found)


@dataclass(frozen=True)
class Tally:
    """Number of questions of a group, of answers, and of right answers."""

    total: int
    answered: int
    correct: int

    @property
    def accuracy(self) -> float:
        """Right answers over all questions; NaN without questions."""
        return self.correct / self.total if self.total else math.nan

    @property
    def accuracy_of_answered(self) -> float:
        """Right answers over answered questions; NaN if nothing was answered."""
        return self.correct / self.answered if self.answered else math.nan


def tally(verdicts: Sequence[Verdict]) -> Tally:
    """Count verdicts."""
    return Tally(
        len(verdicts),
        sum(verdict.answered for verdict in verdicts),
        sum(verdict.correct for verdict in verdicts),
    )


def scene_bootstrap(
    correct: Mapping[str, Sequence[bool]], *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the 95 % interval over resampled scenes; of one scene that of a proportion."""
    rows = [(float(sum(values)), float(len(values))) for values in correct.values()]
    if len(rows) < 2:
        return wilson_interval(*map(int, rows[0])) if rows else (math.nan, math.nan)
    found = bootstrap_interval(
        np.array(rows), statistic=ratio_statistic, seed=seed, resamples=resamples
    )
    return found.low, found.high


def paired_change(
    before: Mapping[tuple[str, str], bool],
    after: Mapping[tuple[str, str], bool],
    *,
    seed: int = 0,
) -> Interval:
    """Return the mean change on common questions and its interval over scenes, or questions."""
    by_scene: dict[str, list[int]] = defaultdict(list)
    for key in sorted(before.keys() & after.keys()):
        by_scene[key[0]].append(int(after[key]) - int(before[key]))
    if len(by_scene) == 1:
        (changes,) = by_scene.values()
        return bootstrap_interval(changes, unit='questions', seed=seed)
    rows = [(float(sum(values)), float(len(values))) for values in by_scene.values()]
    return bootstrap_interval(np.array(rows), statistic=ratio_statistic, seed=seed)


def records(
    suite: str,
    mode: str,
    metric: str,
    questions: Sequence[Question],
    verdicts: Mapping[str, Verdict],
    *,
    not_applicable: Collection[str] = (),
    by_category: bool = True,
    answered_too: bool = True,
) -> list[MetricRecord]:
    """Return the accuracies of one answerer as metric records; without verdict counts as wrong.

    Categories that are not applicable leave the overall figure and are marked. `answered_too` adds
    `<metric>_answered`, over answered questions alone, `unanswered`, their share, and overall
    `<metric>_of_all`, where what is not applicable counts as wrong, so that no map gains by what
    it does not hold.
    """
    groups: dict[str, list[Verdict]] = {'': []}
    for question in questions:
        verdict = verdicts.get(question.id) or Verdict(question.id, False, '', answered=False)
        groups.setdefault(question.category, []).append(verdict)
        if question.category not in not_applicable:
            groups[''].append(verdict)
    found: list[MetricRecord] = []
    for category, items in groups.items() if by_category else [('', groups[''])]:
        excluded = category in not_applicable
        found += _group_records(
            suite, mode, metric, category, items, excluded=excluded, answered_too=answered_too
        )
    if answered_too:
        every = tally([verdict for key, items in groups.items() if key for verdict in items])
        name, unserved = f'{metric}_of_all', not groups['']
        found.append(
            _record(suite, mode, name, '', every.correct, every.total, True, excluded=unserved)
        )
    return found


def _group_records(
    suite: str,
    mode: str,
    metric: str,
    category: str,
    verdicts: Sequence[Verdict],
    *,
    excluded: bool,
    answered_too: bool,
) -> list[MetricRecord]:
    counts = tally(verdicts)
    rows = [(metric, counts.correct, counts.total, True)]
    if answered_too:
        rows.append((f'{metric}_answered', counts.correct, counts.answered, True))
        rows.append(('unanswered', counts.total - counts.answered, counts.total, False))
    return [
        _record(suite, mode, name, category, hits, total, better, excluded)
        for name, hits, total, better in rows
    ]


def _record(
    suite: str,
    mode: str,
    metric: str,
    category: str,
    hits: int,
    total: int,
    higher_is_better: bool,
    excluded: bool,
) -> MetricRecord:
    if excluded or total == 0:
        return MetricRecord(
            suite,
            mode,
            metric,
            category,
            n=total,
            higher_is_better=higher_is_better,
            applicable=False,
        )
    low, high = wilson_interval(hits, total)
    return MetricRecord(
        suite, mode, metric, category, hits / total, low, high, total, higher_is_better
    )
