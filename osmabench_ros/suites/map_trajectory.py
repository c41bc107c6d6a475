"""The poses that a map says it was made from, against the true ones; its surface after both."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import AlignmentError, OsmabenchWarning
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import transformed_map
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory import TrajectoryAlignment
from osmabench_ros.metrics.trajectory_records import (
    SUITE,
    TrajectoryScore,
    TrajectorySettings,
    score_trajectory,
    without_value,
)
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.suites.suite import SuiteContext

AFTER = 'aligned_'
"""Before the name of a figure: after the alignment of the poses."""


class MapTrajectoryOptions(Strict):
    """Options of the suite.

    Parameters
    ----------
    alignment : {'se3', 'sim3', 'origin'}
        How the poses are aligned for the figures ``aligned_...``.
    """

    alignment: Literal['se3', 'sim3', 'origin'] = 'se3'


class MapTrajectorySuite:
    """Absolute and relative errors of the poses of a method that localises itself.

    The conventions are evo's, as under `osmabench score trajectory`. Figures ``aligned_...`` are
    those after the alignment of the poses, which moves the map too: they include the overall
    figures of `map_geometry`. A map without poses, or a run whose true poses are unknown, has
    none. Where the path is too straight for an alignment, what depends on it is not applicable.
    Errors are over the frames with a pose: `frames_with_pose` is their share of all frames.
    """

    name = 'map_trajectory'

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = validated(MapTrajectoryOptions, options, f'suite "{self.name}"')
        self._settings = TrajectorySettings(TrajectoryAlignment(self._options.alignment))

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the poses of one map."""
        estimate, reference = context.semantic_map.trajectory, context.true_trajectory
        if estimate is None or reference is None:
            return [*self._without_alignment(''), *self._without_alignment()]
        try:
            score = score_trajectory(reference, estimate, self._settings)
        except AlignmentError as error:
            warnings.warn(f'suite "{self.name}": {error}', OsmabenchWarning, stacklevel=2)
            as_is = replace(self._settings, alignment=TrajectoryAlignment.NONE)
            score = score_trajectory(reference, estimate, as_is)
            found = [self._named(record, aligned=False) for record in score.records]
            return [self._share(score, reference), *found, *self._without_alignment()]
        for remark in score.remarks:
            warnings.warn(f'suite "{self.name}": {remark}', OsmabenchWarning, stacklevel=2)
        of_poses = (self._named(record, aligned=record.suite != SUITE) for record in score.records)
        share = self._share(score, reference)
        return [share, *of_poses, *self._geometry(context, score)]

    def _share(self, score: TrajectoryScore, reference: StampedTrajectory) -> MetricRecord:
        """Return the share of the frames that have a pose; a method may lose track and go on."""
        frames = len(reference)
        share = len(score.estimate) / frames
        return MetricRecord(self.name, '', 'frames_with_pose', value=share, n=frames)

    def _without_alignment(self, prefix: str = AFTER) -> list[MetricRecord]:
        """Return the main figures as not applicable; by default those after the alignment."""
        return [
            MetricRecord.not_applicable(self.name, '', prefix + name, higher_is_better=False)
            for name in ('ape_translation_rmse_m', 'rpe_translation_rmse_m')
        ]

    def _named(self, record: MetricRecord, *, aligned: bool) -> MetricRecord:
        metric = f'{AFTER}{record.metric}' if aligned else record.metric
        return replace(record, suite=self.name, metric=metric)

    def _geometry(self, context: SuiteContext, score: TrajectoryScore) -> Iterator[MetricRecord]:
        """Yield the overall figures of geometry after the alignment."""
        frame_id = context.semantic_map.header.frame_id
        moved = transformed_map(context.semantic_map, score.similarity, frame_id)
        suite = MapGeometrySuite(options={'normal_samples': 0})
        for record in suite.evaluate(replace(context, semantic_map=moved)):
            if not record.class_name:
                named = self._named(record, aligned=True)
                yield without_value(named) if score.turn_is_open else named
