"""The viewer over DDS: everything in colour, from disk and from topics."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path as PathMessage
from osmabench_ros.msg import LabelInfo
from sensor_msgs.msg import Image, PointCloud2
from support.ros_processes import node_process
from support.waiting import Spinner, listen
from support.world.graphs import thing
from support.world.outcomes import POINTS, SOFA, TABLE, context
from visualization_msgs.msg import MarkerArray

from osmabench_ros.base import contract as topics
from osmabench_ros.maps.standard_messages import convert_markers, convert_records, read_records
from osmabench_ros.maps.storage import write_map
from osmabench_ros.reports.palette import HALLUCINATED, PointOutcome, assign_class_colors
from osmabench_ros.ros.messages.images import (
    image_from_message,
    image_to_message,
    label_set_to_message,
)
from osmabench_ros.ros.messages.map_messages import MapPublisher
from osmabench_ros.ros.qos import frame_profile, latched_profile, observer_profile
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.ground_truth import write_ground_truth

LISTENED = {
    topics.VIEW_CLASSES: PointCloud2,
    topics.VIEW_ERRORS: PointCloud2,
    topics.VIEW_GROUND_TRUTH: PointCloud2,
    topics.VIEW_GRAPH: MarkerArray,
    topics.VIEW_GRAPH_ERRORS: MarkerArray,
    topics.VIEW_PATH: PathMessage,
    topics.SEMANTIC_MAP_MARKERS: MarkerArray,
}


def sofas(*places):
    return SceneGraph(
        tuple(
            thing(number, 'sofa', (x, 0, 0), (1, 1, 1)) for number, x in enumerate(places, start=1)
        )
    )


def truth():
    graph = sofas(0, 5)
    return replace(context(POINTS, None).ground_truth, graph=graph, seen_instances=(1, 2))


def semantic_map():
    points = [[0, 0, 0], [1, 0, 0], [9, 9, 9]]
    made = context(points, [SOFA, TABLE, SOFA]).semantic_map
    return replace(made, graph=sofas(0, 20))


class Listener(Spinner):
    def __init__(self, ros_context):
        super().__init__(ros_context)
        self.node = self.make_node('listener')
        self._messages = {
            topic: listen(self.node, kind, topic, latched_profile())
            for topic, kind in LISTENED.items()
        }

    @property
    def heard(self):
        """The last message of each topic."""
        return {topic: found[-1] for topic, found in self._messages.items() if found}


@pytest.fixture
def viewer(ros_domain):
    with ExitStack() as stack:
        yield lambda **parameters: stack.enter_context(
            node_process(ros_domain, 'map_viewer_node', **parameters)
        )


def cloud(message):
    return convert_records(read_records(message))[0]


def node_colors(message):
    return {
        item.id: tuple(round(255 * v) for v in (item.color.r, item.color.g, item.color.b))
        for item in message.markers
        if item.ns == 'nodes'
    }


@pytest.mark.full
def test_a_map_on_disk_is_shown_with_its_errors(viewer, ros_context, tmp_path):
    write_map(semantic_map(), tmp_path / 'map')
    write_ground_truth(truth(), tmp_path / 'truth')
    listener = Listener(ros_context)
    viewer(map_directory=tmp_path / 'map', ground_truth_directory=tmp_path / 'truth')
    wanted = {*LISTENED} - {topics.SEMANTIC_MAP_MARKERS}
    listener.spin_until(lambda: set(listener.heard) == wanted)
    heard = listener.heard

    colors = assign_class_colors(truth().label_set)
    classes = cloud(heard[topics.VIEW_CLASSES])
    assert [tuple(v) for v in classes.colors] == [colors[SOFA], colors[TABLE], colors[SOFA]]
    errors = cloud(heard[topics.VIEW_ERRORS])
    kinds = [PointOutcome.CORRECT, PointOutcome.WRONG, PointOutcome.MISSING, PointOutcome.MISSING]
    assert [tuple(v) for v in errors.colors] == [*(item.color for item in kinds), HALLUCINATED]
    np.testing.assert_array_equal(cloud(heard[topics.VIEW_GROUND_TRUTH]).points, POINTS)
    assert convert_markers(heard[topics.VIEW_GRAPH].markers, 't').nodes[1].label == 'sofa'
    assert node_colors(heard[topics.VIEW_GRAPH_ERRORS]) == {
        1: PointOutcome.CORRECT.color, 2: HALLUCINATED, 3: PointOutcome.MISSING.color,
    }  # fmt: skip
    assert len(heard[topics.VIEW_PATH].poses) == len(truth().camera_poses)
    assert heard[topics.VIEW_ERRORS].header.frame_id == 'world'


def test_maps_and_poses_of_a_running_stack_are_shown(viewer, ros_context):
    listener = Listener(ros_context)
    publisher = MapPublisher(listener.node, 'mapper')
    poses = listener.node.create_publisher(
        PoseStamped, topics.CAMERA_POSE, frame_profile(lockstep=True)
    )
    viewer()
    listener.spin_until(
        lambda: (
            listener.node.count_subscribers(topics.SEMANTIC_MAP_CHUNK) > 0
            and poses.get_subscription_count() > 0
        )
    )
    publisher.publish(semantic_map(), is_final=False)
    wanted = {topics.VIEW_CLASSES, topics.VIEW_GRAPH, topics.SEMANTIC_MAP_MARKERS}
    listener.spin_until(lambda: wanted <= listener.heard.keys())
    assert len(cloud(listener.heard[topics.VIEW_CLASSES]).points) == 3
    assert listener.heard[topics.VIEW_GRAPH].markers == (
        listener.heard[topics.SEMANTIC_MAP_MARKERS].markers
    )
    assert topics.VIEW_ERRORS not in listener.heard, 'nothing is known to be wrong'

    def drive():
        for x in (0.0, 0.001, 0.5, 1.0, float('nan')):
            pose = PoseStamped()
            pose.header.frame_id = 'world'
            pose.pose.position.x = x
            poses.publish(pose)
        return shown() >= {0.0, 0.5, 1.0}

    def shown():
        path = listener.heard.get(topics.VIEW_PATH)
        return {item.pose.position.x for item in path.poses} if path is not None else set()

    listener.spin_until(drive)
    assert shown() == {0.0, 0.5, 1.0}


def test_class_images_are_coloured_as_the_map(viewer, ros_context):
    listener = Listener(ros_context)
    node = listener.node
    info = node.create_publisher(LabelInfo, topics.LABEL_INFO, latched_profile())
    images = node.create_publisher(Image, topics.SEMANTIC, frame_profile(lockstep=True))
    seen = listen(node, Image, topics.VIEW_SEMANTIC, observer_profile())
    labels = truth().label_set
    info.publish(label_set_to_message(labels, 0))
    viewer()
    pixels = np.array([[SOFA, TABLE], [UNLABELLED, SOFA]], np.uint16)

    def show():
        images.publish(image_to_message(pixels, '16UC1', Time(sec=7), 'optical'))
        return bool(seen)

    listener.spin_until(show)
    colors = assign_class_colors(labels)
    shown = image_from_message(seen[0], 't')
    expected = [colors[SOFA], colors[TABLE], colors[UNLABELLED], colors[SOFA]]
    assert [tuple(pixel) for pixel in shown.reshape(-1, 3)] == expected
    assert (seen[0].header.stamp.sec, seen[0].header.frame_id) == (7, 'optical')
