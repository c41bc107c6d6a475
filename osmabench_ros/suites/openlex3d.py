"""OpenLex3D: open-vocabulary labels and queries, as published and done right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.metrics.matching import NeighbourIndex
from osmabench_ros.metrics.openlex3d import (
    GATE_M,
    PointFeatures,
    SetRanking,
    category_shares,
    set_ranking,
    top_n_frequency,
)
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.metrics.retrieval import (
    COMPAT_ALIGNMENT_M,
    Retrieval,
    compat_average_precision,
    compat_inverse_rank,
    mean_over_thresholds,
    mean_reciprocal_rank,
    recall_at_k,
    strict_average_precision,
)
from osmabench_ros.metrics.similarity import best_prompts, cosine_similarity
from osmabench_ros.metrics.tiers import TieredLabels, read_tiers, write_tiers
from osmabench_ros.metrics.voxels import voxel_keys
from osmabench_ros.suites.options import SuiteOptions, checked_options
from osmabench_ros.suites.point_features import FeaturedPoints, featured_points
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.suites.things import mask_overlaps, seen_things
from osmabench_ros.suites.tiered_ground_truth import build_tiers
from osmabench_ros.suites.wordnet import DIRECTORY, WordNet

COMPAT_VOXEL_M = 0.05
"""Edge of the voxels the published code thins a prediction with."""

_RANKING_FIGURES = tuple(name for name in SetRanking.__dataclass_fields__ if name != 'objects')


class OpenLex3DOptions(SuiteOptions):
    """Options of the suite.

    Parameters
    ----------
    tiers : Path, optional
        A gt_categories.json; without one, tiered labels are made from WordNet.
    wordnet : Path
        Folder of the WordNet database.
    top_n : tuple of int
        How many words a point may offer.
    gate_m : float
        Largest distance of a match.
    recall_at : tuple of int
        Ranks of retrieval recall.
    """

    tiers: Path | None = None
    wordnet: Path = DIRECTORY
    top_n: tuple[int, ...] = (1, 5)
    gate_m: float = Field(GATE_M, gt=0)
    recall_at: tuple[int, ...] = (1, 5, 10)


class OpenLex3DSuite:
    """Words that a map's features are most like, against what each object may be called.

    Needs features that can be compared with text and an encoder for prompts. Tiered labels made
    by machine are written to the context's folder, marked so.
    """

    name = 'openlex3d'

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = checked_options(OpenLex3DOptions, options, self.name)

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the features of one map."""
        features = featured_points(context.semantic_map)
        if features is None or context.text_encoder is None:
            metrics = [f'top{n}_synonym' for n in self._options.top_n] + ['set_ranking', 'map']
            modes = (Mode.COMPAT.value, Mode.STRICT.value)
            return [
                MetricRecord.not_applicable(self.name, mode, metric)
                for mode in modes
                for metric in metrics
            ]
        tiers = self._tiers(context)
        prompts = tiers.prompts()
        text = context.text_encoder(features.space, prompts)
        return [
            record
            for compat in (True, False)
            for record in (
                *self._words(context, features, tiers, prompts, text, compat),
                *self._retrieval(context, features, tiers, prompts, text, compat),
            )
        ]

    def _tiers(self, context: SuiteContext) -> TieredLabels:
        if self._options.tiers is not None:
            return read_tiers(self._options.tiers)
        tiers = build_tiers(context.ground_truth.graph, WordNet(self._options.wordnet))
        if context.output_directory is not None:
            write_tiers(tiers, context.output_directory / 'gt_categories.json')
        return tiers

    def _record(
        self, compat: bool, metric: str, value: float, n: int, *, higher_is_better: bool = True
    ) -> MetricRecord:
        mode = Mode.COMPAT if compat else Mode.STRICT
        return MetricRecord(
            self.name, mode.value, metric, value=value, n=n, higher_is_better=higher_is_better
        )

    def _words(
        self,
        context: SuiteContext,
        features: FeaturedPoints,
        tiers: TieredLabels,
        prompts: list[str],
        text: NDArray[np.float32],
        compat: bool,
    ) -> Iterator[MetricRecord]:
        points = _points(context, features, compat)
        gate, vectors = self._options.gate_m, features.space.vectors
        for n in self._options.top_n:
            best = best_prompts(vectors, text, min(n, len(prompts)), device=context.device)
            frequency = top_n_frequency(points, best, tiers, prompts, gate_m=gate, compat=compat)
            for name, share in category_shares(frequency):
                metric, good = f'top{n}_{name}', name == 'synonym'
                yield self._record(compat, metric, share, len(points.rows), higher_is_better=good)
        similarity = cosine_similarity(vectors, text, device=context.device)
        ranking = set_ranking(points, similarity, tiers, prompts, gate_m=gate, compat=compat)
        for figure in _RANKING_FIGURES:
            metric = 'set_ranking' if figure == 'overall' else f'set_ranking_{figure}'
            yield self._record(compat, metric, getattr(ranking, figure), ranking.objects)

    def _retrieval(
        self,
        context: SuiteContext,
        features: FeaturedPoints,
        tiers: TieredLabels,
        prompts: list[str],
        text: NDArray[np.float32],
        compat: bool,
    ) -> Iterator[MetricRecord]:
        retrieval = self._queries(context, features, tiers, prompts, text, compat)
        if retrieval is None:
            mode = Mode.COMPAT if compat else Mode.STRICT
            yield MetricRecord.not_applicable(self.name, mode.value, 'map')
            return
        n = len(retrieval.wanted)
        precision = compat_average_precision if compat else strict_average_precision
        yield self._record(compat, 'map', mean_over_thresholds(retrieval, compat=compat), n)
        yield self._record(compat, 'ap50', precision(retrieval, 0.5), n)
        yield self._record(compat, 'ap25', precision(retrieval, 0.25), n)
        rank = compat_inverse_rank if compat else mean_reciprocal_rank
        yield self._record(compat, 'inverse_rank', rank(retrieval), n)
        if not compat:
            for k in self._options.recall_at:
                yield self._record(compat, f'recall_at_{k}', recall_at_k(retrieval, k), n)

    def _queries(
        self,
        context: SuiteContext,
        features: FeaturedPoints,
        tiers: TieredLabels,
        prompts: list[str],
        text: NDArray[np.float32],
        compat: bool,
    ) -> Retrieval | None:
        """Ask for every object by its first synonym; objects called the same belong together."""
        gate = COMPAT_ALIGNMENT_M if compat else self._options.gate_m
        overlaps = mask_overlaps(context, gate)
        if overlaps is None or not features.node_rows:
            return None
        known = np.array([int(i) in features.node_rows for i in overlaps.predicted_ids], bool)
        kept = overlaps.select(known, np.ones(len(overlaps.true_ids), bool))
        rows = [features.node_rows[int(item)] for item in kept.predicted_ids]
        column = {int(item): i for i, item in enumerate(kept.true_ids)}
        wanted: dict[str, list[int]] = {}
        for node in seen_things(context.ground_truth):
            item = tiers.objects.get(node.id)
            if item is not None and TieredLabels.is_scored(item) and node.id in column:
                wanted.setdefault(item.synonyms[0], []).append(column[node.id])
        if not rows or not wanted:
            return None
        place = {prompt: i for i, prompt in enumerate(prompts)}
        queries = text[[place[word] for word in wanted]]
        similarity = cosine_similarity(
            features.space.vectors[rows], queries, device=context.device
        )
        return Retrieval(similarity, kept.iou, kept.predicted_sizes, list(wanted.values()))


def _points(context: SuiteContext, features: FeaturedPoints, compat: bool) -> PointFeatures:
    """Return the feature that speaks for each visible surface point."""
    predicted, surface = context.matches.predicted, context.ground_truth.surface
    assert predicted is not None
    rows = features.rows[predicted.rows]
    if not compat or not len(rows):
        return PointFeatures.of(surface.instances, context.matches.surface_to_map, rows)
    centers = _voxel_centers(predicted.points)
    original = NeighbourIndex(predicted.points, context.device, 'map').query(centers).indices
    near = NeighbourIndex(centers, context.device, 'map').query(surface.points)
    return PointFeatures.of(surface.instances, near, rows[original])


def _voxel_centers(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the points of each occupied voxel."""
    _, inverse, counts = np.unique(
        voxel_keys(points, COMPAT_VOXEL_M), return_inverse=True, return_counts=True
    )
    sums = [np.bincount(inverse, weights=points[:, axis]) for axis in range(3)]
    return np.stack([total / counts for total in sums], axis=1).astype(np.float32)
