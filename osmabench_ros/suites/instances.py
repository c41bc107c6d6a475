"""Objects of a map as instances: average precision, panoptic quality, splits, merges, counts."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from osmabench_ros.metrics import instances
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.suite import FigureSuite, MatchingOptions, SuiteContext
from osmabench_ros.suites.things import Masks, mask_overlaps, masks_of_things, select_seen_objects

LOWER_IS_BETTER = frozenset(
    {'over_segmentation', 'under_segmentation', 'most_pieces', 'count_error', 'background_masks'}
)
PROTOCOLS = (instances.COCO, instances.SCANNET)
FIGURES_OF_CLASSES = (
    *(f'{metric}_{protocol.name}' for protocol in PROTOCOLS for metric in ('ap25', 'ap50', 'map')),
    *('pq', 'rq', 'sq'),
)
FIGURES_OF_MASKS = (
    *(f'class_agnostic_ap50_{protocol.name}' for protocol in PROTOCOLS),
    *('class_agnostic_pq', 'masks_with_confidence'),
    *('over_segmentation', 'under_segmentation', 'background_masks'),
)


# Surface points that a piece of an instance has at least.
MIN_PIECE_POINTS = 5


class InstancesSuite(FigureSuite[MatchingOptions]):
    """Masks of a map against the objects that the trajectory saw.

    Masks are compared on the visible surface. Parts of the building are not instances, and masks
    that lie mostly on them are left out and counted.
    """

    name, mode = 'instances', Mode.STRICT
    options_type = MatchingOptions
    lower_is_better = LOWER_IS_BETTER

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the masks and the number of objects of one map."""
        overlaps = mask_overlaps(context, self._options.max_distance_m)
        if overlaps is None:
            missing = (*FIGURES_OF_CLASSES, *FIGURES_OF_MASKS)
            return [
                *(self._record(metric, None) for metric in missing),
                *self._compare_counts(context),
            ]
        masks = masks_of_things(context, overlaps, self._options.max_distance_m)
        if masks.named:
            of_classes = [*self._score_precision(context, masks), *self._score_panoptic(masks)]
        else:
            of_classes = [self._record(metric, None) for metric in FIGURES_OF_CLASSES]
        return [
            *of_classes,
            *self._score_agnostic(masks),
            *self._count_pieces(context, masks),
            *self._compare_counts(context, masks.left_out),
        ]

    def _score_precision(self, context: SuiteContext, masks: Masks) -> Iterator[MetricRecord]:
        n = len(masks.true_classes)
        arguments = masks.overlaps, masks.classes, masks.confidence, masks.true_classes
        for protocol in PROTOCOLS:
            for metric, threshold in (('ap25', 0.25), ('ap50', 0.5)):
                per_class = instances.class_average_precision(*arguments, threshold, protocol)
                metric = f'{metric}_{protocol.name}'
                yield self._record(metric, _mean(per_class), n)
                for class_id, value in per_class.items():
                    support = int((masks.true_classes == class_id).sum())
                    name = context.ground_truth.label_set.name_of(class_id)
                    yield self._record(metric, value, support, name)
            mean = instances.mean_average_precision(*arguments, protocol)
            yield self._record(f'map_{protocol.name}', mean, n)

    def _score_agnostic(self, masks: Masks) -> Iterator[MetricRecord]:
        n = len(masks.true_classes)
        for protocol in PROTOCOLS:
            agnostic = protocol.precision(masks.overlaps.iou, masks.confidence, 0.5)
            yield self._record(f'class_agnostic_ap50_{protocol.name}', agnostic, n)
        rated = masks.rated
        yield self._record(
            'masks_with_confidence', rated.mean() if len(rated) else None, len(rated)
        )
        yield self._record(
            'class_agnostic_pq', instances.panoptic_quality(masks.overlaps.iou).quality, n
        )

    def _score_panoptic(self, masks: Masks) -> Iterator[MetricRecord]:
        per_class = {}
        for class_id in np.union1d(masks.true_classes, masks.classes[masks.classes >= 0]):
            own, true = masks.classes == class_id, masks.true_classes == class_id
            per_class[int(class_id)] = instances.panoptic_quality(
                masks.overlaps.select(own, true).iou
            )
        n = len(masks.true_classes)
        yield self._record('pq', _mean({k: v.quality for k, v in per_class.items()}), n)
        yield self._record('rq', _mean({k: v.recognition for k, v in per_class.items()}), n)
        found = {k: v.segmentation for k, v in per_class.items() if v.true_positives}
        yield self._record('sq', _mean(found), n)

    def _count_pieces(self, context: SuiteContext, masks: Masks) -> Iterator[MetricRecord]:
        pieces = instances.count_pieces_of_instances(masks.overlaps, min_points=MIN_PIECE_POINTS)
        merged = instances.count_instances_of_pieces(masks.overlaps, min_points=MIN_PIECE_POINTS)
        yield self._record('over_segmentation', instances.mean_excess(pieces), len(pieces))
        yield self._record('under_segmentation', instances.mean_excess(merged), len(merged))
        background = len(masks.left_out)
        yield self._record('background_masks', background, background + len(merged))
        for class_id in np.unique(masks.true_classes):
            own = pieces[masks.true_classes == class_id]
            name = context.ground_truth.label_set.name_of(int(class_id))
            yield self._record('over_segmentation', instances.mean_excess(own), len(own), name)
            yield self._record('most_pieces', float(own.max()), len(own), name)

    def _compare_counts(
        self, context: SuiteContext, left_out: frozenset[int] = frozenset()
    ) -> Iterator[MetricRecord]:
        """Yield the error of the number of objects of each class, without excluded objects."""
        nodes = [node for node in context.named_map.graph.of_kind(NodeKind.OBJECT) if node.label]
        if not nodes:
            yield self._record('count_error', None)
            return
        true = Counter(node.label for node in select_seen_objects(context.ground_truth))
        found = Counter(normalised_name(node.label) for node in nodes if node.id not in left_out)
        errors = {
            name: float(abs(found[normalised_name(name)] - count))
            for name, count in sorted(true.items())
        }
        yield self._record('count_error', _mean(errors), sum(true.values()))
        for name, error in errors.items():
            yield self._record('count_error', error, true[name], name)


def _mean(values: Mapping[Any, float]) -> float | None:
    return float(np.mean(list(values.values()))) if values else None
