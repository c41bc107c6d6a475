"""What the runner notes of a run for its report."""

from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy')
pytestmark = pytest.mark.ros

from osmabench_ros.msg import FrameAck, RunState, SemanticMap

from osmabench_ros.bringup.runner.observer import RunObserver


@pytest.fixture
def observer(ros_domain: int) -> Iterator[RunObserver]:
    times = iter([100.0, 105.0, 147.5])
    made = RunObserver(ros_domain, 1.0, lambda: next(times))
    yield made
    made.close()


def test_an_acknowledgement_that_comes_again_counts_once(observer: RunObserver) -> None:
    message = FrameAck(participant='mapper', mapped=True)
    for sec in (0, 1, 1):
        message.header.stamp.sec = sec
        observer.on_ack(message)
    assert {item.name: item.received for item in observer.participation()} == {'mapper': 2}


def test_the_final_map_is_timed_from_the_end_of_the_frames(observer: RunObserver) -> None:
    observer.on_state(RunState(state=RunState.STATE_FINISHED))
    assert observer.final_map_s is None
    # Published again, as latched topics are.
    observer.on_state(RunState(state=RunState.STATE_FINISHED))
    observer.on_map(SemanticMap(participant='mapper', is_final=True))
    assert observer.final_map_s == 47.5
