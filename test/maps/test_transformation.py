import math

import numpy as np
import pytest

from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    MapHeader,
    Provenance,
    SemanticMap,
    transform_map,
)
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode

BOX = AxisAlignedBox(np.array([1.0, 0, 0]), np.array([3.0, 1, 1]))
UP = np.array([0, 0, 5.0])
POINTS = np.array([[1, 0, 0], [3, 1, 1], [9, 9, 9]], np.float32)


def small_map():
    oriented = OrientedBox(Pose.from_yaw(math.pi / 4, (2, 0.5, 0.5)), np.array([2.0, 1, 1]))
    nodes = (
        SceneNode(1, box=BOX),
        SceneNode(2, box=BOX),
        SceneNode(3, box=oriented.axis_aligned(), oriented_box=oriented),
        SceneNode(4),
    )
    dense = DenseMap(POINTS, instances=np.array([2, 2, 0], np.int32))
    return SemanticMap(MapHeader(Provenance('test'), 'map'), SceneGraph(nodes, (), 'map'), dense)


def test_points_and_boxes_move():
    moved = transform_map(small_map(), Similarity(Pose(np.eye(3), UP)), 'world')
    assert (moved.header.frame_id, moved.graph.frame_id) == ('world', 'world')
    np.testing.assert_array_equal(moved.dense.points, POINTS + UP)
    for node in moved.graph.nodes[:2]:
        np.testing.assert_array_equal(node.box.minimum, [1, 0, 5])
        np.testing.assert_array_equal(node.box.maximum, [3, 1, 6])
    assert moved.graph.nodes[3].box is None


def test_turned_boxes_are_drawn_anew():
    turned = transform_map(small_map(), Similarity(Pose.from_yaw(-math.pi / 4)), 'world')
    plain, pointed, oriented, _ = turned.graph.nodes
    edge = 3 / math.sqrt(2)
    np.testing.assert_allclose(plain.box.size, [edge, edge, 1])
    # Around its two points, which the turn brings nearly in line with x.
    np.testing.assert_allclose(pointed.box.size, [edge, 1 / math.sqrt(2), 1], rtol=1e-6)
    np.testing.assert_allclose(oriented.box.size, [2, 1, 1])
    np.testing.assert_allclose(oriented.oriented_box.pose.rotation, np.eye(3), atol=1e-12)


def test_a_scale_scales_everything():
    scaled = transform_map(small_map(), Similarity(Pose.identity(), 2.0), 'world')
    np.testing.assert_array_equal(scaled.dense.points, POINTS * 2)
    np.testing.assert_array_equal(scaled.graph.nodes[0].box.size, [4, 2, 2])
    np.testing.assert_array_equal(scaled.graph.nodes[2].oriented_box.size, [4, 2, 2])
    with pytest.raises(ValueError, match='positive'):
        Similarity(Pose.identity(), 0.0)
