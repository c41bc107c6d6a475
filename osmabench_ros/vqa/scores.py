"""Accuracies with intervals, overall and by category."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.vqa.questions import Question, Verdict

CONFIDENCE = 0.95
RESAMPLES = 2000


@dataclass(frozen=True)
class Tally:
    """How many questions of a group were answered, and how many rightly.

    Parameters
    ----------
    total, answered, correct : int
        correct <= answered <= total.
    """

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


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion (Wilson 1927); NaNs without samples."""
    if total == 0:
        return math.nan, math.nan
    z = float(norm.ppf(0.5 + CONFIDENCE / 2))
    share, spread = correct / total, z * z / total
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    low = 0.0 if correct == 0 else centre - half
    return low, 1.0 if correct == total else centre + half


def scene_bootstrap(
    correct: Mapping[str, Sequence[bool]], *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the 95 % interval of the pooled accuracy over scenes drawn with replacement.

    Parameters
    ----------
    correct : mapping of str to sequence of bool
        Verdicts by scene.
    """
    hits = np.array([sum(values) for values in correct.values()], float)
    sizes = np.array([len(values) for values in correct.values()], float)
    if len(hits) < 2:
        return wilson_interval(int(hits.sum()), int(sizes.sum()))
    drawn = np.random.default_rng(seed).integers(len(hits), size=(resamples, len(hits)))
    shares = hits[drawn].sum(1) / np.maximum(sizes[drawn].sum(1), 1)
    low, high = np.quantile(shares, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def paired_change(
    before: Mapping[tuple[str, str], bool],
    after: Mapping[tuple[str, str], bool],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[float, float, float, int]:
    """Return the change of accuracy on the questions both conditions have.

    Parameters
    ----------
    before, after : mapping of (scene, question id) to bool
        Whether the answer is right.

    Returns
    -------
    tuple of float, float, float, int
        Mean change, its 95 % interval over scenes drawn with replacement, number of questions.
    """
    shared = sorted(before.keys() & after.keys())
    by_scene: dict[str, list[int]] = defaultdict(list)
    for key in shared:
        by_scene[key[0]].append(int(after[key]) - int(before[key]))
    if not shared:
        return math.nan, math.nan, math.nan, 0
    sums = np.array([sum(v) for v in by_scene.values()], float)
    sizes = np.array([len(v) for v in by_scene.values()], float)
    change = float(sums.sum() / sizes.sum())
    if len(sums) < 2:
        sums, sizes = (
            np.array([v for vs in by_scene.values() for v in vs], float),
            np.ones(len(shared)),
        )
    drawn = np.random.default_rng(seed).integers(len(sums), size=(resamples, len(sums)))
    changes = sums[drawn].sum(1) / sizes[drawn].sum(1)
    low, high = np.quantile(changes, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return change, float(low), float(high), len(shared)


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
    """Return the accuracies of one answerer as metric records.

    Parameters
    ----------
    suite, mode, metric : str
        As in `MetricRecord`, e.g. ``'exact_questions', 'strict', 'accuracy'``.
    questions : sequence of Question
        All questions asked.
    verdicts : mapping of str to Verdict
        By question id; a question without verdict counts as wrong.
    not_applicable : collection of str
        Categories the method cannot serve: they leave the overall figure and are marked.
    by_category : bool
        Add a record for each category.
    answered_too : bool
        Add `<metric>_answered`, over answered questions alone, and `unanswered`, their share.
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
