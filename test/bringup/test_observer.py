"""The notes of the runner about a run, for its report."""

import pytest
from support.waiting import wait_until

pytest.importorskip('rclpy')
pytestmark = pytest.mark.ros

from osmabench_ros.msg import ParticipantState, RunState, SemanticMap
from sensor_msgs.msg import Image

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.runner.observer import RunObserver


@pytest.fixture
def observer(ros_domain):
    times = iter([100.0, 105.0, 147.5])
    made = RunObserver(ros_domain, 1.0, lambda: next(times))
    yield made
    made.close()


def test_participants_are_counted_by_the_bridge_and_others_by_their_maps(observer):
    counted = ParticipantState(
        participant='mapper',
        frames_acknowledged=3,
        frames_mapped=2,
        processing_time_mean=0.5,
        latency_p50=float('nan'),
    )
    observer.on_state(RunState(frames_published=4, participants=[counted]))
    observer.on_map(SemanticMap(participant='other', frames_used=1))
    found = observer.participation().values()
    assert [(item.name, item.received, item.mapped, item.processing_mean_s) for item in found] == [
        ('mapper', 3, 2, 0.5),
        ('other', 1, 1, None),
    ]


def test_the_final_map_is_timed_from_the_end_of_the_frames(observer):
    observer.on_state(RunState(state=RunState.STATE_FINISHED))
    assert observer.final_map_s is None
    # Published again, as latched topics are.
    observer.on_state(RunState(state=RunState.STATE_FINISHED))
    observer.on_map(SemanticMap(participant='mapper', is_final=True))
    assert observer.final_map_s == 47.5


def test_nodes_that_read_images_of_the_ground_truth_are_noted(observer, spinner):
    node = spinner.make_node('peeping_mapper')
    for topic in (topics.COLOR, topics.SEMANTIC):
        node.create_subscription(Image, topic, print, 10)

    def look():
        observer.executor.spin_once(timeout_sec=0.05)
        observer.look_for_readers()

    wait_until(lambda: observer.readers, step=look)
    assert observer.readers == {'peeping_mapper': {topics.SEMANTIC}}
