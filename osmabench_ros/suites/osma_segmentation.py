"""OSMa-Bench semantic segmentation, as published and done right."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.metrics import segmentation
from osmabench_ros.metrics.comparison import macc_over_objects
from osmabench_ros.metrics.confusion import NOTHING, ConfusionMatrix, write_confusions
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.suites.prediction import point_labels, rank_labels
from osmabench_ros.suites.suite import FigureSuite, MatchingOptions, SuiteContext

FIGURES = ('macc', 'miou', 'fmiou', 'fmiou_objects', 'accuracy')
# Fractions of ground-truth points without a valid class (the first three), and of map points
# without ground truth near them; 0 is best.
LOST = ('missing', 'unlabelled', 'outside_vocabulary', 'hallucinated')


class SegmentationOptions(MatchingOptions):
    """Options of the suite.

    Parameters
    ----------
    max_distance_m : float
        Largest distance of a match in strict mode.
    vocabulary : str
        'scene' scores the classes of the scene, 'global' all of the label set. In strict mode a
        map that is named by features or captions may choose from the whole label set with either.
    ignored_ids : tuple of int
        Classes that compat leaves out; OSMa-Bench's data has 0 for "other".
    top_k : tuple of int
        Ranks of the top-k accuracy.
    modes : tuple of str
        Modes to compute.
    """

    vocabulary: Literal['scene', 'global'] = 'scene'
    ignored_ids: tuple[int, ...] = ()
    top_k: tuple[int, ...] = (3, 5)
    modes: tuple[Literal['compat', 'strict'], ...] = ('compat', 'strict')


class OsmaSegmentationSuite(FigureSuite[SegmentationOptions]):
    """Per-class and mean metrics of the labels of a map's points.

    Metrics are macc, miou, fmiou, fmiou_objects and accuracy (over all points), and per class iou
    and class_accuracy (recall); in strict also macc_over_objects, top<k>_accuracy, and the
    fractions missing, unlabelled, outside_vocabulary and hallucinated.

    Writes ``confusion_compat.npz`` and ``confusion_strict.npz`` where the context has a folder
    for them.
    """

    name, mode = 'osma_segmentation', Mode.STRICT
    options_type = SegmentationOptions
    lower_is_better = frozenset(LOST)

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the labels of one map."""
        records: list[MetricRecord] = []
        for mode in map(Mode, self._options.modes):
            score = self._score_compat if mode is Mode.COMPAT else self._score_strict
            records += score(context) or self._list_absent(mode)
        return records

    def _list_absent(self, mode: Mode) -> list[MetricRecord]:
        top_k = (f'top{k}_accuracy' for k in self._options.top_k)
        more = ('macc_over_objects', *top_k, *LOST) if mode is Mode.STRICT else ()
        return [self._record(metric, mode=mode) for metric in (*FIGURES, *more)]

    def _score_compat(self, context: SuiteContext) -> list[MetricRecord]:
        fused = context.ground_truth.fused
        if fused is None or context.matches.predicted is None:
            return []
        vocabulary = segmentation.list_scene_vocabulary(fused.labels, self._options.ignored_ids)
        labels = point_labels(context, vocabulary)
        if labels is None:
            return []
        matrix = segmentation.compat_confusion(
            fused.labels,
            labels,
            context.matches.fused_to_map,
            ignored=self._options.ignored_ids,
            device=context.device,
        )
        _keep(context, matrix, Mode.COMPAT)
        scores = segmentation.score_segmentation(matrix, ignored=self._options.ignored_ids)
        return list(self._list_records(scores, context.ground_truth.label_set, Mode.COMPAT))

    def _score_strict(self, context: SuiteContext) -> list[MetricRecord]:
        truth, predicted = context.ground_truth, context.matches.predicted
        if predicted is None:
            return []
        is_global = self._options.vocabulary == 'global'
        seen = segmentation.list_scene_vocabulary(truth.surface.labels, ())
        offered = truth.label_set.ids.astype(np.int64)
        vocabulary = offered if is_global else seen
        labels = point_labels(context, offered)
        if labels is None:
            return []
        gate, matches = self._options.max_distance_m, context.matches
        hallucinated = ~matches.map_to_truth.within(gate)
        made_up = segmentation.count_hallucinated_points(
            predicted.points, labels, hallucinated, truth.surface.points, cell_m=gate
        )
        matrix = segmentation.strict_confusion(
            truth.surface.labels,
            labels,
            matches.surface_to_map,
            max_distance_m=gate,
            vocabulary=vocabulary,
            hallucinated=made_up,
            device=context.device,
        )
        _keep(context, matrix, Mode.STRICT)
        taken = np.append(labels, np.int32(NOTHING))[matches.surface_to_map.find_rows_within(gate)]
        scores = segmentation.score_segmentation(
            matrix, ignored=(), punish_false_classes=is_global
        )
        return [
            *self._list_records(scores, truth.label_set, Mode.STRICT),
            self._over_objects(context, taken),
            *self._score_losses(truth.surface.labels, taken, vocabulary, hallucinated),
            *self._top_k(context),
        ]

    def _list_records(
        self, scores: segmentation.SegmentationScores, label_set: LabelSet, mode: Mode
    ) -> Iterator[MetricRecord]:
        n = int(scores.support.sum())
        is_object = ~np.isin(scores.labels, [c.id for c in label_set.classes if c.structure])
        of_objects = scores.fmiou_of(is_object)
        values = (scores.macc, scores.miou, scores.fmiou, of_objects, scores.accuracy_overall)
        for metric, value in zip(FIGURES, values, strict=True):
            yield self._record(metric, value, n, mode=mode)
        for i, class_id in enumerate(scores.labels):
            name = label_set.name_of(int(class_id))
            support = int(scores.support[i])
            for metric, figures in (('iou', scores.iou), ('class_accuracy', scores.accuracy)):
                yield self._record(metric, figures[i], support, name, mode)

    def _over_objects(self, context: SuiteContext, taken: NDArray[np.int32]) -> MetricRecord:
        """Return `macc_over_objects`, mAcc with an interval over the objects of this scene."""
        surface = context.ground_truth.surface
        kept = surface.labels != UNLABELLED
        found = macc_over_objects(
            surface.labels[kept],
            surface.instances[kept],
            (taken == surface.labels)[kept],
        )
        record = self._record('macc_over_objects', found.value, found.n)
        return replace(record, low=found.low, high=found.high)

    def _score_losses(
        self,
        truth: NDArray[np.int32],
        taken: NDArray[np.int32],
        vocabulary: NDArray[np.int64],
        hallucinated: NDArray[np.bool_],
    ) -> Iterator[MetricRecord]:
        """Yield shares of true points without a valid class, and of hallucinated map points."""
        got = taken[truth != UNLABELLED]
        missing, unlabelled = got == NOTHING, got == UNLABELLED
        outside = ~np.isin(got, vocabulary) & ~missing & ~unlabelled
        for metric, lost in zip(LOST, (missing, unlabelled, outside, hallucinated), strict=True):
            n = len(lost)
            yield self._record(metric, int(lost.sum()) / n if n else None, n)

    def _top_k(self, context: SuiteContext) -> Iterator[MetricRecord]:
        truth, matches = context.ground_truth, context.matches
        if not self._options.top_k:
            return
        assert matches.predicted is not None
        ranking = rank_labels(context.named_map, truth.label_set, max(self._options.top_k))
        for k in self._options.top_k:
            metric = f'top{k}_accuracy'
            if ranking is None:
                yield self._record(metric)
                continue
            near = matches.surface_to_map.find_rows_within(self._options.max_distance_m)
            rows = np.append(matches.predicted.rows, -1)[near]
            value, n = segmentation.top_k_accuracy(ranking[rows], truth.surface.labels, k)
            yield self._record(metric, value, n)


def _keep(context: SuiteContext, matrix: ConfusionMatrix, mode: Mode) -> None:
    if context.output_directory is not None:
        path = context.output_directory / f'confusion_{mode.value}.npz'
        write_confusions({context.scene_name: matrix}, path)
