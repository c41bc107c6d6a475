"""The adapter over DDS: a stack's cloud, a stack's file, and stacks that say nothing."""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nodes.node_stage import on_stage, openings
from osmabench_ros.msg import LabelInfo, RunInfo, RunState, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.srv import ControlRun
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from support.world.maps import LABELS, labelled_map

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import TF_STATIC, TF_TYPE
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.point_files import write_ply
from osmabench_ros.nodes.map_adapter_node import MapAdapterNode
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages.images import label_set_to_message
from osmabench_ros.ros.messages.map_messages import point_cloud_message
from osmabench_ros.ros.messages.message_definitions import interface_class
from osmabench_ros.ros.qos import latched_profile, lossless_profile, tf_profile

TOPIC = '/stack/cloud_map'
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class Adapting:
    """An adapter, and the run and the stack around it."""

    def __init__(self, stage):
        self.stage = stage
        self.announced = stage.listen(SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())
        self.chunks = stage.listen(SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile())
        info, labels = RunInfo(scene='room', condition='camera'), label_set_to_message(LABELS, 0)
        stage.speak(RunInfo, topics.RUN_INFO, latched_profile()).publish(info)
        stage.speak(LabelInfo, topics.LABEL_INFO, latched_profile()).publish(labels)
        self.states = stage.speak(RunState, topics.RUN_STATE, latched_profile())
        stage.spin_until(lambda: stage.node.labels is not None and bool(stage.node.scene))

    def publish_cloud(self, frame, shift_m=0.0, publisher=None):
        """Publish the room as a stack does; the adapter comes to the publisher by itself."""
        if publisher is None:
            publisher = self.stage.peer.create_publisher(PointCloud2, TOPIC, BEST_EFFORT)
            self.stage.spin_until(lambda: publisher.get_subscription_count() > 0)
        dense, before = labelled_map().dense, self.stage.node.newest
        moved = type(dense)(dense.points + np.float32(shift_m), labels=dense.labels)
        publisher.publish(point_cloud_message(moved, Header(frame_id=frame)))
        self.stage.spin_until(lambda: self.stage.node.newest is not before)
        return publisher

    def call_finish_map(self):
        """Ask for the end of mapping by the service; return the response."""
        client = self.stage.peer.create_client(ControlRun, topics.FINISH_MAP)
        self.stage.spin_until(client.service_is_ready)
        answer = client.call_async(ControlRun.Request())
        self.stage.spin_until(answer.done)
        return answer.result()

    def publish_static_tf(self, child, *x_m):
        """Publish transforms from world to a frame, one after the other."""
        message_type = interface_class(TF_TYPE)
        if message_type is None:
            pytest.skip('tf2_msgs is not installed; source a ROS 2 installation')
        from geometry_msgs.msg import TransformStamped

        publisher = self.stage.speak(message_type, TF_STATIC, tf_profile(static=True))
        for x in x_m:
            edge = TransformStamped(child_frame_id=child)
            edge.header.frame_id, edge.transform.translation.x = 'world', x
            publisher.publish(message_type(transforms=[edge]))

    def finish(self):
        self.states.publish(RunState(state=RunState.STATE_FINISHED))

    def result(self):
        """Return the map that the adapter published, from its chunks."""
        self.stage.spin_until(lambda: self.announced)
        assert self.announced[0].is_final
        return self.stage.receive_map(self.announced[0], self.chunks)

    def failure(self, capsys, exit_code=1):
        assert self.stage.wait_for_end() == exit_code
        return capsys.readouterr().err


@pytest.fixture
def adapt(ros_domain, tmp_path):
    values = {'method': 'stack', 'settle_s': 0.2, 'map_topic': TOPIC}
    with openings(MapAdapterNode, tmp_path, ros_domain, Adapting, **values) as opening:
        yield opening


def test_the_newest_labelled_cloud_is_the_map(adapt):
    adapting = adapt()
    publisher = adapting.publish_cloud('world', 5.0)
    adapting.publish_cloud('world', publisher=publisher)
    adapting.finish()
    made, dense = adapting.result(), labelled_map().dense
    np.testing.assert_allclose(made.dense.points, dense.points, atol=1e-6)
    np.testing.assert_array_equal(made.dense.labels, dense.labels)
    assert made.label_set.sha256 == LABELS.sha256
    provenance = made.header.provenance
    assert (provenance.method, provenance.scene, provenance.condition) == (
        'stack', 'room', 'camera'
    )  # fmt: skip


def test_nothing_is_published_before_the_run_is_over(adapt):
    adapting = adapt()
    adapting.publish_cloud('world')
    adapting.stage.spin_for(0.8)
    assert adapting.announced == []


def test_without_a_bridge_a_service_ends_the_mapping(adapt):
    adapting = adapt()
    adapting.publish_cloud('world')
    assert adapting.call_finish_map().error_code == ControlRun.Response.ERROR_NONE
    assert adapting.result().dense is not None
    assert adapting.call_finish_map().error_code == ControlRun.Response.ERROR_WRONG_STATE


def test_a_map_in_the_frame_of_the_stack_is_moved_as_tf_says(adapt):
    adapting = adapt()
    adapting.publish_static_tf('map', 2.0)
    adapting.publish_cloud('map')
    adapting.finish()
    made = adapting.result()
    assert made.header.frame_id == 'world'
    expected = labelled_map().dense.points + np.float32([2, 0, 0])
    np.testing.assert_allclose(made.dense.points, expected, atol=1e-5)


