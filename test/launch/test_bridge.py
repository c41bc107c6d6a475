"""bridge.launch.py under the real ros2 launch: it publishes to any subscriber."""

import pytest
from support.ros2_launch import interrupted, ros2_launch
from support.waiting import listen

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(120)]

ARGUMENTS = (
    'goals:=2', 'image_width:=96', 'image_height:=64', 'namespace:=robot', 'participants:=listener'
)  # fmt: skip


def test_images_of_one_frame_reach_a_subscriber(tmp_path, ros_domain, spinner):
    from sensor_msgs.msg import Image

    from osmabench_ros.base import contract as topics
    from osmabench_ros.ros.qos import frame_profile

    node = spinner.make_node('listener', namespace='robot')
    heard = {
        topic: listen(node, Image, topic, frame_profile(lockstep=False))
        for topic in (topics.COLOR, topics.DEPTH)
    }
    process = ros2_launch('bridge.launch.py', *ARGUMENTS, domain=ros_domain, logs=tmp_path)
    spinner.spin_until(
        lambda: process.poll() is not None or all(len(found) > 1 for found in heard.values())
    )
    text = interrupted(process)
    stamps = [{(m.header.stamp.sec, m.header.stamp.nanosec) for m in ms} for ms in heard.values()]
    first, last = max(map(min, stamps)), min(map(max, stamps))
    color, depth = ({stamp for stamp in found if first <= stamp <= last} for found in stamps)
    assert len(color) > 0, text
    assert color == depth
    assert (heard[topics.COLOR][0].width, heard[topics.COLOR][0].height) == (96, 64)
