import numpy as np
import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('nav_msgs')

from geometry_msgs.msg import PoseStamped

from osmabench_ros.nodes.map_viewer_node import PathTrace


def pose(x: float, frame: str = 'world') -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id = frame
    message.pose.position.x = x
    return message


def places(trace: PathTrace) -> list[float]:
    return [item.pose.position.x for item in trace.message().poses]


def test_poses_close_together_are_one() -> None:
    trace = PathTrace(smallest_step_m=0.1)
    kept = [trace.add(pose(x)) for x in (0.0, 0.05, 0.09, 0.11, np.inf, 0.3)]
    assert kept == [True, False, False, True, False, True]
    assert places(trace) == [0.0, 0.11, 0.3]


def test_a_long_way_is_halved_in_resolution_not_cut() -> None:
    trace = PathTrace(max_poses=100, smallest_step_m=0.1)
    for x in np.arange(0, 1000, 0.1):
        trace.add(pose(float(x)))
    assert 40 <= len(trace) <= 100
    assert places(trace)[0] == 0.0
    assert places(trace)[-1] > 970


def test_another_frame_starts_another_path() -> None:
    trace = PathTrace()
    trace.add(pose(0.0))
    trace.add(pose(5.0, 'map'))
    assert places(trace) == [5.0]
    assert trace.message().header.frame_id == 'map'
