"""Maps that do not arrive as they were announced, and topics with a second publisher."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.slow]
pytest.importorskip('rclpy')

from lifecycle_msgs.msg import Transition
from nodes.node_stage import Stage, on_stage
from osmabench_ros.msg import RunState, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from rclpy.node import Node
from support.bridge_process import Audience, bridge_process, write_sequence
from support.world.maps import labelled_map

from osmabench_ros.base import contract as topics
from osmabench_ros.nodes.map_recorder_node import MapRecorderNode
from osmabench_ros.ros.messages.map_messages import map_to_messages
from osmabench_ros.ros.wire.qos import latched_profile, lossless_profile


class Recording:
    """A recorder, and a node that publishes maps to it."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder = stage, folder
        self.maps = stage.speak(SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())
        self.chunks = stage.speak(SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile())

    def publish(self, *messages: Any) -> None:
        for message in messages:
            chunk = isinstance(message, SemanticMapChunk)
            (self.chunks if chunk else self.maps).publish(message)

    def wait_for_the_end(self) -> None:
        self.stage.spin_until(lambda: self.stage.node.exit_code is not None)


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
def test_a_map_that_is_not_whole_ends_the_recorder_with_the_reason(
    messages: Callable[[], list[Any]],
    words: str,
    recording: Recording,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for message in messages():
        recording.publish(message)
        recording.stage.spin_for(0.1)
    recording.wait_for_the_end()
    assert words in capfd.readouterr().err
    assert not (recording.folder / 'map').exists()


def test_an_intermediate_map_that_does_not_come_is_one_less(recording: Recording) -> None:
    recording.publish(*missing_map(is_final=False))
    assembler = recording.stage.node.assembler
    recording.stage.spin_until(lambda: assembler.missing_chunks == 1)
    recording.stage.spin_until(lambda: assembler.missing_chunks == 0)
    assert recording.stage.node.exit_code is None


def test_a_map_of_a_topic_with_two_publishers_is_not_recorded(
    recording: Recording, capfd: pytest.CaptureFixture[str]
) -> None:
    second = Node('second')
    second.create_publisher(SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())
    node = recording.stage.node
    recording.stage.spin_until(lambda: node.count_publishers(topics.SEMANTIC_MAP) == 2)
    announcement, chunks = whole_map()
    recording.publish(announcement, *chunks)
    recording.wait_for_the_end()
    second.destroy_node()
    assert 'topic "/semantic_map" has 2 publishers: /peer and /second' in capfd.readouterr().err
    assert not (recording.folder / 'map').exists()


def test_a_second_publisher_before_frame_0_is_refused_by_name(
    ros_domain: int, ros_context: Any, tmp_path: Path
) -> None:
    audience = Audience(ros_context, lockstep=True, acknowledges=lambda _number: True)
    second = Node('second', context=ros_context)
    second.create_publisher(RunState, topics.RUN_STATE, latched_profile())
    sequence = write_sequence(tmp_path / 'room')
    settings = {'pacing': 'lockstep', 'participants': '["audience:acks"]'}
    with bridge_process(ros_domain, sequence=sequence, **settings) as bridge:
        audience.change(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
        audience.spin_until(lambda: bridge.poll() is not None)
        _, reported = bridge.communicate()
    assert 'topic "/run_state" has 2 publishers: /second and /simulator_bridge' in reported
    assert audience.frames == []
    audience.executor.shutdown()
    audience.node.destroy_node()
    second.destroy_node()
