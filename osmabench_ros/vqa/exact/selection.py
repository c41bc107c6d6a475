"""Selects drafts: quotas by category, balanced yes and no, even use of objects."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from statistics import median
from typing import Any, TypeVar

from osmabench_ros.vqa.english import without_adjectives
from osmabench_ros.vqa.exact.view import Draft
from osmabench_ros.vqa.kinds import Kind, QueryKind
from osmabench_ros.vqa.questions import AnswerType

Item = TypeVar('Item')

# An object is overused when questions mention it more often than this times the median.
OVERUSE = 3.0

# Kinds with a value of the scene as word; other words, such as relations, take turns.
_BY_VALUE = (QueryKind.HAS_COLOR, QueryKind.HAS_MATERIAL)

_OPPOSITE = {'yes': 'no', 'no': 'yes'}


def usage_limit(counts: Iterable[int]) -> float:
    """Return how often an object may be mentioned: OVERUSE x median (arXiv 2503.10331)."""
    return OVERUSE * max(2.0, median([*counts] or [0]))


def overused(items: Sequence[Item], subjects: Callable[[Item], Iterable[str]]) -> frozenset[str]:
    """Return the objects that items mention more often than `usage_limit` allows."""
    counts = Counter(subject for item in items for subject in set(subjects(item)))
    limit = usage_limit(counts.values())
    return frozenset(subject for subject, count in counts.items() if count > limit)


def subjects_of(draft: Draft) -> tuple[str, ...]:
    """Return the subjects of a draft: its phrases without colours and materials."""
    return tuple({without_adjectives(phrase): None for phrase in draft.query.phrases})


class _Selector:
    """Takes drafts of a category in pairs of yes and no, other answers in turn with them.

    Each is the one with the least used objects. With weights, the kind with the fewest drafts
    taken relative to its weight comes first.
    """

    def __init__(
        self, drafts: Iterable[Draft], labels: Collection[str], weights: Mapping[Kind, float]
    ) -> None:
        self._labels = labels
        self._weights = weights
        self._usage: Counter[str] = Counter()
        self._taken: Counter[tuple[str, str, Kind | None]] = Counter()
        self._drafts: dict[tuple[str, str, Kind | None], list[Draft]] = defaultdict(list)
        turns: dict[tuple[str, ...], Iterator[int]] = defaultdict(count)

        def take_turn(draft: Draft) -> int:
            kind = draft.query.kind
            word = '' if kind in _BY_VALUE else draft.query.word
            return next(turns[(*_pool_of(draft), kind.value, word)])

        for draft in sorted(drafts, key=take_turn):
            self._drafts[self._key_of(draft)].append(draft)

    def _key_of(self, draft: Draft) -> tuple[str, str, Kind | None]:
        return (*_pool_of(draft), draft.query.kind if self._weights else None)

    def _count_uses(self, draft: Draft) -> int:
        return max((self._usage[name] for name in subjects_of(draft)), default=0)

    def _find(self, category: str, side: str, limit: float) -> Draft | None:
        """Return the next draft with objects that may still be mentioned."""

        def rank(key: Any) -> float:
            return (self._taken[key] + 1) / self._weights.get(key[2], 1.0)

        own = (key for key in self._drafts if key[:2] == (category, side))
        for key in sorted(own, key=rank):
            best = min(self._drafts[key], key=self._count_uses, default=None)
            if best is not None and self._count_uses(best) < limit:
                return best
        return None

    def _take(self, draft: Draft) -> Draft:
        key = self._key_of(draft)
        self._drafts[key].remove(draft)
        self._taken[key] += 1
        self._usage.update(subjects_of(draft))
        return draft

    def take(self, category: str, size: int) -> list[Draft]:
        """Return up to `size` drafts of a category."""
        taken: list[Draft] = []
        pairs = 0
        while len(taken) < size:
            limit = usage_limit(n for name, n in self._usage.items() if name in self._labels)
            yes, no, other = (self._find(category, side, limit) for side in ('yes', 'no', 'other'))
            has_room = len(taken) + 2 <= size and (not other or 4 * pairs <= len(taken))
            if yes and no and has_room:
                taken += [self._take(yes), self._take(no)]
                pairs += 1
            elif other:
                taken.append(self._take(other))
            else:
                break
        return taken


def _pool_of(draft: Draft) -> tuple[str, str]:
    """Return the category of a draft, and its answer, 'other' if that is not yes or no."""
    is_yes_no = draft.query.kind.answer_type is AnswerType.YES_NO
    return draft.category.value, str(draft.answer) if is_yes_no else 'other'


def select(
    drafts: Sequence[Draft],
    quota: Mapping[str, int],
    labels: Collection[str],
    weights: Mapping[Kind, float],
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

    def subjects(draft: Draft) -> list[str]:
        return [name for name in subjects_of(draft) if name in labels]

    while too_often := overused(chosen, subjects):
        last = max(i for i, draft in enumerate(chosen) if too_often & set(subjects(draft)))
        del chosen[last]
        chosen = _balance_answers(chosen)
    return chosen


def _balance_answers(chosen: Sequence[Draft]) -> list[Draft]:
    """Drop the latest of the longer side of yes and no in each category."""
    room = Counter(map(_pool_of, chosen))
    kept = []
    seen: Counter[tuple[str, str]] = Counter()
    for draft in chosen:
        category, side = pool = _pool_of(draft)
        if seen[pool] < room[category, _OPPOSITE.get(side, side)]:
            seen[pool] += 1
            kept.append(draft)
    return kept
