"""The points of a map and its errors in the colours of the report, for 3D viewers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.reports.outcomes import OUTCOMES, surface_outcomes
from osmabench_ros.reports.palette import (
    HALLUCINATED,
    Outcome,
    class_colors,
    colors_of_labels,
)
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.suites.prediction import predicted_labels
from osmabench_ros.suites.suite import SuiteContext

HALLUCINATED_CODE = len(OUTCOMES)
"""Label of hallucinated points in a cloud of errors; smaller ones index OUTCOMES."""

ERROR_COLORS = np.array([*(item.color for item in OUTCOMES), HALLUCINATED], np.uint8)
ERROR_TITLES = (*(item.title for item in OUTCOMES), 'in the map, but not in the scene')


def coloured_by_class(
    semantic_map: SemanticMap, label_set: LabelSet | None = None
) -> DenseMap | None:
    """Return the points of a map in the colours of their classes, None without points or labels.

    Its labels are ids of `label_set`, by default that of the map.
    """
    known = label_set or semantic_map.label_set
    if semantic_map.dense is None or known is None:
        return None
    labels = predicted_labels(semantic_map, known)
    if labels is None:
        return None
    shown = np.where(labels < 0, UNLABELLED, labels).astype(np.int32)
    colors = colors_of_labels(labels, class_colors(known))
    return replace(semantic_map.dense, labels=shown, colors=colors)


def coloured_by_error(context: SuiteContext, gate_m: float) -> DenseMap | None:
    """Return the visible surface and hallucinated map points in the colours of what they are.

    Labels index ERROR_COLORS and ERROR_TITLES; what stands for a point is within `gate_m`, metres.
    None if the map has no points; a map without labels is judged by geometry alone.
    """
    predicted = context.matches.predicted
    if predicted is None:
        return None
    surface = context.ground_truth.surface
    codes = surface_outcomes(context, gate_m)
    if codes is None:
        mapped = context.matches.surface_to_map.within(gate_m)
        found, missing = (OUTCOMES.index(item) for item in (Outcome.UNLABELLED, Outcome.MISSING))
        codes = np.where(mapped, found, missing).astype(np.uint8)
    invented = predicted.points[~context.matches.map_to_truth.within(gate_m)]
    labels = np.concatenate([codes, np.full(len(invented), HALLUCINATED_CODE)]).astype(np.int32)
    points = np.concatenate([surface.points, invented]).astype(np.float32)
    return DenseMap(points, colors=ERROR_COLORS[labels], labels=labels)
