"""TF of the bridge and of other authorities, over DDS."""

from contextlib import closing

import pytest
from nodes.node_stage import UP

pytestmark = pytest.mark.slow
pytest.importorskip('tf2_ros', reason='tf2_ros is not installed')

import numpy as np
from geometry_msgs.msg import TransformStamped
from osmabench_ros.msg import RunState
from rclpy.time import Time
from support.bridge_process import Audience, bridge_process, write_sequence
from support.world.frames import FRAMES, MOUNT
from tf2_ros import Buffer, TransformBroadcaster, TransformListener

from osmabench_ros.base import contract as topics
from osmabench_ros.geometry.pose import Pose


class Robot(Audience):
    """An audience with a TF tree, that may publish edges too."""

    def __init__(self, context):
        super().__init__(context)
        self.buffer = Buffer()
        self._listener = TransformListener(self.buffer, self.node)
        self._broadcaster = TransformBroadcaster(self.node)

    def publish(self, parent, child):
        transform = TransformStamped(child_frame_id=child)
        transform.header.frame_id = parent
        transform.header.stamp.sec = 1
        transform.transform.rotation.w = 1.0
        self._broadcaster.sendTransform(transform)

    def pose(self, parent, child, stamp_ns=0):
        time = Time(nanoseconds=stamp_ns)
        self.spin_until(lambda: self.buffer.can_transform(parent, child, time))
        found = self.buffer.lookup_transform(parent, child, time).transform
        position, rotation = found.translation, found.rotation
        return Pose.from_quaternion(
            (rotation.x, rotation.y, rotation.z, rotation.w), (position.x, position.y, position.z)
        )


@pytest.fixture
def robot(ros_context):
    with closing(Robot(ros_context)) as made:
        yield made


@pytest.fixture
def parameters(tmp_path):
    return {
        'sequence': write_sequence(tmp_path / 'room'),
        'pacing': 'realtime',
        'speed_factor': 0.1,
    }


def test_the_camera_is_where_the_frames_say(ros_domain, robot, parameters):
    with bridge_process(ros_domain, **parameters):
        robot.change(*UP)
        robot.spin_until(lambda: robot.state.state == RunState.STATE_FINISHED)
        for frame in FRAMES:
            seen = robot.pose('world', 'camera_color_optical_frame', frame.stamp_ns)
            np.testing.assert_allclose(seen.matrix, frame.camera_pose.matrix, atol=1e-6)


def test_a_second_authority_of_an_edge_ends_the_run(ros_domain, robot, parameters):
    with bridge_process(ros_domain, **parameters, start_paused=True) as process:
        robot.change(*UP)
        robot.control(topics.STEP_RUN, 1)
        robot.publish('map', 'odom')
        robot.spin_until(lambda: robot.state.frames_published == 1)
        robot.spin_for(0.5)
        assert process.poll() is None
        robot.publish('odom', 'base_link')
        robot.spin_until(lambda: process.poll() is not None)
        _, errors = process.communicate(timeout=180)
    assert process.returncode == 1
    assert 'world → base_link of "simulator_bridge"' in errors
    assert 'odom → base_link of "audience"' in errors
    assert '"transforms: [map->odom, odom->base_link]"' in errors
    robot.spin_until(lambda: robot.state.state == RunState.STATE_FAILED)


@pytest.mark.parametrize('origin', ['first_pose', 'world'])
@pytest.mark.parametrize(
    'who', [{'publish_tf': 'world_to_map'}, {'transforms': ['map->odom', 'odom->base_link']}]
)
def test_beside_a_stack_only_the_map_is_placed(ros_domain, robot, parameters, origin, who):
    with bridge_process(ros_domain, **parameters, **who, map_origin=origin) as process:
        robot.change(*UP)
        robot.publish('map', 'odom')
        robot.publish('odom', 'base_link')
        base = FRAMES[0].base_pose if origin == 'first_pose' else Pose.identity()
        placed = robot.pose('world', 'map')
        np.testing.assert_allclose(placed.matrix, base.matrix, atol=1e-6)
        camera = robot.pose('map', 'camera_color_optical_frame')
        np.testing.assert_allclose(camera.matrix, MOUNT.matrix, atol=1e-6)
        robot.spin_until(lambda: robot.state.state == RunState.STATE_FINISHED)
        assert process.poll() is None


def test_nothing_is_published_if_not_asked_for(ros_domain, robot, parameters):
    with bridge_process(ros_domain, **parameters, publish_tf='none'):
        robot.change(*UP)
        robot.spin_until(lambda: robot.state.state == RunState.STATE_FINISHED)
        assert not robot.buffer.all_frames_as_string()
        publishers = robot.node.get_publishers_info_by_topic('/tf')
        assert {item.node_name for item in publishers} == {'audience'}
