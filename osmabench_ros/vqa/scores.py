"""Accuracies with intervals, overall and by category."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from osmabench_ros.maps.export import holdings
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.statistics import (
    Interval,
    jackknife_interval,
    ratio_statistic,
    wilson_interval,
)
from osmabench_ros.vqa.questions import Category, Question, SpatialCategory, Verdict

Key = TypeVar('Key', bound=Hashable)

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
    attributes and captions those about attributes, without points those about ways.
    """
    held = holdings(semantic_map)
    if not held.things:
        return frozenset(question.category for question in questions)
    stated = semantic_map.extras.get('unserved_question_categories', ())
    found = {str(item) for item in stated} if isinstance(stated, (list, tuple)) else set()
    if not held.relations:
        found |= RELATION_CATEGORIES
        found.add(SpatialCategory.RELATION.value)
    if not held.attributes and not held.captions:
        found.add(Category.OBJECT_ATTRIBUTES.value)
    if semantic_map.dense is None:
        found.add(SpatialCategory.NAVIGATION.value)
    return frozenset(found)


def interval_over_scenes(correct: Mapping[str, Sequence[bool]]) -> tuple[float, float]:
    """Return the 95 % interval over scenes; of one scene that of a proportion; NaNs for two."""
    rows = [(float(sum(values)), float(len(values))) for values in correct.values()]
    if len(rows) < 2:
        return wilson_interval(*map(int, rows[0])) if rows else (math.nan, math.nan)
    found = jackknife_interval(np.array(rows), statistic=ratio_statistic, share=True)
    return found.low, found.high


def paired_change(
    before: Mapping[tuple[str, str], bool],
    after: Mapping[tuple[str, str], bool],
    about: Mapping[tuple[str, str], Sequence[int]] = MappingProxyType({}),
) -> Interval:
    """Return the mean change on common questions and its interval over scenes.

    In one scene it is over the objects that questions are `about`; those about none that is
    known count as one each.
    """
    common = sorted(before.keys() & after.keys())
    changes = [int(after[key]) - int(before[key]) for key in common]
    scenes = [(key[0],) for key in common]
    if len(set(scenes)) > 1:
        return jackknife_interval(changes, owners=scenes)
    objects = [about.get(key, ()) for key in common]
    unit = 'objects' if any(objects) else 'questions'
    return jackknife_interval(changes, unit=unit, owners=objects)


def records(
    suite: str,
    mode: str,
    metric: str,
    questions: Sequence[Question],
    verdicts: Iterable[Verdict],
    *,
    not_applicable: Collection[str] = (),
    by_category: bool = True,
    answered_too: bool = True,
) -> list[MetricRecord]:
    """Return the accuracies of one answerer as metric records; without verdict counts as wrong.

    Categories that are not applicable leave the overall figure and are marked. `answered_too` adds
    `<metric>_answered`, over answered questions alone, `unanswered`, their share, and overall
    `<metric>_macro`, the mean of the applicable categories, and `<metric>_of_all`, where what is
    not applicable counts as wrong, so that no map gains by what it does not hold.
    """
    given = {verdict.question_id: verdict for verdict in verdicts}
    groups: dict[str, list[_Judged]] = {'': []}
    for question in questions:
        verdict = given.get(question.id) or Verdict(question.id, False, '', answered=False)
        judged = (verdict, question.evidence.nodes)
        groups.setdefault(question.category, []).append(judged)
        if question.category not in not_applicable:
            groups[''].append(judged)
    found: list[MetricRecord] = []
    for category, items in groups.items() if by_category else [('', groups[''])]:
        excluded = category in not_applicable
        found += _group_records(
            suite, mode, metric, category, items, excluded=excluded, answered_too=answered_too
        )
    if answered_too:
        everything = [
            (verdict.correct, nodes)
            for category, items in groups.items()
            if category
            for verdict, nodes in items
        ]
        name, unserved = f'{metric}_of_all', not groups['']
        found.append(_record(suite, mode, name, '', everything, True, excluded=unserved))
        served = served_categories(found, suite, mode, metric).values()
        macro = math.fsum(value for value, _ in served) / len(served) if served else None
        count = sum(n for _, n in served)
        found.append(MetricRecord(suite, mode, f'{metric}_macro', value=macro, n=count))
    return found


