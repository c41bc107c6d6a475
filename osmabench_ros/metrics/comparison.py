"""Comparison of conditions or methods on common scenes, and intervals within one scene."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError, suggestion
from osmabench_ros.metrics.statistics import (
    Interval,
    PairedDifference,
    bootstrap_interval,
    corrected_tests,
    paired_difference,
    relative_change,
)


def macc_over_objects(
    labels: NDArray[np.integer],
    instances: NDArray[np.integer],
    correct: NDArray[np.bool_],
    *,
    seed: int = 0,
    resamples: int = 2_000,
) -> Interval:
    """Return mAcc with an interval from resampling the objects of a scene.

    Points of one object are right or wrong together, so objects are drawn, not points. In a
    resample, classes none of whose objects were drawn leave the mean.

    Parameters
    ----------
    labels, instances : ndarray of int, shape (N,)
        Class and instance of each true point that is scored.
    correct : ndarray of bool, shape (N,)
        Whether its class was predicted.
    seed : int
        Seed of the resampling.
    resamples : int
        Number of resamples.

    Returns
    -------
    Interval
        Of unit 'objects': it says how much the figure hangs on single objects of this scene,
        not how another scene would fare.
    """
    if not labels.shape == instances.shape == correct.shape:
        raise MetricError(
            f'{labels.shape} labels, {instances.shape} instances and {correct.shape} verdicts'
        )
    _, things = np.unique(instances, return_inverse=True)
    names, kind = np.unique(labels, return_inverse=True)
    # An object whose points have several classes counts as one of each.
    objects, owner = np.unique(things * max(len(names), 1) + kind, return_inverse=True)
    classes = objects % max(len(names), 1)
    hits = np.bincount(owner, weights=correct, minlength=len(objects))
    points = np.bincount(owner, minlength=len(objects))
    kinds = len(names)

    def statistic(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        place = rows[..., 0].astype(np.int64) + kinds * np.arange(len(rows))[:, None]
        found, total = (
            np.bincount(place.ravel(), rows[..., k].ravel(), kinds * len(rows)) for k in (1, 2)
        )
        with np.errstate(invalid='ignore'):
            return np.asarray(np.nanmean((found / total).reshape(len(rows), kinds), axis=1))

    rows = np.stack([classes, hits, points], axis=1).astype(np.float64)
    return bootstrap_interval(
        rows, statistic=statistic, unit='objects', seed=seed, resamples=resamples
    )


Figures = Mapping[str, float | None]
"""A figure by scene; None where it is not applicable."""


@dataclass(frozen=True)
class Comparison:
    """How a condition or method differs from the reference.

    Parameters
    ----------
    paired : PairedDifference
        Other - reference, unit by unit, with interval and effect sizes.
    robustness : Interval
        Relative change of the mean; 0 is unmoved.
    adjusted_p : float
        p adjusted for all contrasts; NaN where no outcome could be significant.
    """

    paired: PairedDifference
    robustness: Interval
    adjusted_p: float


def compare_with_reference(
    figures: Mapping[str, Figures], reference: str, *, unit: str = 'scenes', seed: int = 0
) -> dict[str, Comparison]:
    """Compare every condition or method with one of them.

    Parameters
    ----------
    figures : mapping of str to mapping of str to float
        A figure by condition (or method) and scene. Scenes that one side lacks, or where the
        figure is not applicable, leave that comparison.
    reference : str
        Key of the reference.
    unit : str
        What the inner keys are: 'scenes', or 'objects' or 'questions' of one scene.
    seed : int
        Seed of resampling.

    Raises
    ------
    MetricError
        If the reference is not among the keys.
    """
    if reference not in figures:
        hint = suggestion(reference, figures)
        raise MetricError(f'there is no "{reference}" to compare with. {hint}')
    pairs = {
        name: _aligned(figures[reference], other)
        for name, other in figures.items()
        if name != reference
    }
    paired = {
        name: paired_difference(before, after, unit=unit, seed=seed)
        for name, (before, after) in pairs.items()
    }
    adjusted = corrected_tests(paired) or {}
    return {
        name: Comparison(
            paired[name],
            relative_change(before, after, unit=unit, seed=seed),
            adjusted.get(name, math.nan),
        )
        for name, (before, after) in pairs.items()
    }


def _aligned(first: Figures, second: Figures) -> tuple[list[float], list[float]]:
    both = [key for key in first if first[key] is not None and second.get(key) is not None]
    return [float(first[key] or 0.0) for key in both], [float(second[key] or 0.0) for key in both]
