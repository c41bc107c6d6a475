"""view.launch.py under the real ros2 launch; skipped where launch is not installed."""

import shutil

import pytest
from support.ros2_launch import finished, interrupted, ros2_launch
from support.waiting import listen

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.timeout(120)]


def test_a_map_on_disk_is_shown_until_ctrl_c(tmp_path, ros_domain, spinner):
    from nodes.test_map_viewer_node import semantic_map, truth
    from sensor_msgs.msg import PointCloud2

    from osmabench_ros.base import contract as topics
    from osmabench_ros.maps.storage import write_map
    from osmabench_ros.ros.qos import latched_profile
    from osmabench_ros.sequences.ground_truth import write_ground_truth

    write_map(semantic_map(), tmp_path / 'map')
    write_ground_truth(truth(), tmp_path / 'truth')
    node, topic = spinner.make_node('listener'), f'robot/{topics.VIEW_ERRORS}'
    heard = listen(node, PointCloud2, topic, latched_profile())
    process = ros2_launch(
        'view.launch.py', 'rviz:=false', 'namespace:=robot',
        f'map_directory:={tmp_path / "map"}', f'ground_truth_directory:={tmp_path / "truth"}',
        domain=ros_domain, logs=tmp_path,
    )  # fmt: skip
    spinner.spin_until(lambda: heard or process.poll() is not None)
    text = interrupted(process)
    assert heard, text
    assert 'process has finished cleanly' in text
    assert process.returncode == 0, text


def test_without_rviz2_the_package_is_named(tmp_path, ros_domain):
    if shutil.which('rviz2'):
        pytest.skip('rviz2 is installed')
    process = ros2_launch('view.launch.py', domain=ros_domain, logs=tmp_path)
    text = finished(process, timeout_s=60.0)
    assert process.returncode != 0
    assert 'rviz2 is not installed' in text
    assert 'process started' not in text, 'a viewer would be left behind'
