"""Oracle: fuses ground-truth labels and instances; the ceiling of what a map can score."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.ndimage import maximum_filter

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion
from osmabench_ros.mappers.nodes import NodeBuilder, relations_seen
from osmabench_ros.mappers.rooms import with_rooms
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode

_BLOCK = 4


class OracleOptions(Strict):
    """Options of the oracle mapper.

    Parameters
    ----------
    voxel_m : float
        Edge of a voxel.
    stride : int
        Every how many-th row and column of the images is used.
    max_depth_m : float
        Pixels farther away are left out.
    border_voxel_m : float
        Edge of a voxel near the borders of objects, where a coarse grid would move the border.
    vote : bool
        Keep one point a voxel, that of the segment with most pixels, instead of one a segment;
        all voxels are of size `voxel_m` then.
    rooms : bool
        Add room nodes, found in the floor plan, and make them parents of the objects.
    albedo : bool
        Take the colours of the surfaces instead of those that the light makes of them; the
        simulator must give them, as `opengl` does.
    """

    voxel_m: float = Field(0.04, gt=0.001, le=1.0)
    stride: int = Field(1, ge=1, le=64)
    max_depth_m: float = Field(50.0, gt=0.0)
    border_voxel_m: float = Field(0.006, gt=0.001, le=1.0)
    vote: bool = False
    rooms: bool = True
    albedo: bool = False


def require_ground_truth(
    frame: Frame, mapper: str
) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Return the semantic and instance image of a frame, or raise a ConfigError."""
    if frame.semantic is None or frame.instance is None:
        raise ConfigError(
            f'mapper "{mapper}" reads ground truth, but frame {frame.index} has no semantic or '
            'no instance image; publish them, or choose the mapper "appearance"'
        )
    return frame.semantic, frame.instance


