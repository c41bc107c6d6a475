"""A node without the run token cannot affect a bridge or a recorder, and errors name it."""

import array
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.slow]
pytest.importorskip('rclpy')

from lifecycle_msgs.msg import Transition
from nodes.node_stage import Stage, on_stage
from osmabench_ros.msg import FrameAck, RecordedMap, RunState, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from rclpy.node import Node
from runs.plain_room import labelled_map
from support.bridge_process import Audience, bridge_process, write_sequence

from osmabench_ros.base import contract as topics
from osmabench_ros.maps.disk.storage import read_map
from osmabench_ros.nodes.map_recorder_node import MapRecorderNode
from osmabench_ros.ros.messages.map_messages import map_to_messages
from osmabench_ros.ros.wire.qos import latched_profile, lossless_profile
from osmabench_ros.ros.wire.run_token import (
    VARIABLE,
    RunToken,
    new_token,
)

TOKEN = new_token()
FLOOD = 3000


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)


class Recording:
    """A recorder, and a node that speaks to it with or without the token."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        self.maps = stage.speak(SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())
        self.chunks = stage.speak(SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile())
        self.recorded = stage.listen(RecordedMap, topics.RECORDED_MAP, latched_profile())

    def publish(self, *messages: Any, token: str = '') -> None:
        for message in messages:
            RunToken(token).sign(message)
            chunk = isinstance(message, SemanticMapChunk)
            (self.chunks if chunk else self.maps).publish(message)

    def wait_until_ignored(self, count: int) -> None:
        health = self.stage.node.health
        self.stage.spin_until(lambda: health().values['messages_ignored'] == count)


@pytest.fixture
def recording(ros_domain: int, tmp_path: Path) -> Iterator[Recording]:
    values = {'map_directory': str(tmp_path / 'map'), 'chunk_timeout_s': 0.5}
    with on_stage(MapRecorderNode, tmp_path, ros_domain, **values) as stage:
        yield Recording(stage, tmp_path)


def whole_map(**changes: Any) -> tuple[SemanticMapMessage, list[SemanticMapChunk]]:
    announcement, chunks = map_to_messages(labelled_map(), 'mapper', is_final=True)
    for name, value in changes.items():
        setattr(announcement, name, value)
    return announcement, chunks


def junk() -> list[Any]:
    return [SemanticMapMessage()]


def false_final_map() -> list[Any]:
    announcement, chunks = whole_map(method='false')
    return [announcement, *chunks]


def bad_digest() -> list[Any]:
    return [whole_map(digest='none')[0]]


def map_that_never_comes() -> list[Any]:
    return [whole_map(payload_size=2**31, chunk_count=256, digest='a' * 64)[0]]


def poisoned_chunk() -> list[Any]:
    """The announced digest, which any node can read, with other bytes."""
    _, [chunk] = whole_map()
    chunk.data[100] ^= 1
    return [chunk]


def chunks_never_announced() -> list[Any]:
    made = []
    for number in range(10):
        data = bytes([number]) * 2**20
        digest = hashlib.sha256(data).hexdigest()
        made.append(SemanticMapChunk(digest=digest, count=9, data=array.array('B', data)))
    return made


UNSIGNED = [
    junk,
    false_final_map,
    bad_digest,
    map_that_never_comes,
    poisoned_chunk,
    chunks_never_announced,
]


def test_maps_without_the_token_neither_end_a_recorder_nor_are_recorded(
    recording: Recording, capfd: pytest.CaptureFixture[str]
) -> None:
    ignored = 0
    for token in ('', new_token()):
        for message in (message for make in UNSIGNED for message in make()):
            recording.publish(message, token=token)
            ignored += 1
            # Of announcements DDS keeps one.
            recording.wait_until_ignored(ignored)
    assert recording.stage.node.exit_code is None
    announcement, chunks = whole_map()
    recording.publish(announcement, *chunks, token=TOKEN)
    recording.stage.spin_until(lambda: bool(recording.recorded))
    assert read_map(recording.folder / 'map').header.provenance.method != 'false'
    assert RunToken(TOKEN).signed(recording.recorded[0])
    reported = capfd.readouterr().err
    assert 'messages ignored, as they lack the signature of the run token' in reported
    assert reported.count('messages ignored') < ignored


def missing_map(**changes: Any) -> list[Any]:
    return [whole_map(**changes)[0]]


def fits(change: Callable[[Any], None]) -> list[Any]:
    announcement, [chunk] = whole_map()
    change(chunk)
    return [announcement, chunk]


def longer(chunk: Any) -> None:
    chunk.data.extend(b'more')


def of_more(chunk: Any) -> None:
    chunk.count = 2


@pytest.mark.parametrize(
    ('messages', 'words'),
    [
        (lambda: missing_map(), '1 of the 1 chunks did not come of the map that mapper announced'),
        (lambda: missing_map(payload_size=2**31, chunk_count=256), '256 of the 256 chunks did'),
        (lambda: [*missing_map(), *missing_map(digest='a' * 64)], 'came after the final one'),
        (lambda: fits(longer), 'does not fit the map that mapper announced'),
        (lambda: fits(of_more), 'does not fit the map that mapper announced'),
    ],
)
def test_a_map_with_the_token_that_is_not_whole_ends_the_recorder_with_the_reason(
    messages: Callable[[], list[Any]],
    words: str,
    recording: Recording,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for message in messages():
        recording.publish(message, token=TOKEN)
        recording.stage.spin_for(0.1)
    recording.stage.spin_until(lambda: recording.stage.node.exit_code is not None)
    assert words in capfd.readouterr().err
    assert not (recording.folder / 'map').exists()


def test_an_intermediate_map_that_does_not_come_is_one_less(recording: Recording) -> None:
    recording.publish(*missing_map(is_final=False), token=TOKEN)
    assembler = recording.stage.node.assembler
    recording.stage.spin_until(lambda: assembler.missing_chunks == 1)
    recording.stage.spin_until(lambda: assembler.missing_chunks == 0)
    assert recording.stage.node.exit_code is None


def test_false_acknowledgements_do_not_move_a_run(
    ros_domain: int, ros_context: Any, tmp_path: Path
) -> None:
    """However many there are: of undeclared nodes, of old and future frames, for another node."""
    audience = Audience(ros_context, lockstep=True, acknowledges=lambda number: number != 1)
    # In the audience's own process, as the graph would end the run else.
    false = audience.node.create_publisher(FrameAck, topics.FRAME_ACK, lossless_profile())
    sequence = write_sequence(tmp_path / 'room')
    settings = {'pacing': 'lockstep', 'participants': '["audience:acks"]', 'ack_timeout_s': 3.0}
    with bridge_process(ros_domain, sequence=sequence, **settings) as bridge:
        audience.change(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
        audience.spin_until(lambda: len(audience.frames) == 2)
        stamps = [*audience.stamps_ns, 0, 2**40]
        for number in range(FLOOD):
            stamp = stamps[number % 4]
            message = FrameAck(participant=('audience', 'nobody', 'x' * 1000)[number % 3])
            message.header.stamp.sec = stamp // 10**9 % 2**31
            message.header.stamp.nanosec = stamp % 10**9
            false.publish(message)
        audience.spin_until(lambda: bridge.poll() is not None)
        assert audience.state.frames_published == 2
        assert audience.state.acks_ignored == FLOOD // 3
        _, reported = bridge.communicate()
    assert 'no acknowledgement of frame 1 from audience' in reported
    assert f'{FLOOD // 3} acknowledgements lacked the signature of the run token' in reported
    assert 'Traceback' not in reported
    audience.executor.shutdown()
    audience.node.destroy_node()


def test_an_undeclared_node_before_frame_0_is_refused_by_name(
    ros_domain: int, ros_context: Any, tmp_path: Path
) -> None:
    audience = Audience(ros_context, lockstep=True, acknowledges=lambda _number: True)
    intruder = Node('intruder', context=ros_context)
    intruder.create_publisher(RunState, topics.RUN_STATE, latched_profile())
    sequence = write_sequence(tmp_path / 'room')
    settings = {'pacing': 'lockstep', 'participants': '["audience:acks"]'}
    with bridge_process(ros_domain, sequence=sequence, **settings) as bridge:
        audience.change(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
        audience.spin_until(lambda: bridge.poll() is not None)
        _, reported = bridge.communicate()
    assert 'topic "/run_state": published by /intruder' in reported
    assert '/simulator_bridge (DDS' in reported
    assert audience.frames == []
    audience.executor.shutdown()
    audience.node.destroy_node()
    intruder.destroy_node()
