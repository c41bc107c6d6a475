"""What the runner keeps of untrusted messages."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytestmark = pytest.mark.ros

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from osmabench_ros.msg import FrameAck, RunState, SemanticMap

from osmabench_ros.bringup.runner import observer as module
from osmabench_ros.bringup.runner.observer import MAX_NAMES, MAX_TEXT, RunObserver
from osmabench_ros.ros.wire.run_token import (
    RunToken,
    new_token,
)

TOKEN = new_token()


@pytest.fixture
def observer(ros_domain: int) -> Iterator[RunObserver]:
    made = RunObserver(ros_domain, 1.0, token=TOKEN, unsigned=['foreign'])
    yield made
    made.close()


def ack(participant: str, sec: int = 0, token: str = '') -> FrameAck:
    message = FrameAck(participant=participant, mapped=True)
    message.header.stamp.sec = sec
    RunToken(token).sign(message)
    return message


def test_what_lacks_the_token_is_counted_and_not_reported(observer: RunObserver) -> None:
    observer.on_ack(ack('mapper', token=TOKEN))
    observer.on_ack(ack('foreign'))
    for _ in range(3):
        observer.on_ack(ack('mapper', 1))
        observer.on_ack(ack('undeclared'))
    observer.on_map(SemanticMap(participant='mapper', is_final=True))
    assert observer.ignored() == {'frame_ack': 6, 'semantic_map': 1}
    assert observer.final_map_from == ''
    assert {item.name: item.received for item in observer.participation()} == {
        'mapper': 1, 'foreign': 1
    }  # fmt: skip


def test_the_final_map_is_timed_from_the_end_of_the_frames(ros_domain: int) -> None:
    times = iter([100.0, 105.0, 147.5])
    made = RunObserver(ros_domain, 1.0, lambda: next(times), token=TOKEN)
    try:
        made.on_state(RunState(state=RunState.STATE_FINISHED))
        assert made.final_map_s is None
        # Said again, as latched topics are.
        made.on_state(RunState(state=RunState.STATE_FINISHED))
        message = SemanticMap(participant='mapper', is_final=True)
        RunToken(TOKEN).sign(message)
        made.on_map(message)
        assert made.final_map_s == 47.5
    finally:
        made.close()


def test_a_flood_of_names_stamps_and_words_is_bounded(
    observer: RunObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, 'MAX_FRAMES', 10)
    for number in range(50):
        observer.on_ack(ack('foreign', number))
    assert [item.received for item in observer.participation()] == [10]
    for number in range(3 * MAX_NAMES):
        status: Any = DiagnosticStatus(level=b'\2', name=f'{number}', message='x' * 10**5)
        observer.on_diagnostics(DiagnosticArray(status=[status]))
    assert len(observer.complaints) == MAX_NAMES
    assert len(observer.complaint('1')) == MAX_TEXT
