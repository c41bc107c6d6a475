"""Coverage and accuracy of a map's geometry, and of the poses that it was made from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import AlignmentError
from osmabench_ros.maps.semantic_map import transform_map
from osmabench_ros.metrics.geometry import (
    POINT_RADIUS_M,
    estimate_normals,
    find_surfel_distances,
    mean_distance,
    measure_volume,
    normal_consistency,
    precision_by_place,
    score_geometry,
    share_within,
)
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory import TrajectoryAlignment
from osmabench_ros.metrics.trajectory_records import (
    SUITE,
    TrajectoryScore,
    TrajectorySettings,
    drop_value,
    score_trajectory,
)
from osmabench_ros.semantics.labels import UNLABELLED, group_rows_by_id
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.prediction import point_labels
from osmabench_ros.suites.suite import FigureSuite, MatchingOptions, SuiteContext

# Prefix of the name of a metric: after the alignment of the poses.
AFTER = 'aligned_'


Metres = NDArray[np.floating]


def measure_distances(context: SuiteContext, *, of_points: bool) -> tuple[Metres, Metres]:
    """Return distances from map points to the truth, and from the visible surface to the map.

    They are between surfaces: a point of the truth represents a disc that closes the gaps between
    its samples, one of the map a disc of `POINT_RADIUS_M` that is along the true surface, so that
    a map need not be dense to be complete. They are between the points themselves, which grow with
    their spacing, if they are to be `of_points`, or where the truth knows no normals.
    """
    matches, surface = context.matches, context.ground_truth.surface
    assert matches.predicted is not None
    points, normals = matches.predicted.points, surface.normals
    there, back = matches.map_to_truth.distances_m, matches.surface_to_map.distances_m
    if of_points and len(matches.truth_points):
        there = np.linalg.norm(points - matches.truth_points[matches.map_to_truth.indices], axis=1)
    if not of_points and normals is not None and len(points):
        centers = points[matches.surface_to_map.indices]
        back = find_surfel_distances(surface.points, centers, normals, POINT_RADIUS_M)
    return there, back


@dataclass(frozen=True, eq=False)
class ScoredPart:
    """A class, or a room ("room ..."): rows of true surface and of the map, None if unknown."""

    name: str
    surface: NDArray[np.intp]
    predicted: NDArray[np.intp] | None


def classes_of(context: SuiteContext) -> Iterator[ScoredPart]:
    """Yield the classes of the visible surface, with the points to which the map gives them."""
    truth = context.ground_truth
    labels = truth.surface.labels
    predicted = point_labels(context, truth.label_set.ids.astype(np.int64))
    own = {} if predicted is None else rows_by_label(predicted)
    nothing = None if predicted is None else np.zeros(0, np.intp)
    for class_id, rows in rows_by_label(labels).items():
        if class_id != UNLABELLED:
            yield ScoredPart(truth.label_set.name_of(class_id), rows, own.get(class_id, nothing))


def rows_by_label(labels: NDArray[np.integer]) -> dict[int, NDArray[np.intp]]:
    """Return the ascending rows of every class id; -1 (no such class) counts as unlabelled."""
    # NumPy sorts 16 bits in linear time.
    return group_rows_by_id(labels.astype(np.uint16))


def rooms_of(context: SuiteContext) -> Iterator[ScoredPart]:
    """Yield the rooms of the true scene that have a box, with the points in it."""
    truth, cloud = context.ground_truth, context.matches.predicted
    assert cloud is not None
    for room in truth.graph.of_kind(NodeKind.ROOM):
        if room.box is not None:
            name = f'room {room.source_id or room.label or room.id}'
            inside = np.flatnonzero(room.box.contains(truth.surface.points))
            yield ScoredPart(name, inside, np.flatnonzero(room.box.contains(cloud.points)))


# Thresholds of precision, recall and F-score.
THRESHOLDS_M = (0.02, 0.05, 0.1, 0.2)

# Metrics of a whole map, in the order of their records.
OVERALL = (
    *('coverage', 'accuracy_m', 'completeness_m', 'chamfer_m'),
    *(f'{x}_{t:g}m' for t in THRESHOLDS_M for x in ('precision', 'recall', 'f_score')),
    *('hallucinated_volume_m3', 'missed_volume_m3'),
)

# Metrics of a class or a room.
OF_PARTS = (
    *('coverage', 'completeness_m', 'missed_volume_m3'),
    *('accuracy_m', 'chamfer_m', 'hallucinated_volume_m3'),
    *(f'f_score_{t:g}m' for t in THRESHOLDS_M),
)


class GeometryOptions(MatchingOptions):
    """Options of the suite.

    Parameters
    ----------
    max_distance_m : float
        Distance within which a surface counts as covered; also the edge of volume cells.
    normal_samples : int
        Surface points, drawn with the run's seed, to compare normals at; 0 for none.
    distances : {'surfaces', 'points'}
        Whether points of map and ground truth are small discs of surface or only points.
    """

    normal_samples: int = Field(100_000, ge=0)
    distances: Literal['surfaces', 'points'] = 'surfaces'


class MapGeometrySuite(FigureSuite[GeometryOptions]):
    """Completeness and accuracy of a map's points against the visible surface.

    Coverage is taken against the surface that the trajectory saw, accuracy against all surface:
    a method may complete surface that it did not see, but not invent any. So it is for every class
    (its true surface, and the points that the map gives that class) and every room (the points in
    its box).
    """

    name = 'map_geometry'
    options_type = GeometryOptions
    lower_is_better = frozenset(
        {'accuracy_m', 'completeness_m', 'chamfer_m', 'hallucinated_volume_m3', 'missed_volume_m3'}
    )

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the points of one map."""
        cloud, surface = context.matches.predicted, context.ground_truth.surface
        if cloud is None:
            with_normals = surface.normals is not None and self._options.normal_samples
            names = (*OVERALL, *(('normal_consistency',) if with_normals else ()))
            return [self._record(metric) for metric in names]
        whole = ScoredPart('', np.arange(len(surface)), np.arange(len(cloud.points)))
        parts = [*classes_of(context), *rooms_of(context)]
        _remark_on_crowding(context)
        both = measure_distances(context, of_points=self._options.distances == 'points')
        return [
            *self._score_part(context, whole, *both, OVERALL),
            *self._normals(context, parts, both[1]),
            *chain.from_iterable(
                self._score_part(context, part, *both, OF_PARTS) for part in parts
            ),
        ]

    def _normals(
        self, context: SuiteContext, parts: Sequence[ScoredPart], from_truth: Metres
    ) -> Iterator[MetricRecord]:
        surface, matches = context.ground_truth.surface, context.matches
        if surface.normals is None or not self._options.normal_samples:
            return
        assert matches.predicted is not None
        rows = np.flatnonzero(from_truth <= self._options.max_distance_m)
        if len(rows) > self._options.normal_samples:
            rng = np.random.default_rng(context.seed)
            rows = np.sort(rng.choice(rows, self._options.normal_samples, replace=False))
        found = estimate_normals(matches.predicted.points, matches.surface_to_map.indices[rows])
        true = surface.normals[rows].astype(np.float64)
        yield self._record('normal_consistency', *normal_consistency(true, found))
        for part in parts:
            own = np.isin(rows, part.surface)
            figures = normal_consistency(true[own], found[own])
            yield self._record('normal_consistency', *figures, part.name)

    def _score_part(
        self,
        context: SuiteContext,
        part: ScoredPart,
        from_map: Metres,
        from_truth: Metres,
        metrics: Sequence[str],
    ) -> list[MetricRecord]:
        """Return metrics of a part; those that need map points of it may not be applicable."""
        cloud, surface = context.matches.predicted, context.ground_truth.surface
        assert cloud is not None
        gate, back = self._options.max_distance_m, from_truth[part.surface]
        missed = surface.points[part.surface][~(back <= gate)]
        values: dict[str, tuple[float | None, int]] = {
            'coverage': (share_within(back, gate), len(back)),
            'completeness_m': (mean_distance(back), len(back)),
            'missed_volume_m3': (measure_volume(missed, gate), len(missed)),
        }
        if part.predicted is not None:
            there = from_map[part.predicted]
            made_up = cloud.points[part.predicted][~(there <= gate)]
            scores = score_geometry(there, back, THRESHOLDS_M)
            both = len(there) + len(back)
            values['accuracy_m'] = scores.accuracy_m, len(there)
            values['chamfer_m'] = scores.chamfer_m, both
            values['hallucinated_volume_m3'] = measure_volume(made_up, gate), len(made_up)
            for i, threshold in enumerate(THRESHOLDS_M):
                values[f'precision_{threshold:g}m'] = scores.precision[i], len(there)
                values[f'recall_{threshold:g}m'] = scores.recall[i], len(back)
                values[f'f_score_{threshold:g}m'] = scores.f_score[i], both
        return [
            self._record(metric, *values.get(metric, (None, 0)), part.name) for metric in metrics
        ]


