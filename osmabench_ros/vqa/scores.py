"""Accuracies with intervals, overall and by category."""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from osmabench_ros.maps.export import list_holdings
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

# Categories about relations, under today's names and the names of the published files.
SPATIAL = frozenset({Category.RELATIONS_SPATIAL.value, 'Object Relations - Spatial'})
FUNCTIONAL = frozenset({Category.RELATIONS_FUNCTIONAL.value, 'Object Relations - Functional'})

# Note of an answer, and reason of a verdict, where a question was not asked.
UNSERVED = 'not applicable: the map holds nothing that such questions are answered from'


def find_unserved_categories(
    semantic_map: SemanticMap, questions: Sequence[Question]
) -> frozenset[str]:
    """Return the categories that a map has no data for, by its content.

    Without objects these are all, without edges between objects those about relations, without
    attributes and captions those about attributes, without points those about navigation.
    """
    held = list_holdings(semantic_map)
    if not held.things:
        return frozenset(question.category for question in questions)
    found: set[str] = set()
    if not held.relations:
        found |= {*SPATIAL, *FUNCTIONAL, SpatialCategory.RELATION.value}
    if not held.attributes and not held.captions:
        found.add(Category.OBJECT_ATTRIBUTES.value)
    if semantic_map.dense is None:
        found.add(SpatialCategory.NAVIGATION.value)
    return frozenset(found)


def interval_over_scenes(correct: Mapping[str, Sequence[bool]]) -> tuple[float, float]:
    """Return the 95 % interval over scenes; for one scene Wilson's; NaNs for two."""
    rows = [(float(sum(values)), float(len(values))) for values in correct.values()]
    if len(rows) < 2:
        return wilson_interval(*map(int, rows[0])) if rows else (math.nan, math.nan)
    found = jackknife_interval(np.array(rows), statistic=ratio_statistic, share=True)
    return found.low, found.high


def compute_paired_change(
    before: Mapping[tuple[str, str], bool],
    after: Mapping[tuple[str, str], bool],
    about: Mapping[tuple[str, str], Sequence[int]] = MappingProxyType({}),
) -> Interval:
    """Return the mean change on common questions and its interval over scenes.

    In one scene it is over the objects that questions are `about`; a question about no known
    object counts as its own unit.
    """
    common = sorted(before.keys() & after.keys())
    changes = [int(after[key]) - int(before[key]) for key in common]
    scenes = [(key[0],) for key in common]
    if len(set(scenes)) > 1:
        return jackknife_interval(changes, owners=scenes)
    objects = [about.get(key, ()) for key in common]
    unit = 'objects' if any(objects) else 'questions'
    return jackknife_interval(changes, unit=unit, owners=objects)


# A verdict, and the objects that its question is about.
_Judged = tuple[Verdict, tuple[int, ...]]


def records(
    suite: str,
    mode: str,
    metric: str,
    questions: Sequence[Question],
    verdicts: Iterable[Verdict],
    *,
    not_applicable: Collection[str] = (),
    excluded: Collection[str] = (),
    by_category: bool = True,
    answered_too: bool = True,
) -> list[MetricRecord]:
    """Return the accuracies of one answerer as metric records; no verdict counts as wrong.

    `not_applicable` are categories that the map holds nothing for: their questions are wrong in
    the overall accuracy, and their own rows are marked. `excluded` ones are not scored at all.
    `answered_too` adds `<metric>_answered`, over answered questions only, `unanswered`, their
    fraction, and overall `<metric>_macro`, the mean of categories that are not excluded, and
    `<metric>_served`, without the questions that are not applicable.
    """
    given = {verdict.question_id: verdict for verdict in verdicts}
    groups: dict[str, list[_Judged]] = {'': []}
    served: list[_Judged] = []
    for question in questions:
        verdict = given.get(question.id) or Verdict(question.id, False, '', answered=False)
        judged = (verdict, question.evidence.nodes)
        groups.setdefault(question.category, []).append(judged)
        if question.category not in excluded:
            groups[''].append(judged)
            served += [] if question.category in not_applicable else [judged]
    make = partial(_record, suite, mode)
    found: list[MetricRecord] = []
    for category, items in groups.items() if by_category else [('', groups[''])]:
        is_marked = category in excluded or category in not_applicable or not served
        found.append(make(metric, category, items, excluded=is_marked))
        if answered_too:
            answered = [judged for judged in items if judged[0].answered]
            found.append(make(f'{metric}_answered', category, answered, excluded=is_marked))
            found.append(make('unanswered', category, items, excluded=is_marked))
    if answered_too:
        found.append(make(f'{metric}_served', '', served, excluded=not served))
        scored = [items for group, items in groups.items() if group and group not in excluded]
        values = [math.fsum(verdict.correct for verdict, _ in x) / len(x) for x in scored]
        macro = math.fsum(values) / len(values) if served else None
        found.append(MetricRecord(suite, mode, f'{metric}_macro', value=macro, n=len(groups[''])))
    return found


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
        if item.metric == 'accuracy_served'
    }
    made: dict[Key, list[MetricRecord]] = {key: [] for key in compared}
    for suite, mode in sorted(asked):
        served = {
            key: shares
            for key, found in compared.items()
            if (
                shares := {
                    item.class_name: (item.value, item.n)
                    for item in found
                    if item.key[:3] == (suite, mode, 'accuracy')
                    if item.class_name and item.value is not None
                }
            )
        }
        categories = {frozenset(shares) for shares in served.values()}
        if len(categories) < 2:
            continue
        common = frozenset.intersection(*categories)
        for key, shares in served.items():
            count = sum(shares[name][1] for name in common)
            right = math.fsum(math.prod(shares[name]) for name in common)
            value = right / count if count else None
            made[key].append(MetricRecord(suite, mode, 'accuracy_of_common', value=value, n=count))
    return made


def _record(
    suite: str,
    mode: str,
    metric: str,
    category: str,
    judged: Sequence[_Judged],
    *,
    excluded: bool,
) -> MetricRecord:
    """Return a share with its interval; questions about no known object are taken one by one."""
    is_right = metric != 'unanswered'
    hits = [verdict.correct if is_right else not verdict.answered for verdict, _ in judged]
    owners = [nodes for _, nodes in judged]
    record = MetricRecord.of_share(suite, mode, metric, hits, category, higher_is_better=is_right)
    if excluded or not hits:
        return replace(record, value=None, low=None, high=None, applicable=False)
    if not any(owners):
        return record
    found = jackknife_interval(hits, unit='objects', owners=owners, share=True)
    return replace(record, low=found.low, high=found.high)
