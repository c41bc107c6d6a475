"""The 3D view of the page: thinned clouds, scene graphs, the path, errors by frame."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Container, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.geometry import voxel_keys
from osmabench_ros.reports.outcomes import OUTCOMES, shares
from osmabench_ros.reports.palette import Rgb, assign_class_colors, format_hex_color
from osmabench_ros.reports.pictures.graph_errors import (
    ERROR_COLORS,
    ERROR_TITLES,
    ColouredGraph,
    Layers,
    draw_truth_layers,
)
from osmabench_ros.reports.pictures.sample_frames import select_rows_in_view, spread
from osmabench_ros.reports.pictures.topview import CUT_HEIGHT_M
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth

MOST_POINTS = 100_000
"""Of the maps of a page together, so that the page stays below 5 MB."""

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
        points = truth.surface.points
        low, high = (
            (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(3), np.ones(3))
        )
        self._low = np.asarray(low, np.float64) - _MARGIN_M
        self._step_m = float((high - low).max() + 2 * _MARGIN_M) / _STEPS
        self._truth, self._most = truth, most
        self._views: dict[bytes, tuple[NDArray[np.int64], ...]] = {}
        layers = draw_truth_layers(truth)
        surface = truth.surface
        self._rows, edge_m = select_per_voxel(points, most)
        classes = truth.label_set.classes
        self._class_codes = {item.id: i for i, item in enumerate(classes, start=1)}
        colors = assign_class_colors(truth.label_set)
        self.json: Json = {
            'low': _round_values(self._low),
            'step': self._step_m,
            'cut': round(floor_m + CUT_HEIGHT_M, 3),
            'top': round(float(high[2]), 3),
            'floor': round(floor_m, 3),
            'classes': [
                ['no class', format_hex_color(colors[UNLABELLED])],
                *([item.name, format_hex_color(colors[item.id])] for item in classes),
            ],
            'errors': [
                [title, format_hex_color(color)]
                for title, color in zip(ERROR_TITLES, ERROR_COLORS.tolist(), strict=True)
            ],
            'cloud': self._describe_cloud(
                points[self._rows],
                edge_m,
                labels=surface.labels[self._rows],
                instances=surface.instances[self._rows],
            ),
            'graph': self._describe_graph(layers.graphs['graph'], frozenset(truth.seen_instances)),
        }

    def describe_run(
        self,
        layers: Layers,
        found: StampedTrajectory | None,
        poses: Sequence[Pose],
        pictured: Sequence[int],
    ) -> Json:
        """Return the map, its errors and its graph, and what each frame saw of the errors."""
        errors = layers.clouds.get('errors')
        return {
            'cloud': self._map(layers.clouds),
            'errors': None if errors is None else self._describe_errors(errors),
            'graph': self._describe_graph(layers.graphs['graph']),
            'frames': self._describe_frames(poses, pictured, errors),
            'estimate': []
            if found is None
            else [
                _round_values(found.positions[i])
                for i in spread(range(len(found.positions)), 4 * MOST_FRAMES)
            ],
        }

    def _map(self, clouds: Mapping[str, DenseMap]) -> Json | None:
        dense, by_class = clouds.get('color'), clouds.get('class')
        if dense is None or not len(dense.points):
            return None
        rows, edge_m = select_per_voxel(dense.points, self._most)
        labels = None if by_class is None else by_class.labels
        instances = _read_instances(dense)
        return self._describe_cloud(
            dense.points[rows],
            edge_m,
            colors=None if dense.colors is None else dense.colors[rows],
            labels=None if labels is None else labels[rows],
            instances=None if instances is None else instances[rows],
        )

    def _describe_errors(self, errors: DenseMap) -> Json:
        """Return the outcome of the points of the ground truth, then of the invented points."""
        assert errors.labels is not None
        count = len(self._truth.surface)
        invented = errors.points[count:]
        rows, edge_m = select_per_voxel(invented, self._most // 4)
        codes = np.concatenate([errors.labels[self._rows], errors.labels[count:][rows]])
        return {
            **self._describe_cloud(invented[rows], edge_m),
            'codes': _pack_array(codes.astype(np.uint8)),
        }

    def _describe_cloud(
        self,
        points: NDArray[np.floating],
        edge_m: float,
        *,
        colors: NDArray[np.uint8] | None = None,
        labels: NDArray[np.integer] | None = None,
        instances: NDArray[np.integer] | None = None,
    ) -> Json:
        steps = ((points - self._low) / self._step_m).round().clip(0, _STEPS)
        cloud: Json = {'xyz': _pack_array(steps.T.astype('<u2')), 'gap': round(edge_m, 4)}
        if colors is not None:
            cloud['rgb'] = _pack_array(colors.T)
        if labels is not None:
            table = np.zeros(UNLABELLED + 1, '<u2')
            for class_id, code in self._class_codes.items():
                table[class_id] = code
            cloud['classes'] = _pack_array(table[labels])
        if instances is not None:
            ids = np.where(instances > 0, (instances - 1) % _CODES + 1, 0)
            cloud['instances'] = _pack_array(ids.astype('<u2'))
        return cloud

    def _describe_graph(self, coloured: ColouredGraph, only: Container[int] | None = None) -> Json:
        graph, colors = coloured.graph, coloured.colors
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
        return {
            'nodes': [_describe_node(node, colors[node.id]) for node in nodes],
            'edges': edges[:_MOST_EDGES],
        }

    def _describe_frames(
        self, poses: Sequence[Pose], pictured: Sequence[int], errors: DenseMap | None
    ) -> list[Json]:
        wanted = {*spread(range(len(poses)), MOST_FRAMES), *pictured}
        indices = sorted(index for index in wanted if index < len(poses))
        seen = self._select_seen_rows([poses[index] for index in indices])
        frames = []
        for index, rows in zip(indices, seen, strict=True):
            pose = poses[index]
            frame: Json = {
                'index': index,
                'at': _round_values(pose.translation),
                'ahead': _round_values(pose.rotation[:, 2]),
            }
            if errors is not None and errors.labels is not None and len(rows):
                of_frame = shares(errors.labels[rows].astype(np.uint8))
                frame['shares'] = [round(of_frame[item], 4) for item in OUTCOMES]
            frames.append(frame)
        return frames

    def _select_seen_rows(self, poses: Sequence[Pose]) -> tuple[NDArray[np.int64], ...]:
        """Return the rows of the visible surface in view of each pose, once for equal paths."""
        key = b''.join(pose.matrix.tobytes() for pose in poses)
        if key not in self._views:
            self._views[key] = tuple(select_rows_in_view(self._truth, pose)[0] for pose in poses)
        return self._views[key]


def select_per_voxel(points: NDArray[np.floating], most: int) -> tuple[NDArray[np.int64], float]:
    """Return rows of at most `most` points, one per voxel, and the edge of these in metres."""
    edge_m = _FINEST_M
    rows = np.unique(voxel_keys(points, edge_m), return_index=True)[1]
    while len(rows) > most:
        # A surface has about as many voxels as their area goes into its own.
        edge_m *= max(_COARSER, 0.9 * float(np.sqrt(len(rows) / most)))
        rows = np.unique(voxel_keys(points, edge_m), return_index=True)[1]
    return np.asarray(rows, np.int64), edge_m


def _read_instances(dense: DenseMap) -> NDArray[np.integer] | None:
    if dense.instances is not None or dense.membership is None:
        return dense.instances
    found = np.zeros(len(dense.points), np.int64)
    for row, node in enumerate(dense.membership.node_ids):
        found[dense.membership.points_of(row)] = node
    return found


def _describe_node(node: SceneNode, color: Rgb) -> Json:
    assert node.box is not None
    name = node.label or next(iter(node.captions), '') or 'no name'
    low, high = _round_values(node.box.minimum), _round_values(node.box.maximum)
    return {
        'id': node.id,
        'name': name,
        'low': low,
        'high': high,
        'color': format_hex_color(color),
    }


def _round_values(values: NDArray[np.floating]) -> list[float]:
    return [round(float(value), 3) for value in values]


def _pack_array(values: NDArray[Any]) -> str:
    """Return an array deflated, for `DecompressionStream` of browsers, as base64."""
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


_OF_THE_VIEWER = 'var camera'
"""Where in trimesh's page the libraries end and its own viewer begins."""


@cache
def read_three_js() -> str:
    """Return the libraries of trimesh's own viewer, three.js first, unmodified."""
    from trimesh import resources, util

    archive = util.decompress(resources.get_bytes('templates/viewer.zip'), file_type='zip')
    page = archive['viewer.html.template'].read().decode('utf-8')
    start = page.index('<script>') + len('<script>')
    return str(page[start : page.index(_OF_THE_VIEWER, start)])