def near_contacts(
    instance: NDArray[np.int32], depth_m: NDArray[np.float32], reach_m: float
) -> NDArray[np.bool_]:
    """Return the pixels (height, width) near borders where instances touch within `reach_m`."""
    height, width = instance.shape
    contact = np.zeros((height + -height % _BLOCK, width + -width % _BLOCK), np.bool_)
    for axis in (0, 1):
        with np.errstate(invalid='ignore'):
            level = np.abs(np.diff(depth_m, axis=axis)) < reach_m
        across = (np.diff(instance, axis=axis) != 0) & level
        contact[: across.shape[0], : across.shape[1]] |= across
    blocks = contact.reshape(contact.shape[0] // _BLOCK, _BLOCK, -1, _BLOCK).any(axis=(1, 3))
    near = maximum_filter(blocks, 3).repeat(_BLOCK, axis=0).repeat(_BLOCK, axis=1)
    return np.asarray(near[:height, :width])


class OracleMapper:
    """Fuses the simulator's class and instance images, in smaller voxels at objects' borders."""

    name = 'oracle'
    uses_ground_truth = True
    home_advantage = (
        'reads ground-truth images, and derives relations by the definitions of the benchmark'
    )

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        del seed
        self.options = validated(OracleOptions, options, f'mapper "{self.name}"')
        self.label_set = label_set
        self._inside = VoxelFusion(self.options.voxel_m)
        self._borders = VoxelFusion(self.options.border_voxel_m)
        self._segments: dict[tuple[int, int], int] = {}
        self._observations: Counter[int] = Counter()
        self._frames = 0
        self._stamp_ns = 0

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map; ConfigError if it has no ground truth or other classes."""
        semantic, instance = require_ground_truth(frame, self.name)
        step = self.options.stride
        used = np.zeros(frame.depth_m.shape, np.bool_)
        used[::step, ::step] = True
        used &= frame.valid & (frame.depth_m <= self.options.max_depth_m)
        segments = self._segments_of(semantic[used], instance[used], frame.index)
        image = self._albedo(frame) if self.options.albedo else frame.color
        points, colors = frame.world_points(used), image[used]
        if self.options.vote:
            self._inside.add(points, colors, segments)
        else:
            near = near_contacts(instance, frame.depth_m, self.options.voxel_m)[used]
            self._inside.add(points[~near], colors[~near], segments[~near])
            self._borders.add(points[near], colors[near], segments[near])
        self._frames += 1
        self._stamp_ns = max(self._stamp_ns, frame.stamp_ns)

    def _albedo(self, frame: Frame) -> NDArray[np.uint8]:
        if frame.albedo is None:
            raise ConfigError(
                f'mapper "{self.name}" has the option albedo, but frame {frame.index} has no '
                'colours without light; choose the simulator "opengl", or leave the option out'
            )
        return frame.albedo

    def _segments_of(
        self, semantic: NDArray[np.uint16], instance: NDArray[np.int32], index: int
    ) -> NDArray[np.int64]:
        """Give each pair of class and instance a number, and count the instances seen."""
        codes = (instance.astype(np.int64) << 16) | semantic
        first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])[: len(codes)])
        pairs, inverse = np.unique(codes[first], return_inverse=True)
        self.label_set.check(pairs & 0xFFFF, f'semantic image of frame {index}')
        self._observations.update(np.unique(pairs >> 16).tolist())
        numbers = [
            self._segments.setdefault((int(pair & 0xFFFF), int(pair >> 16)), len(self._segments))
            for pair in pairs
        ]
        lengths = np.diff(np.append(first, len(codes)))
        return np.repeat(np.array(numbers, np.int64)[inverse.reshape(-1)], lengths)

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        parts = [self._inside.cells(), self._borders.cells()]
        cells = FusedCells.joined(parts)
        pairs = np.array(list(self._segments), np.int32).reshape(-1, 2)[cells.segments]
        scores = np.concatenate([part.vote_shares() for part in parts])
        if self.options.vote:
            rows = cells.winner_rows(abstaining=pairs[:, 1] == NO_INSTANCE)
            cells, pairs, scores = cells.select(rows), pairs[rows], scores[rows]
        labels, instances = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        nodes = self._nodes(cells, labels, instances)
        if self.options.vote:
            labels = _labels_of_nodes(nodes, labels, instances)
        if self.options.rooms:
            nodes = with_rooms(nodes, cells.points)
        provenance = Provenance(method=self.name, frames_used=self._frames)
        return SemanticMap(
            header=MapHeader(provenance, stamp_ns=self._stamp_ns, complete=final),
            graph=SceneGraph(nodes, relations_seen(nodes, cells.points, instances)),
            dense=DenseMap(
                points=cells.points,
                colors=cells.colors,
                labels=labels,
                instances=instances,
                scores=scores.astype(np.float32),
            ),
            label_set=self.label_set,
        )

    def _nodes(
        self, cells: FusedCells, labels: NDArray[np.int32], instances: NDArray[np.int32]
    ) -> tuple[SceneNode, ...]:
        """Return a node for each instance, ordered by id."""
        order = np.argsort(instances, kind='stable')
        ids = np.setdiff1d(instances, [NO_INSTANCE])
        starts = np.searchsorted(instances[order], ids)
        stops = np.searchsorted(instances[order], ids, side='right')
        builder = NodeBuilder(cells, self.label_set, lit=not self.options.albedo)
        classes = np.searchsorted(self.label_set.ids, np.where(labels == UNLABELLED, -1, labels))
        weights = np.where(labels == UNLABELLED, 0.0, cells.counts)
        nodes = []
        for node_id, start, stop in zip(ids.tolist(), starts, stops, strict=True):
            rows = order[start:stop]
            votes = np.zeros(len(self.label_set.classes))
            np.add.at(votes, classes[rows], weights[rows])
            nodes.append(builder.node(node_id, rows, votes, self._observations[node_id]))
        return tuple(nodes)


def _labels_of_nodes(
    nodes: tuple[SceneNode, ...], labels: NDArray[np.int32], instances: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the class of the node that each point belongs to, its own label without a node."""
    ids = np.array([node.id for node in nodes], np.int32)
    classes = np.array([node.class_id for node in nodes], np.int32)
    owned = np.isin(instances, ids)
    result = labels.copy()
    result[owned] = classes[np.searchsorted(ids, instances[owned])]
    return result
