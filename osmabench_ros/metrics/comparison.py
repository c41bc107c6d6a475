"""Conditions or methods compared on the scenes they have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from osmabench_ros.errors import MetricError, suggestion
from osmabench_ros.metrics.statistics import (
    Interval,
    PairedDifference,
    corrected_tests,
    paired_difference,
    relative_change,
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
