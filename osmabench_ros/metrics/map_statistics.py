"""Statistics of a map without a reference: content, and repeated objects."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.geometry import find_occupied_voxels
from osmabench_ros.metrics.matching import compute_box_iou_of_nodes
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.semantics.labels import UNLABELLED, normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind

SUITE = 'map_statistics'
# Boxes that share so much of their union may be one object.
OVERLAP_IOU = 0.25

# Boxes that are compared pairwise; a map with more is not.
MAX_BOXES = 5000

_CELL_M = 0.1


def map_statistics(semantic_map: SemanticMap) -> list[MetricRecord]:
    """Return counts, coverage by labels, extent and repetitions of a map.

    None of these values is a score: a larger map is not a better one. `higher_is_better` is true
    for shares that a complete map has at 1, and false for repetitions.
    """
    return [*_graph(semantic_map), *_points(semantic_map), *_repetitions(semantic_map)]


def _graph(semantic_map: SemanticMap) -> Iterator[MetricRecord]:
    graph = semantic_map.graph
    yield _record('nodes', len(graph.nodes))
    for kind, count in sorted(Counter(node.kind.value for node in graph.nodes).items()):
        yield _record('nodes', count, f'kind {kind}')
    names = Counter(
        normalised_name(node.label) or 'unlabelled' for node in graph.of_kind(NodeKind.OBJECT)
    )
    for name, count in sorted(names.items()):
        yield _record('objects', count, name)
    yield _record('edges', len(graph.edges))
    for kind, count in sorted(Counter(edge.type for edge in graph.edges).items()):
        yield _record('edges', count, kind)
    nodes = graph.nodes
    ends = {end for edge in graph.edges for end in (edge.source, edge.target)}
    for metric, given in (
        ('labelled_nodes', [bool(node.label) for node in nodes]),
        ('boxed_nodes', [node.box is not None for node in nodes]),
        ('connected_nodes', [node.id in ends for node in nodes]),
    ):
        yield _share(metric, np.array(given, bool))


def _points(semantic_map: SemanticMap) -> Iterator[MetricRecord]:
    dense = semantic_map.dense
    if dense is None:
        yield MetricRecord.not_applicable(SUITE, '', 'points')
        return
    yield _record('points', len(dense.points))
    for metric, values, none in (
        ('labelled_points', dense.labels, UNLABELLED),
        ('points_in_nodes', dense.instances, 0),
    ):
        if values is None:
            yield MetricRecord.not_applicable(SUITE, '', metric)
        else:
            yield _share(metric, values != none)
    if len(dense.points):
        extent = np.ptp(dense.points, axis=0)
        for axis, length in zip('xyz', extent.tolist(), strict=True):
            yield _record(f'extent_{axis}_m', length)
        cells = len(find_occupied_voxels(dense.points, _CELL_M))
        yield _record('occupied_volume_m3', cells * _CELL_M**3)


def _repetitions(semantic_map: SemanticMap) -> Iterator[MetricRecord]:
    """Yield objects with a box that overlaps another one's: of the same name, and of any."""
    boxed = [node for node in semantic_map.graph.of_kind(NodeKind.OBJECT) if node.box is not None]
    if not boxed or len(boxed) > MAX_BOXES:
        for metric in ('overlapping_objects', 'duplicate_objects'):
            yield MetricRecord.not_applicable(SUITE, '', metric, higher_is_better=False)
        return
    overlapping = compute_box_iou_of_nodes(boxed, boxed) >= OVERLAP_IOU
    np.fill_diagonal(overlapping, False)
    names = np.array([normalised_name(node.label) for node in boxed])
    same = (names[:, None] == names) & (names != '')
    for metric, pairs in (
        ('overlapping_objects', overlapping),
        ('duplicate_objects', overlapping & same),
    ):
        yield _record(metric, int(pairs.any(axis=1).sum()), n=len(boxed), better=False)


def _record(
    metric: str, value: float, class_name: str = '', n: int = 0, *, better: bool = True
) -> MetricRecord:
    return MetricRecord(SUITE, '', metric, class_name, value, n=n, higher_is_better=better)


def _share(metric: str, which: NDArray[np.bool_]) -> MetricRecord:
    if not len(which):
        return MetricRecord.not_applicable(SUITE, '', metric)
    return _record(metric, float(which.mean()), n=len(which))
