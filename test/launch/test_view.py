"""view.launch.py under the real ros2 launch; skipped where launch is not installed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    'launch_ros', reason='launch_ros is not installed; source a ROS 2 installation'
)

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.timeout(120)]


def ros2_launch(tmp_path: Path, domain: int, *arguments: str) -> subprocess.Popen:
    if shutil.which('ros2') is None:
        pytest.skip('the ros2 command is not on PATH; source a ROS 2 installation')
    return subprocess.Popen(
        ['ros2', 'launch', 'osmabench_ros', 'view.launch.py', *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={
            **os.environ,
            'AMENT_PREFIX_PATH': f'{os.environ.get("AMENT_PREFIX_PATH", "")}:{sys.prefix}',
            'ROS_DOMAIN_ID': str(domain),
            'ROS_LOG_DIR': str(tmp_path / 'log'),
        },
    )


def test_a_map_on_disk_is_shown_until_ctrl_c(
    tmp_path: Path, ros_domain: int, ros_context: Any
) -> None:
    from nodes.test_map_viewer_node import semantic_map, truth
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from sensor_msgs.msg import PointCloud2

    from osmabench_ros.maps.storage import write_map
    from osmabench_ros.ros import topics
    from osmabench_ros.ros.qos import latched_profile
    from osmabench_ros.sequences.ground_truth import write_ground_truth

    write_map(semantic_map(), tmp_path / 'map')
    write_ground_truth(truth(), tmp_path / 'truth')
    node, heard = Node('listener', context=ros_context), []
    executor = SingleThreadedExecutor(context=ros_context)
    executor.add_node(node)
    node.create_subscription(
        PointCloud2, f'robot/{topics.VIEW_ERRORS}', heard.append, latched_profile()
    )
    process = ros2_launch(
        tmp_path,
        ros_domain,
        'rviz:=false',
        'namespace:=robot',
        f'map_directory:={tmp_path / "map"}',
        f'ground_truth_directory:={tmp_path / "truth"}',
    )
    deadline = time.monotonic() + 60
    while not heard and process.poll() is None and time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.1)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=40)
    assert heard, text
    assert 'process has finished cleanly' in text
    assert process.returncode == 0, text


def test_without_rviz2_the_package_is_named(tmp_path: Path, ros_domain: int) -> None:
    if shutil.which('rviz2'):
        pytest.skip('rviz2 is installed')
    process = ros2_launch(tmp_path, ros_domain)
    text, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert 'rviz2 is not installed' in text
    assert 'process started' not in text, 'a viewer would be left behind'
