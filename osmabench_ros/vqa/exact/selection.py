"""Selects drafts: quotas by category, balanced yes and no, even use of objects."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import TypeVar

from osmabench_ros.vqa.english import without_adjectives
from osmabench_ros.vqa.exact.view import Draft
from osmabench_ros.vqa.kinds import Kind, QueryKind
from osmabench_ros.vqa.questions import AnswerType

Item = TypeVar('Item')

OVERUSE = 3.0
"""An object is overused when questions mention it more often than this times the median."""

_BY_VALUE = (QueryKind.HAS_COLOR, QueryKind.HAS_MATERIAL)
"""Kinds whose word is a value of the scene; other words, such as relations, take turns."""

_Entry = tuple[int, int, int, Draft]


def usage_limit(counts: Iterable[int]) -> float:
    """Return how often an object may be mentioned: OVERUSE x median (arXiv 2503.10331)."""
    return OVERUSE * max(2.0, median(counts or [0]))


def overused(items: Sequence[Item], subjects: Callable[[Item], Iterable[str]]) -> frozenset[str]:
    """Return the objects that items mention more often than `usage_limit` allows."""
    counts = Counter(subject for item in items for subject in set(subjects(item)))
    limit = usage_limit(list(counts.values()))
    return frozenset(subject for subject, count in counts.items() if count > limit)


def subjects_of(draft: Draft) -> tuple[str, ...]:
    """Return the subjects of a draft: its phrases without colours and materials."""
    return tuple({without_adjectives(phrase): None for phrase in draft.query.phrases})


class _Pool:
    """Drafts of one category and answer; hands out the one with the least used objects.

    With weights, the kind with the fewest drafts handed out relative to its weight comes first.
    """

    def __init__(
        self, drafts: Iterable[Draft], usage: Counter[str], weights: Mapping[Kind, float]
    ) -> None:
        self._usage = usage
        self._weights = weights
        self._taken: Counter[Kind | None] = Counter()
        self._next: Kind | None = None
        turn: Counter[tuple[str, str]] = Counter()
        self._heaps: dict[Kind | None, list[_Entry]] = {}
        for position, draft in enumerate(drafts):
            kind = draft.query.kind
            key = (kind.value, '' if kind in _BY_VALUE else draft.query.word)
            heap = self._heaps.setdefault(kind if weights else None, [])
            heap.append((0, turn[key], position, draft))
            turn[key] += 1
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def _rank(self, kind: Kind | None) -> float:
        weight = 1.0 if kind is None else self._weights.get(kind, 1.0)
        return (self._taken[kind] + 1) / weight

    def peek(self, limit: float) -> bool:
        """Return whether a draft is left with objects that may still be mentioned."""
        for kind in sorted(self._heaps, key=self._rank):
            heap = self._heaps[kind]
            while heap:
                used, turn, position, draft = heap[0]
                now = max((self._usage[name] for name in subjects_of(draft)), default=0)
                if now == used:
                    break
                heapq.heapreplace(heap, (now, turn, position, draft))
            if heap and heap[0][0] < limit:
                self._next = kind
                return True
        return False

    def pop(self) -> Draft:
        """Take the draft that `peek` found."""
        draft = heapq.heappop(self._heaps[self._next])[-1]
        self._taken[self._next] += 1
        self._usage.update(subjects_of(draft))
        return draft


class _Selector:
    """Takes drafts of a category in pairs of yes and no, other answers in turn with them."""

    def __init__(
        self,
        drafts: Sequence[Draft],
        labels: Collection[str],
        weights: Mapping[Kind, float],
    ) -> None:
        self._usage: Counter[str] = Counter()
        self._labels = frozenset(labels)
        sides: dict[tuple[str, str], list[Draft]] = {}
        for draft in drafts:
            sides.setdefault((draft.category.value, _side(draft)), []).append(draft)
        self._pools = {key: _Pool(items, self._usage, weights) for key, items in sides.items()}

    def _limit(self) -> float:
        used = [count for name, count in self._usage.items() if name in self._labels]
        return usage_limit(used)

    def take(self, category: str, size: int) -> list[Draft]:
        """Return up to `size` drafts of a category."""
        empty = _Pool((), self._usage, {})
        yes, no, other = (
            self._pools.get((category, side), empty) for side in ('yes', 'no', 'other')
        )
        taken: list[Draft] = []
        pairs = 0
        while len(taken) < size:
            limit = self._limit()
            room = size - len(taken)
            pair = room >= 2 and yes.peek(limit) and no.peek(limit)
            single = other.peek(limit)
            if pair and (not single or 2 * pairs <= len(taken) - 2 * pairs):
                taken += [yes.pop(), no.pop()]
                pairs += 1
            elif single:
                taken.append(other.pop())
            else:
                break
        return taken


def _side(draft: Draft) -> str:
    return str(draft.answer) if draft.query.kind.answer_type is AnswerType.YES_NO else 'other'


def select(
    drafts: Sequence[Draft],
    quota: Mapping[str, int],
    labels: Collection[str],
    weights: Mapping[Kind, float] = MappingProxyType({}),
) -> list[Draft]:
    """Choose from shuffled drafts; yes and no are equally many in every category."""
    selector = _Selector(drafts, labels, weights)
    chosen: dict[str, list[Draft]] = {name: [] for name in quota}
    wanted = dict(quota)
    able = list(quota)
    while wanted:
        for name, size in wanted.items():
            taken = selector.take(name, size)
            chosen[name] += taken
            if not taken:
                able.remove(name)
        wanted = _split_evenly(sum(quota.values()) - sum(map(len, chosen.values())), able)
    return _without_overuse([draft for items in chosen.values() for draft in items], labels)


def _split_evenly(missing: int, names: Sequence[str]) -> dict[str, int]:
    """Split a number among names in even parts that fit pairs of yes and no."""
    if missing <= 0 or not names:
        return {}
    part = min(missing, max(2, missing // len(names) // 2 * 2))
    return dict.fromkeys(names[: max(1, missing // part)], part)


def _without_overuse(chosen: list[Draft], labels: Collection[str]) -> list[Draft]:
    """Drop questions about overused objects, the latest first, until none is left."""
    known = frozenset(labels)

    def subjects(draft: Draft) -> list[str]:
        return [name for name in subjects_of(draft) if name in known]

    while too_often := overused(chosen, subjects):
        last = max(i for i, draft in enumerate(chosen) if too_often & set(subjects(draft)))
        del chosen[last]
        chosen = _balance_answers(chosen)
    return chosen


def _balance_answers(chosen: Sequence[Draft]) -> list[Draft]:
    """Drop the latest of the longer side of yes and no in each category."""
    room = Counter((draft.category.value, _side(draft)) for draft in chosen)
    kept = []
    seen: Counter[tuple[str, str]] = Counter()
    for draft in chosen:
        category, side = draft.category.value, _side(draft)
        opposite = {'yes': 'no', 'no': 'yes'}.get(side, side)
        if seen[category, side] < room[category, opposite]:
            seen[category, side] += 1
            kept.append(draft)
    return kept
