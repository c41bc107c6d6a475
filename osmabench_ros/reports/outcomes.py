"""Outcome of every point of the ground-truth surface."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.reports.palette import PointOutcome
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.osma_segmentation import SegmentationOptions
from osmabench_ros.suites.prediction import predict_labels
from osmabench_ros.suites.suite import SuiteContext

OUTCOMES = tuple(PointOutcome)


def read_max_distance(suites: Sequence[SuiteConfig]) -> float:
    """Return the distance gate in metres that the segmentation suite of a run was scored with."""
    for suite in suites:
        if suite.name == 'osma_segmentation':
            return SegmentationOptions.model_validate(suite.options).max_distance_m
    return SegmentationOptions().max_distance_m


def compute_surface_outcomes(
    context: SuiteContext, max_distance_m: float
) -> NDArray[np.uint8] | None:
    """Return the index into OUTCOMES of every visible surface point, uint8 (N,), or None."""
    truth, predicted = context.ground_truth, context.matches.predicted
    if predicted is None:
        return None
    labels = predict_labels(context.semantic_map, truth.label_set)
    if labels is None:
        return None
    near = context.matches.surface_to_map
    found = np.append(labels[predicted.rows], UNLABELLED)[near.indices]
    codes = np.full(len(truth.surface), OUTCOMES.index(PointOutcome.WRONG), np.uint8)
    codes[found == truth.surface.labels] = OUTCOMES.index(PointOutcome.CORRECT)
    codes[found == UNLABELLED] = OUTCOMES.index(PointOutcome.UNLABELLED)
    codes[~near.within(max_distance_m)] = OUTCOMES.index(PointOutcome.MISSING)
    return codes


def shares(codes: NDArray[np.uint8]) -> dict[PointOutcome, float]:
    """Return the share of surface points of every outcome; zeros without points."""
    counts = np.bincount(codes, minlength=len(OUTCOMES))
    total = max(len(codes), 1)
    return {item: float(counts[i] / total) for i, item in enumerate(OUTCOMES)}


def compute_object_shares(codes: NDArray[np.uint8], truth: GroundTruth) -> dict[int, float]:
    """Return by instance id the share of visible surface that got its class."""
    instances, labels = truth.surface.instances, truth.surface.labels
    counted = (instances > 0) & (labels != UNLABELLED)
    ids, place = np.unique(instances[counted], return_inverse=True)
    right = codes[counted] == OUTCOMES.index(PointOutcome.CORRECT)
    found = np.bincount(place, right, len(ids)) / np.bincount(place, minlength=len(ids))
    return {int(number): float(share) for number, share in zip(ids, found, strict=True)}


def compute_surface_shares(truth: GroundTruth) -> dict[str, float]:
    """Return the share of the visible labelled surface by class name."""
    labels = truth.surface.labels[truth.surface.labels != UNLABELLED]
    ids, counts = np.unique(labels, return_counts=True)
    return {
        truth.label_set.name_of(int(class_id)): float(count / max(len(labels), 1))
        for class_id, count in zip(ids, counts, strict=True)
    }