def test_an_unknown_frame_is_an_error_unless_it_is_said_to_be_the_world(adapt, capsys):
    adapting = adapt()
    adapting.publish_cloud('odom')
    adapting.finish()
    reason = adapting.failure(capsys)
    assert 'is in frame "odom"' in reason
    assert 'map_frame_is_world' in reason


def test_a_frame_that_tf_does_not_know_is_told_while_the_stack_still_maps(adapt, capfd):
    adapting = adapt()
    heard = adapting.stage.listen(DiagnosticArray, topics.DIAGNOSTICS, qos.diagnostics_profile())
    adapting.publish_cloud('odom')
    reported = 'is in frame "odom", and TF does not say where that is in "world"'
    adapting.stage.spin_until(lambda: any(reported in item.status[0].message for item in heard))
    assert adapting.announced == []
    assert capfd.readouterr().err.count(reported) == 1
    adapting.publish_static_tf('odom', 0.0)
    adapting.stage.spin_until(lambda: reported not in heard[-1].status[0].message)
    adapting.finish()
    assert adapting.result().header.frame_id == 'world'


def test_a_frame_may_be_said_to_be_the_world(adapt):
    adapting = adapt(map_frame_is_world=True)
    adapting.publish_cloud('odom')
    adapting.finish()
    assert adapting.result().header.frame_id == 'world'


def test_a_silent_stack_is_an_error_that_names_the_topic(adapt, capsys):
    adapting = adapt(plan={'map_timeout_s': 0.3})
    adapting.finish()
    assert f'no map on topic "{TOPIC}": no node publishes it' in adapting.failure(capsys)


def test_another_type_on_the_topic_is_named(adapt, capsys):
    adapting = adapt()
    adapting.stage.peer.create_publisher(RunState, TOPIC, 1)
    reason = adapting.failure(capsys)
    assert 'publishes osmabench_ros/msg/RunState, not sensor_msgs/msg/PointCloud2' in reason


def test_a_stack_is_asked_for_its_file(adapt, tmp_path):
    file = tmp_path / 'mesh.ply'
    adapting = adapt(
        map_topic='', map_file=str(file), importer='pointcloud',
        finish_service='/stack/save', finish_type='std_srvs/srv/Trigger',
    )  # fmt: skip

    def save(_request, response):
        points = labelled_map().dense.points
        with file.open('wb') as stream:
            write_ply(stream, dict(zip('xyz', points.T.astype(np.float32), strict=True)))
        response.success = True
        return response

    adapting.stage.peer.create_service(Trigger, '/stack/save', save)
    adapting.finish()
    assert len(adapting.result().dense.points) == len(labelled_map().dense.points)


def test_a_stack_that_cannot_finish_is_quoted(adapt, capsys):
    adapting = adapt(finish_service='/stack/save', finish_type='std_srvs/srv/Trigger')

    def refuse(_request, response):
        response.success, response.message = False, 'disk full'
        return response

    adapting.stage.peer.create_service(Trigger, '/stack/save', refuse)
    adapting.finish()
    assert 'service "/stack/save" failed: disk full' in adapting.failure(capsys)


def test_a_topic_and_a_file_are_one_too_many(ros_domain, tmp_path, capsys):
    values = {'map_topic': TOPIC, 'map_file': '/x', 'importer': 'pointcloud'}
    with on_stage(MapAdapterNode, tmp_path, ros_domain, **values) as stage:
        assert stage.node.exit_code == 2
    assert 'set one of the parameters "map_topic" and "map_file"' in capsys.readouterr().err


def test_a_request_that_is_no_mapping_is_refused_before_the_run(ros_domain, tmp_path):
    values = {'map_topic': TOPIC, 'finish_service': '/stack/save'}
    for request in ('[unfinished', 'save it'):
        with (
            pytest.raises(ConfigError, match='parameter "finish_request"'),
            on_stage(MapAdapterNode, tmp_path, ros_domain, **values, finish_request=request),
        ):
            pass


def test_the_caller_that_ends_the_mapping_learns_why_the_stack_cannot_be_asked(adapt, capsys):
    adapting = adapt(finish_service='/stack/save', finish_type='stack_msgs/srv/Save')
    answer = adapting.call_finish_map()
    assert answer.error_code == ControlRun.Response.ERROR_FAILED
    assert 'stack_msgs/srv/Save, which is not installed' in answer.error_msg
    assert 'which is not installed' in adapting.failure(capsys, exit_code=3)


def test_after_a_reset_the_stack_is_asked_for_another_map(adapt):
    adapting = adapt()
    publisher = adapting.publish_cloud('world')
    adapting.finish()
    adapting.result()
    adapting.states.publish(RunState(state=RunState.STATE_WAITING))
    adapting.stage.spin_until(lambda: adapting.stage.node.newest is None)
    adapting.announced.clear()
    adapting.chunks.clear()
    adapting.publish_cloud('world', 3.0, publisher)
    adapting.finish()
    moved = labelled_map().dense.points + np.float32(3.0)
    np.testing.assert_allclose(adapting.result().dense.points, moved, atol=1e-6)


def test_static_transforms_that_are_said_again_and_again_take_no_memory(adapt):
    adapting = adapt()
    history = adapting.stage.node.frame.transforms
    adapting.publish_static_tf('map', *map(float, range(5)))

    def is_last():
        pose = history.look_up('world', 'map', 0)
        return pose is not None and pose.translation[0] == 4.0

    adapting.stage.spin_until(is_last)
    assert len(history.static) == 1
