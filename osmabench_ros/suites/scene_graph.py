"""A map's scene graph against the true one."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field

from osmabench_ros.metrics.graph import (
    SameLabel,
    Share,
    attribute_accuracy,
    exactly,
    label_accuracy,
    score_relations,
)
from osmabench_ros.metrics.matching import NodeMatches, compute_box_iou_of_nodes, find_box
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.suite import FigureSuite, MatchingOptions, SuiteContext
from osmabench_ros.suites.things import (
    MatchedGraph,
    is_synonym,
    match_graph,
    select_object_nodes,
    select_seen_objects,
)

NODE_FIGURES = ('node_precision', 'node_recall', 'node_f1', 'box_iou', 'matched_box_iou')
# Relations with an unmatched node, and those with unknown names.
LOST_RELATIONS = ('unmatched_relations', 'unknown_relations')

RELATION_FIGURES = (
    *('relation_f1', 'relation_precision', 'relation_recall', 'relation_ap'),
    *('triplet_recall', 'relation_mean_recall'),
)
RELATION_FIGURES_AT_K = (
    *('relation_recall_at_{}', 'relation_recall_at_{}_normalised'),
    'relation_mean_recall_at_{}',
)


class SceneGraphOptions(MatchingOptions):
    """Options of the suite.

    Parameters
    ----------
    match : str
        How nodes are paired: by 'masks', by 'boxes', or 'auto', which takes masks if there are.
    min_iou : float
        Least overlap of a pair.
    max_distance_m : float
        Largest distance from surface to map at which a mask covers it.
    similarity : float
        Least similarity of labels that count as the same by embedding.
    relations : tuple of str
        Kinds that are scored; 'near' depends most on one's taste and is left out.
    recall_at : tuple of int
        Ranks of relation recall@k.
    attributes : tuple of str
        Attributes that are scored.
    """

    match: Literal['auto', 'masks', 'boxes'] = 'auto'
    min_iou: float = Field(0.25, gt=0, le=1)
    similarity: float = Field(0.72, gt=0, le=1)
    relations: tuple[str, ...] = ('on', 'in', 'under', 'next to', 'attached to')
    recall_at: tuple[int, ...] = (20, 50, 100)
    attributes: tuple[str, ...] = ('color', 'material')


class SceneGraphSuite(FigureSuite[SceneGraphOptions]):
    """Nodes, labels, boxes, attributes and relations of the objects that the trajectory saw.

    Nodes of parts of the building, or of unseen objects, are matched and then left out
    on both sides; one labelled as an object on a part of the building is wrong. `box_iou` is
    over all seen objects, and 0 for one that is not matched. Nodes that a method knows by features
    or captions only take the names of the data set that these are most like. Boxes and relations
    that differ between an object and its visible part are not scored.
    """

    name, mode = 'scene_graph', Mode.STRICT
    options_type = SceneGraphOptions
    lower_is_better = frozenset(LOST_RELATIONS)

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the graph of one map; a graph without relations has found none of them."""
        options = self._options
        found = match_graph(context, options.match, options.min_iou, options.max_distance_m)
        if found is None:
            return list(self._list_absent(context))
        return [
            *self._score_nodes(context, found.things),
            *self._score_labels(context, found.things),
            *self._score_attributes(context, found.things),
            *self._score_relations(context, found),
        ]

    def _list_absent(self, context: SuiteContext) -> Iterator[MetricRecord]:
        labels = [f'label_accuracy{suffix}' for suffix in self._score_meanings(context)]
        for metric in (*NODE_FIGURES, *labels, *self._relation_figures()):
            yield self._record(metric)
        for key in self._options.attributes:
            yield self._record('attribute_accuracy', class_name=key)

    def _relation_figures(self) -> tuple[str, ...]:
        at_k = (
            metric.format(k) for k in self._options.recall_at for metric in RELATION_FIGURES_AT_K
        )
        return (*RELATION_FIGURES, *at_k, *LOST_RELATIONS)

    def _share(self, metric: str, share: Share, class_name: str = '') -> MetricRecord:
        return self._record(metric, share.value, share.n, class_name)

    def _score_nodes(self, context: SuiteContext, matches: NodeMatches) -> Iterator[MetricRecord]:
        precision, recall = matches.precision, matches.recall
        total = matches.predicted + matches.true
        f1 = 2 * len(matches.pairs) / total if total else None
        yield self._record('node_precision', precision, matches.predicted)
        yield self._record('node_recall', recall, matches.true)
        yield self._record('node_f1', f1, total)
        truth = context.ground_truth
        graphs = context.published_graph.graph, truth.evaluated_graph
        settled = [(p, t) for p, t in matches.pairs if t not in truth.uncertain_boxes]
        pairs = [(graphs[0].by_id[p], graphs[1].by_id[t]) for p, t in settled]
        boxed = [(p, t) for p, t in pairs if find_box(p) is not None and find_box(t) is not None]
        iou = [float(compute_box_iou_of_nodes([p], [t])[0, 0]) for p, t in boxed]
        yield self._record('matched_box_iou', float(np.mean(iou)) if iou else None, len(iou))
        boxes = sum(
            node.id not in truth.uncertain_boxes and find_box(graphs[1].by_id[node.id]) is not None
            for node in select_seen_objects(truth)
        )
        yield self._record('box_iou', sum(iou) / boxes if boxes else None, boxes)

    def _score_labels(self, context: SuiteContext, matches: NodeMatches) -> Iterator[MetricRecord]:
        graphs = context.published_graph.graph, context.ground_truth.graph
        is_named = any(node.label for node in graphs[0].of_kind(NodeKind.OBJECT))
        for suffix, same in self._score_meanings(context).items():
            share = label_accuracy(matches, *graphs, same) if is_named else Share(0, 0)
            yield self._share(f'label_accuracy{suffix}', share)

    def _score_meanings(self, context: SuiteContext) -> dict[str, SameLabel]:
        meanings: dict[str, SameLabel] = {'': exactly, '_synonym': is_synonym}
        similarity, threshold = context.similarity, self._options.similarity
        if similarity is not None:
            meanings['_embedding'] = lambda a, b: is_synonym(a, b) or similarity(a, b) >= threshold
        return meanings

    def _score_attributes(
        self, context: SuiteContext, matches: NodeMatches
    ) -> Iterator[MetricRecord]:
        graphs = context.published_graph.graph, context.ground_truth.graph
        shares = attribute_accuracy(matches, *graphs, self._options.attributes)
        for key in self._options.attributes:
            yield self._share('attribute_accuracy', shares.get(key, Share(0, 0)), key)

    def _score_relations(
        self, context: SuiteContext, found: MatchedGraph
    ) -> Iterator[MetricRecord]:
        predicted, options = context.published_graph.graph, self._options
        objects = {node.id for node in select_object_nodes(context)}
        left_out = found.excused | {node.id for node in predicted.nodes} - objects
        edges = [e for e in predicted.edges if not {e.source, e.target} & left_out]
        predicted = replace(predicted, edges=tuple(edges))
        score = partial(
            score_relations,
            found.everything,
            predicted,
            context.ground_truth.graph,
            considered=[node.id for node in select_seen_objects(context.ground_truth)],
            doubtful=context.ground_truth.uncertain_edges,
        )
        scores = score(same=is_synonym, kinds=options.relations, ks=options.recall_at)
        both = scores.precision.n + scores.recall.n
        yield self._record('relation_f1', scores.f1, both)
        yield self._share('relation_precision', scores.precision)
        yield self._share('relation_recall', scores.recall)
        yield self._record('relation_ap', scores.average_precision, scores.recall.n)
        yield self._share('triplet_recall', scores.triplet_recall)
        yield self._share('relation_mean_recall', scores.mean_recall)
        of_k = scores.recall_at, scores.normalised_recall_at, scores.mean_recall_at
        for metric, shares in zip(RELATION_FIGURES_AT_K, of_k, strict=True):
            for k, share in shares.items():
                yield self._share(metric.format(k), share)
        counts = scores.unmatched, scores.unknown
        for metric, count in zip(LOST_RELATIONS, counts, strict=True):
            yield self._record(metric, count, len(predicted.edges))
        for kind in options.relations:
            narrowed = score(kinds=(kind,), ks=())
            yield self._share('relation_precision', narrowed.precision, kind)
            yield self._share('relation_recall', narrowed.recall, kind)
