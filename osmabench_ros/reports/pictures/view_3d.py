"""The 3D view of the page: thinned clouds, scene graphs, the path, errors by frame."""

import base64
import zlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.images import select_evenly
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.geometry import compute_voxel_keys
from osmabench_ros.reports.palette import Rgb, assign_class_colors, format_hex_color
from osmabench_ros.reports.pictures import graph_errors
from osmabench_ros.reports.pictures.sample_frames import select_rows_in_view
from osmabench_ros.reports.pictures.topview import CUT_HEIGHT_M
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth

# Of the maps of a page together, so that the page stays below 5 MB.
MOST_POINTS = 100_000

LARGEST_CLOUD = 20_000
MOST_FRAMES = 90
_MOST_NODES = 400
_MOST_EDGES = 1500
_MARGIN_M = 1.0
_FINEST_M = 0.02
_COARSER = 1.2
_STEPS = (1 << 16) - 1
_CODES = (1 << 16) - 1

Json = dict[str, Any]


class SpaceOfScene:
    """Coordinates of 16 bits in a cube around a scene, and what all its runs share."""

    def __init__(self, truth: GroundTruth, floor_m: float, most: int) -> None:
        surface = truth.surface
        points = surface.points if len(surface) else np.array([[0, 0, 0], [1, 1, 1]])
        low = points.min(axis=0)
        high = points.max(axis=0)
        self._low = np.asarray(low, np.float64) - _MARGIN_M
        self._step_m = float((high - low).max() + 2 * _MARGIN_M) / _STEPS
        self._truth, self._most = truth, most
        self._views: dict[bytes, list[NDArray[np.int64]]] = {}
        classes, colors = truth.label_set.classes, assign_class_colors(truth.label_set)
        self._codes = np.zeros(UNLABELLED + 1, '<u2')
        self._codes[[item.id for item in classes]] = np.arange(1, len(classes) + 1)
        layers = graph_errors.draw_truth_layers(truth)
        self._rows, cloud = self._thin_cloud(replace(layers.clouds['surface'], colors=None), most)
        errors = zip(graph_errors.ERROR_TITLES, graph_errors.ERROR_COLORS.tolist(), strict=True)
        named = [('no class', colors[UNLABELLED]), *((x.name, colors[x.id]) for x in classes)]
        seen = frozenset(truth.seen_instances)
        self.json: Json = {
            'low': _round_values(self._low),
            'step': self._step_m,
            'cut': round(floor_m + CUT_HEIGHT_M, 3),
            'top': round(float(high[2]), 3),
            'floor': round(floor_m, 3),
            'classes': [[name, format_hex_color(color)] for name, color in named],
            'errors': [[title, format_hex_color(color)] for title, color in errors],
            'cloud': cloud,
            'graph': _describe_graph(layers.graphs['graph'], seen),
        }

    def describe_run(
        self,
        layers: graph_errors.Layers,
        found: StampedTrajectory | None,
        poses: Sequence[Pose],
        pictured: Sequence[int],
    ) -> Json:
        """Return the map, its errors and its graph, and what each frame saw of the errors."""
        errors = layers.clouds.get('errors')
        positions = () if found is None else found.positions
        shown = select_evenly(range(len(positions)), 4 * MOST_FRAMES)
        return {
            'cloud': self._describe_map(layers.clouds),
            'errors': None if errors is None else self._describe_errors(errors),
            'graph': _describe_graph(layers.graphs['graph']),
            'frames': self._describe_frames(poses, pictured, errors),
            'estimate': [_round_values(positions[i]) for i in shown],
        }

    def _describe_map(self, clouds: Mapping[str, DenseMap]) -> Json | None:
        dense = clouds.get('color')
        by_class = clouds.get('class')
        if dense is None or not len(dense.points):
            return None
        instances, membership = dense.instances, dense.membership
        if instances is None and membership is not None:
            instances = np.zeros(len(dense.points), np.int32)
            for row, node in enumerate(membership.node_ids):
                instances[membership.points_of(row)] = node
        labels = None if by_class is None else by_class.labels
        shown = DenseMap(dense.points, dense.colors, labels, instances)
        return self._thin_cloud(shown, self._most)[1]

    def _describe_errors(self, errors: DenseMap) -> Json:
        """Return the outcome of the points of the ground truth, then of the invented points."""
        assert errors.labels is not None
        count = len(self._truth.surface)
        rows, cloud = self._thin_cloud(DenseMap(errors.points[count:]), self._most // 4)
        codes = np.concatenate([errors.labels[self._rows], errors.labels[count:][rows]])
        return {**cloud, 'codes': _pack_array(codes.astype(np.uint8))}

    def _thin_cloud(self, dense: DenseMap, most: int) -> tuple[NDArray[np.int64], Json]:
        """Return the rows of at most so many points, and the data of these."""
        rows, edge_m = select_per_voxel(dense.points, most)
        steps = ((dense.points[rows] - self._low) / self._step_m).round().clip(0, _STEPS)
        cloud: Json = {'xyz': _pack_array(steps.T.astype('<u2')), 'gap': round(edge_m, 4)}
        if dense.colors is not None:
            cloud['rgb'] = _pack_array(dense.colors[rows].T)
        if dense.labels is not None:
            cloud['classes'] = _pack_array(self._codes[dense.labels[rows]])
        if dense.instances is not None:
            ids = dense.instances[rows].astype(np.int64)
            ids = np.where(ids > 0, (ids - 1) % _CODES + 1, 0)
            cloud['instances'] = _pack_array(ids.astype('<u2'))
        return rows, cloud

    def _describe_frames(
        self, poses: Sequence[Pose], pictured: Sequence[int], errors: DenseMap | None
    ) -> list[Json]:
        wanted = {*select_evenly(range(len(poses)), MOST_FRAMES), *pictured}
        indices = sorted(index for index in wanted if index < len(poses))
        seen = self._select_seen_rows([poses[index] for index in indices])
        frames = []
        for index, rows in zip(indices, seen, strict=True):
            frame: Json = {
                'index': index,
                'at': _round_values(poses[index].translation),
                'ahead': _round_values(poses[index].rotation[:, 2]),
            }
            if errors is not None and errors.labels is not None and len(rows):
                shares = graph_errors.compute_shares(errors.labels[rows].astype(np.uint8))
                frame['shares'] = [round(share, 4) for share in shares.values()]
            frames.append(frame)
        return frames

    def _select_seen_rows(self, poses: Sequence[Pose]) -> list[NDArray[np.int64]]:
        """Return the rows of the visible surface in view of each pose, once for equal paths."""
        key = b''.join(pose.matrix.tobytes() for pose in poses)
        if key not in self._views:
            self._views[key] = [select_rows_in_view(self._truth, pose)[0] for pose in poses]
        return self._views[key]


def _describe_graph(found: graph_errors.ColouredGraph, only: Container[int] | None = None) -> Json:
    graph, colors = found.graph, found.colors
    nodes = [
        node
        for node in graph.of_kind(NodeKind.OBJECT)
        if node.box is not None and (only is None or node.id in only)
    ][:_MOST_NODES]
    place = {node.id: i for i, node in enumerate(nodes)}
    edges = [
        [place[edge.source], place[edge.target], edge.type]
        for edge in graph.edges
        if edge.source in place and edge.target in place
    ]
    described = [_describe_node(node, colors[node.id]) for node in nodes]
    return {'nodes': described, 'edges': edges[:_MOST_EDGES]}


def _describe_node(node: SceneNode, color: Rgb) -> Json:
    assert node.box is not None
    name = node.label or next(iter(node.captions), '') or 'no name'
    place = {'low': _round_values(node.box.minimum), 'high': _round_values(node.box.maximum)}
    return {'id': node.id, 'name': name, **place, 'color': format_hex_color(color)}


def select_per_voxel(points: NDArray[np.floating], most: int) -> tuple[NDArray[np.int64], float]:
    """Return rows of at most `most` points, one per voxel, and the edge of these in metres."""
    edge_m = _FINEST_M
    while True:
        rows = np.unique(compute_voxel_keys(points, edge_m), return_index=True)[1]
        if len(rows) <= most:
            return np.asarray(rows, np.int64), edge_m
        # A surface has about as many voxels as their area goes into its own.
        edge_m *= max(_COARSER, 0.9 * float(np.sqrt(len(rows) / most)))


def _round_values(values: NDArray[np.floating]) -> list[float]:
    return [round(float(value), 3) for value in values]


def _pack_array(values: NDArray[Any]) -> str:
    """Return an array deflated, for `DecompressionStream` of browsers, as base64."""
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


# Where in trimesh's page the libraries end and its own viewer begins.
_OF_THE_VIEWER = 'var camera'


@cache
def read_three_js() -> str:
    """Return the libraries of trimesh's own viewer, three.js first, unmodified."""
    from trimesh import resources, util

    archive = util.decompress(resources.get_bytes('templates/viewer.zip'), file_type='zip')
    page = archive['viewer.html.template'].read().decode('utf-8')
    start = page.index('<script>') + len('<script>')
    return str(page[start : page.index(_OF_THE_VIEWER, start)])
