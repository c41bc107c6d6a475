import numpy as np
from geometry_msgs.msg import PoseStamped

from osmabench_ros.nodes.map_viewer_node import PathTrace


def pose(x, frame='world'):
    message = PoseStamped()
    message.header.frame_id = frame
    message.pose.position.x = x
    return message


def places(trace):
    return [item.pose.position.x for item in trace.message().poses]


def test_poses_close_together_are_one():
    trace = PathTrace()
    kept = [trace.add(pose(x)) for x in (0.0, 0.01, 0.019, 0.11, np.inf, 0.3)]
    assert kept == [True, False, False, True, False, True]
    assert places(trace) == [0.0, 0.11, 0.3]


def test_the_newest_of_a_long_way_are_kept():
    trace = PathTrace(max_poses=3)
    for x in range(5):
        trace.add(pose(float(x)))
    assert places(trace) == [2.0, 3.0, 4.0]


def test_another_frame_starts_another_path():
    trace = PathTrace()
    trace.add(pose(0.0))
    trace.add(pose(5.0, 'map'))
    assert places(trace) == [5.0]
    assert trace.message().header.frame_id == 'map'