# Thresholds of precision, and how much larger it may be by points than by places.
CROWDED_M, MOST_CROWDED = (0.02, 0.05), 0.03


def _remark_on_crowding(context: SuiteContext) -> None:
    """Add a remark where a map has most of its points where it is right, such as copies."""
    there, cloud = context.matches.map_to_truth.distances_m, context.matches.predicted
    assert cloud is not None
    for limit_m in CROWDED_M:
        rates = share_within(there, limit_m), precision_by_place(cloud.points, there, limit_m)
        if rates[0] - rates[1] > MOST_CROWDED:
            context.remark(
                MapGeometrySuite.name,
                f'{rates[0]:.1%} of the points are within {limit_m:g} m of the surface, but of '
                f'equally weighted places {rates[1]:.1%}: points crowd where the map is right',
            )


class MapTrajectoryOptions(Strict):
    """Options of the suite.

    Parameters
    ----------
    alignment : {'se3', 'sim3', 'origin'}
        How the poses are aligned for the metrics ``aligned_...``.
    """

    alignment: Literal['se3', 'sim3', 'origin'] = 'se3'


class MapTrajectorySuite(FigureSuite[MapTrajectoryOptions]):
    """Absolute and relative errors of the poses of a method that localises itself.

    The conventions are evo's, as under `osmabench score trajectory`. Metrics ``aligned_...`` are
    computed after the alignment of the poses, which moves the map too: they include the overall
    metrics of `map_geometry`. A map without poses, or a run without known true poses, has
    none. Where the path is too straight for an alignment, dependent metrics are not applicable.
    Errors are over the frames with a pose: `frames_with_pose` is their share of all frames, as a
    method may lose track and go on.
    """

    name = 'map_trajectory'
    options_type = MapTrajectoryOptions

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the poses of one map."""
        estimate, reference = context.semantic_map.trajectory, context.true_trajectory
        if estimate is None or reference is None:
            return [*self._without_alignment(''), *self._without_alignment()]
        settings = TrajectorySettings(TrajectoryAlignment(self._options.alignment))
        try:
            score = score_trajectory(reference, estimate, settings)
            aligned: Iterable[MetricRecord] = self._geometry(context, score)
        except AlignmentError as error:
            as_is = replace(settings, alignment=TrajectoryAlignment.NONE)
            score = score_trajectory(reference, estimate, as_is)
            context.remark(self.name, str(error))
            aligned = self._without_alignment()
        context.remark(self.name, *score.remarks)
        return [
            self._record('frames_with_pose', score.matched, len(reference)),
            *(self._name_record(item, aligned=item.suite != SUITE) for item in score.records),
            *aligned,
        ]

    def _without_alignment(self, prefix: str = AFTER) -> list[MetricRecord]:
        """Return the main metrics as not applicable; by default those after the alignment."""
        return [
            MetricRecord(self.name, '', prefix + name, higher_is_better=False)
            for name in ('ape_translation_rmse_m', 'rpe_translation_rmse_m')
        ]

    def _name_record(self, record: MetricRecord, *, aligned: bool) -> MetricRecord:
        metric = f'{AFTER}{record.metric}' if aligned else record.metric
        return replace(record, suite=self.name, metric=metric)

    def _geometry(self, context: SuiteContext, score: TrajectoryScore) -> Iterator[MetricRecord]:
        """Yield the overall metrics of geometry after the alignment."""
        frame_id = context.semantic_map.header.frame_id
        moved = transform_map(context.semantic_map, score.similarity, frame_id)
        suite = MapGeometrySuite(options={'normal_samples': 0})
        for record in suite.evaluate(replace(context, semantic_map=moved)):
            if not record.class_name:
                named = self._name_record(record, aligned=True)
                yield drop_value(named) if score.turn_is_open else named
