"""Signatures of the run token: what they cover, and what a node can do without it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytestmark = pytest.mark.ros

from osmabench_ros.msg import FrameAck, RecordedMap, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from rclpy.serialization import deserialize_message, serialize_message
from runs.plain_room import labelled_map

from osmabench_ros.ros.messages.map_messages import map_to_messages
from osmabench_ros.ros.wire.run_token import VARIABLE, RunToken, TokenCheck, new_token

TOKEN = new_token()


def ack() -> FrameAck:
    message = FrameAck(participant='mapper', frame_index=3, mapped=True)
    message.header.stamp.sec, message.processing_time.nanosec = 4, 5
    return message


def announcement() -> SemanticMapMessage:
    return map_to_messages(labelled_map(), 'mapper', is_final=True)[0]


def chunk() -> SemanticMapChunk:
    return map_to_messages(labelled_map(), 'mapper', is_final=True)[1][0]


def recorded() -> RecordedMap:
    return RecordedMap(participant='mapper', uri='file:///map', is_final=True)


def poisoned(message: Any) -> None:
    message.data[7] ^= 1


def elsewhere(message: Any) -> None:
    message.graph.objects[1].box_max.z += 1.0


def set_to(**values: Any) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        for name, value in values.items():
            setattr(message, name, value)

    return change


def unchanged(_message: Any) -> None:
    """Change nothing."""


def sent(message: Any) -> Any:
    return deserialize_message(serialize_message(message), type(message))


@pytest.mark.parametrize('make', [ack, announcement, chunk, recorded])
def test_a_signature_survives_the_way_over_the_wire(make: Callable[[], Any]) -> None:
    message = make()
    RunToken(TOKEN).sign(message)
    assert RunToken(TOKEN).signed(sent(message))


@pytest.mark.parametrize(
    ('make', 'change'),
    [
        (ack, set_to(participant='evaluator')),
        (ack, set_to(frame_index=4)),
        (ack, set_to(mapped=False)),
        (announcement, set_to(is_final=False)),
        (announcement, set_to(payload_size=1)),
        (announcement, set_to(digest='0' * 64)),
        (announcement, elsewhere),
        (chunk, poisoned),
        (chunk, set_to(index=1)),
        (recorded, set_to(uri='file:///elsewhere')),
        (ack, set_to(signature=b'')),
        (ack, set_to(signature=bytes(32))),
        (ack, set_to(signature=b'x' * 100_000)),
    ],
)
def test_a_message_that_was_changed_is_not_signed(
    make: Callable[[], Any], change: Callable[[Any], None]
) -> None:
    message = make()
    RunToken(TOKEN).sign(message)
    change(message)
    assert not RunToken(TOKEN).signed(sent(message))


@pytest.mark.parametrize('make', [ack, announcement, chunk, recorded])
def test_the_token_is_not_in_what_is_published(make: Callable[[], Any]) -> None:
    message = make()
    RunToken(TOKEN).sign(message)
    data = bytes(serialize_message(message))
    assert TOKEN.encode() not in data
    assert bytes.fromhex(TOKEN) not in data
    assert not RunToken(new_token()).signed(message)


def test_an_acknowledgement_is_no_recorded_map() -> None:
    """Two types with equal bytes have other signatures."""
    one, other = FrameAck(), RecordedMap()
    RunToken(TOKEN).sign(one)
    other.signature = one.signature
    assert not RunToken(TOKEN).signed(other)


def test_without_a_token_nothing_is_signed_and_everything_counts() -> None:
    message = ack()
    RunToken('').sign(message)
    assert len(message.signature) == 0
    assert RunToken('').signed(message)


def test_the_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    message = ack()
    RunToken().sign(message)
    assert RunToken(TOKEN).signed(message)


def test_what_is_ignored_is_counted_by_topic_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    logger = SimpleNamespace(warning=lambda text, **_: reported.append(text))
    node: Any = SimpleNamespace(get_logger=lambda: logger)
    check = TokenCheck(node, RunToken(TOKEN), unsigned=['foreign'])
    good = ack()
    RunToken(TOKEN).sign(good)
    assert check.accepts('frame_ack', good, 'mapper')
    assert check.accepts('frame_ack', ack(), 'foreign')
    assert not check.accepts('frame_ack', ack(), 'mapper')
    assert not check.accepts('semantic_map', announcement(), 'mapper')
    assert not check.accepts('semantic_map', announcement(), 'mapper')
    assert (check.ignored, check.count) == ({'frame_ack': 1, 'semantic_map': 2}, 3)
    assert 'topic "semantic_map": 2 messages ignored' in reported[-1]
    assert 'token: false' in reported[-1]
