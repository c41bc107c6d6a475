"""Transformation of maps to another frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.scene_graph import SceneNode

_TURN_DEG = 1e-6
"""Smaller turns leave boxes along the axes."""


def transformed_map(semantic_map: SemanticMap, by: Similarity, frame_id: str) -> SemanticMap:
    """Return a map in the new frame; axis-aligned boxes are drawn anew and may become larger."""
    dense = semantic_map.dense
    if dense is not None:
        points = by.transform(dense.points).astype(np.float32)
        dense = dataclasses.replace(dense, points=points)
    turned = by.angle_deg > _TURN_DEG
    bounds = _bounds(dense) if turned and dense is not None else {}
    graph, poses = semantic_map.graph, semantic_map.trajectory
    if poses is not None:
        poses = dataclasses.replace(poses.transformed(by), frame_id=frame_id)
    nodes = tuple(_node(node, by, bounds.get(node.id)) for node in graph.nodes)
    return dataclasses.replace(
        semantic_map,
        header=dataclasses.replace(semantic_map.header, frame_id=frame_id),
        graph=dataclasses.replace(graph, nodes=nodes, frame_id=frame_id),
        dense=dense,
        trajectory=poses,
    )


def _node(node: SceneNode, by: Similarity, bounds: AxisAlignedBox | None) -> SceneNode:
    oriented = node.oriented_box
    if oriented is not None:
        pose = Pose(
            by.pose.rotation @ oriented.pose.rotation, by.transform(oriented.pose.translation)
        )
        oriented = OrientedBox(pose, oriented.size * by.scale)
    box = node.box
    if box is not None:
        around = oriented.axis_aligned() if oriented is not None else _turned(box, by)
        box = bounds or (around if by.angle_deg > _TURN_DEG else _moved(box, by))
    return dataclasses.replace(node, box=box, oriented_box=oriented)


def _moved(box: AxisAlignedBox, by: Similarity) -> AxisAlignedBox:
    return AxisAlignedBox(by.transform(box.minimum), by.transform(box.maximum))


def _turned(box: AxisAlignedBox, by: Similarity) -> AxisAlignedBox:
    corners = OrientedBox(Pose(np.eye(3), box.center), box.size).corners()
    return AxisAlignedBox.around(by.transform(corners))


def _bounds(dense: DenseMap) -> Mapping[int, AxisAlignedBox]:
    """Return the boxes around the points of each node."""
    if dense.instances is None or not len(dense.points):
        return {}
    order = np.argsort(dense.instances, kind='stable')
    ids, starts = np.unique(dense.instances[order], return_index=True)
    low: NDArray[np.float32] = np.minimum.reduceat(dense.points[order], starts)
    high: NDArray[np.float32] = np.maximum.reduceat(dense.points[order], starts)
    return {
        int(node): AxisAlignedBox(low[i].astype(np.float64), high[i].astype(np.float64))
        for i, node in enumerate(ids)
    }
