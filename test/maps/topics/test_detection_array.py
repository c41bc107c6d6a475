from dataclasses import replace

import numpy as np
import pytest
from support.world.bags import header, make, pose_message, xyz

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.standard_messages import find_oriented_box, map_of_detections
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

LABELS = LabelSet.from_names('room', ['chair', 'coffee table'])


def detection(name, hypotheses, yaw_rad=0.0, frame_id='', size=(2, 1, 0.5)):
    results = [
        make(
            'vision_msgs/ObjectHypothesisWithPose',
            hypothesis=make('vision_msgs/ObjectHypothesis', class_id=given, score=score),
        )
        for given, score in hypotheses
    ]
    box = make(
        'vision_msgs/BoundingBox3D',
        center=pose_message(Pose.from_yaw(yaw_rad, (1, 2, 3))),
        size=xyz(size),
    )
    return make(
        'vision_msgs/Detection3D',
        header=header(0, frame_id), results=results, bbox=box, id=name,
    )  # fmt: skip


def read(*detections, label_set=LABELS):
    message = make(
        'vision_msgs/Detection3DArray', header=header(5, 'map'), detections=list(detections)
    )
    return map_of_detections(message, '/boxes', TopicOptions('detector', label_set))


def test_boxes_become_nodes_with_their_best_class_first():
    made = read(
        detection('4', [('Chair', 0.2), ('coffee_table', 0.7), ('sofa', 0.1)], np.pi / 2, 'map'),
        detection('8', [('1', 0.5), ('77', 0.4)]),
        detection('9', []),
    )
    assert (made.header.frame_id, made.graph.frame_id, made.dense) == ('map', 'map', None)
    first, second, third = made.graph.nodes
    names = [(item.name, item.score, item.class_id) for item in first.labels]
    assert names == [('coffee table', 0.7, 2), ('chair', 0.2, 1), ('sofa', 0.1, UNLABELLED)]
    assert [(item.name, item.class_id) for item in second.labels] == [
        ('chair', 1),
        ('class 77', UNLABELLED),
    ]
    assert third.labels == ()
    assert [node.id for node in made.graph.nodes] == [4, 8, 9]
    np.testing.assert_allclose(first.box.size, [1, 2, 0.5])
    np.testing.assert_allclose(first.box.center, [1, 2, 3])


def test_a_node_without_an_oriented_box_gets_one_along_the_axes():
    node = read(detection('4', [('chair', 0.2)], 0.3)).graph.nodes[0]
    assert find_oriented_box(node) is node.oriented_box
    plain = find_oriented_box(replace(node, oriented_box=None))
    np.testing.assert_allclose(plain.axis_aligned().minimum, node.box.minimum)
    assert find_oriented_box(replace(node, box=None, oriented_box=None)) is None


def test_names_that_are_no_node_ids_are_kept_beside_new_ids():
    made = read(detection('mug-7', [('mug', 1.0)]), detection('2', []), label_set=None)
    assert [(node.id, node.source_id) for node in made.graph.nodes] == [(1, 'mug-7'), (2, '2')]
    assert made.graph.nodes[0].label == 'mug'


def test_detections_at_fault_are_named():
    with pytest.raises(
        ContractError, match='detection 1 is in frame "odom", the message in "map"'
    ):
        read(detection('1', []), detection('2', [], frame_id='odom'))
    with pytest.raises(ContractError, match='"/boxes": detection 3: .*lengths >= 0'):
        read(detection('3', [], size=(1, -1, 1)))
    broken = detection('3', [])
    broken.bbox.center.orientation.w = np.nan
    with pytest.raises(ContractError, match='/boxes.*detection "0".*quaternion'):
        read(broken)
