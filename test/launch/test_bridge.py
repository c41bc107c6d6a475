"""bridge.launch.py by launch_pytest: it publishes to whoever subscribes."""

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    'launch_pytest', reason='launch_pytest is not installed; source a ROS 2 installation'
)

import launch_pytest
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_pytest.actions import ReadyToTest

from launch import LaunchDescription

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

LAUNCH = Path(__file__).parents[2] / 'launch' / 'bridge.launch.py'
ARGUMENTS = {
    'goals': '2',
    'image_width': '96',
    'image_height': '64',
    'namespace': 'robot',
    'participants': 'listener',
}


@launch_pytest.fixture(scope='module')
def bridge() -> LaunchDescription:
    """The bridge in a domain of its own, waiting for the listener below."""
    from osmabench_ros.bringup.isolation import private_domain

    with private_domain() as domain:
        os.environ['ROS_DOMAIN_ID'] = str(domain)
    include = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(LAUNCH)), launch_arguments=ARGUMENTS.items()
    )
    return LaunchDescription([include, ReadyToTest()])


@pytest.mark.launch(fixture=bridge)
def test_images_of_one_frame_reach_a_subscriber() -> None:
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import Image

    from osmabench_ros.ros import topics
    from osmabench_ros.ros.qos import frame_profile

    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    node = rclpy.create_node('listener', namespace='robot', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    heard: dict[str, list[Any]] = {topics.COLOR: [], topics.DEPTH: []}
    for topic, messages in heard.items():
        node.create_subscription(Image, topic, messages.append, frame_profile(lockstep=False))
    for _ in range(600):
        executor.spin_once(timeout_sec=0.1)
        if all(len(messages) > 1 for messages in heard.values()):
            break
    stamps = [{(m.header.stamp.sec, m.header.stamp.nanosec) for m in ms} for ms in heard.values()]
    executor.shutdown()
    node.destroy_node()
    context.try_shutdown()
    assert stamps[0] & stamps[1]
    assert (heard[topics.COLOR][0].width, heard[topics.COLOR][0].height) == (96, 64)