def served_categories(
    found: Iterable[MetricRecord], suite: str, mode: str, metric: str
) -> dict[str, tuple[float, int]]:
    """Return the share of right answers, and the number of questions, of applicable categories."""
    return {
        item.class_name: (item.value, item.n)
        for item in found
        if item.class_name and item.value is not None
        if (item.suite, item.mode, item.metric) == (suite, mode, metric)
    }


def common_accuracies(
    compared: Mapping[Key, Sequence[MetricRecord]],
) -> dict[Key, list[MetricRecord]]:
    """Return `accuracy_of_common` of maps that were asked the questions of one scene.

    It is over the categories that all of them can serve; a map that can serve none is not
    compared. Suites in which all maps serve the same have none, as it would be `accuracy`.
    """
    asked = {
        (item.suite, item.mode)
        for found in compared.values()
        for item in found
        if item.metric == 'accuracy_of_all'
    }
    made: dict[Key, list[MetricRecord]] = {key: [] for key in compared}
    for suite, mode in sorted(asked):
        served = {
            key: categories
            for key, found in compared.items()
            if (categories := served_categories(found, suite, mode, 'accuracy'))
        }
        if len({frozenset(categories) for categories in served.values()}) < 2:
            continue
        common = frozenset.intersection(*map(frozenset, served.values()))
        for key, categories in served.items():
            count = sum(categories[name][1] for name in common)
            right = math.fsum(math.prod(categories[name]) for name in common)
            value = right / count if count else None
            made[key].append(MetricRecord(suite, mode, 'accuracy_of_common', value=value, n=count))
    return made


_Judged = tuple[Verdict, tuple[int, ...]]
"""A verdict, and the objects that its question is about."""


def _group_records(
    suite: str,
    mode: str,
    metric: str,
    category: str,
    judged: Sequence[_Judged],
    *,
    excluded: bool,
    answered_too: bool,
) -> list[MetricRecord]:
    right = [(verdict.correct, nodes) for verdict, nodes in judged]
    rows = [(metric, right, True)]
    if answered_too:
        answered = [(verdict.correct, nodes) for verdict, nodes in judged if verdict.answered]
        unanswered = [(not verdict.answered, nodes) for verdict, nodes in judged]
        rows += [(f'{metric}_answered', answered, True), ('unanswered', unanswered, False)]
    return [
        _record(suite, mode, name, category, outcomes, better, excluded)
        for name, outcomes, better in rows
    ]


def _record(
    suite: str,
    mode: str,
    metric: str,
    category: str,
    outcomes: Sequence[tuple[bool, tuple[int, ...]]],
    higher_is_better: bool,
    excluded: bool,
) -> MetricRecord:
    hits, total = [hit for hit, _ in outcomes], len(outcomes)
    if excluded or total == 0:
        return MetricRecord(
            suite, mode, metric, category, n=total, higher_is_better=higher_is_better
        )
    low, high = _interval_over_objects(hits, [nodes for _, nodes in outcomes])
    value = sum(hits) / total
    return MetricRecord(suite, mode, metric, category, value, low, high, total, higher_is_better)


def _interval_over_objects(
    hits: Sequence[bool], objects: Sequence[tuple[int, ...]]
) -> tuple[float, float]:
    """Return the interval of a share; questions about no known object are taken one by one."""
    if not any(objects):
        return wilson_interval(sum(hits), len(hits))
    found = jackknife_interval(hits, unit='objects', owners=objects, share=True)
    return found.low, found.high
