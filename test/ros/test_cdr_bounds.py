"""Untrusted messages: what is refused before it is deserialised, and at what price."""

import contextlib
import resource
import struct
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from nav_msgs.msg import Odometry
from osmabench_ros.msg import (
    EvaluationReport,
    LabelInfo,
    LightingState,
    RunInfo,
    RunState,
    SemanticMap,
    SemanticMapChunk,
)
from rclpy.serialization import serialize_message
from rosidl_parser import definition as rosidl
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from osmabench_ros.base.limits.cdr import LITTLE_ENDIAN, MAX_ELEMENTS
from osmabench_ros.errors import ContractError
from osmabench_ros.ros.wire.checked_subscription import (
    MAX_BYTES,
    MAX_MESSAGE_BYTES,
    SIZES,
    check_lengths,
    deserialize_checked,
)

TYPES = (
    CameraInfo, EvaluationReport, Image, LabelInfo, LightingState, Odometry, PointCloud2, RunInfo,
    RunState, SemanticMap, SemanticMapChunk,
)  # fmt: skip
FUZZ = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TEXT = st.text(st.characters(codec='ascii', exclude_characters='\0'), max_size=9)
NUMBERS = {
    'boolean': st.booleans(),
    'octet': st.just(b'\1'),
    'float': st.floats(width=32, allow_nan=False),
    'double': st.floats(allow_nan=False),
} | {
    f'{sign}int{bits}': st.integers(*limits)
    for bits in (8, 16, 32, 64)
    for sign, limits in (
        ('u', (0, 2**bits - 1)),
        ('', (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)),
    )
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of values for a field."""
    if isinstance(kind, rosidl.BasicType):
        return NUMBERS[kind.typename]
    if isinstance(kind, rosidl.AbstractString):
        return TEXT
    if isinstance(kind, rosidl.NamespacedType):
        module = __import__('.'.join(kind.namespaces), fromlist=[kind.name])
        return messages(getattr(module, kind.name))
    length = kind.size if isinstance(kind, rosidl.Array) else None
    items = st.lists(values(kind.value_type), min_size=length or 0, max_size=length or 3)
    if length and isinstance(kind.value_type, rosidl.BasicType):
        return items.map(lambda item: np.array(item, np.float64))
    return items


def messages(message_type: type[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of messages of a type with everything in them drawn."""
    fields = message_type.get_fields_and_field_types()
    drawn = {
        name: values(kind) for name, kind in zip(fields, message_type.SLOT_TYPES, strict=True)
    }
    return st.builds(message_type, **drawn)


ANY_MESSAGE = st.one_of([messages(kind) for kind in TYPES])


@FUZZ
@given(ANY_MESSAGE)
def test_what_ros_serialises_passes_and_comes_back(message: Any) -> None:
    data = serialize_message(message)
    assert deserialize_checked(data, type(message), 't') == message


@FUZZ
@given(ANY_MESSAGE, st.data())
def test_what_is_cut_off_is_refused(message: Any, data: st.DataObject) -> None:
    whole = serialize_message(message)
    # rosidl pads the end to four bytes, so a cut of three may lose nothing.
    cut = whole[: data.draw(st.integers(0, len(whole) - 4))]
    with pytest.raises(ContractError, match='topic "t"'):
        deserialize_checked(cut, type(message), 't')


@FUZZ
@given(ANY_MESSAGE, st.data())
def test_damage_ends_in_a_message_or_in_our_error(message: Any, data: st.DataObject) -> None:
    damaged = bytearray(serialize_message(message))
    for place in data.draw(st.lists(st.integers(0, len(damaged) - 1), min_size=1, max_size=6)):
        damaged[place] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)))
    start = time.process_time()
    with contextlib.suppress(ContractError):
        assert isinstance(deserialize_checked(bytes(damaged), type(message), 't'), type(message))
    assert time.process_time() - start < 1.0


@FUZZ
@given(st.binary(max_size=200), st.sampled_from(TYPES))
def test_noise_ends_in_a_message_or_in_our_error(noise: bytes, kind: type[Any]) -> None:
    with contextlib.suppress(ContractError):
        message = deserialize_checked(LITTLE_ENDIAN + b'\0\0' + noise, kind, 't')
        assert isinstance(message, kind)


def claims(message: Any, tail: int, count: int, size: int) -> bytes:
    """Return a message whose last sequence claims `count` elements and is `size` bytes of 0."""
    data = serialize_message(message)
    return data[: len(data) - tail] + struct.pack('<I', count) + bytes(size)


def test_a_lie_about_the_number_of_elements_costs_nothing() -> None:
    lie = claims(LabelInfo(), 4, 20_000_000, 20_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(ContractError, match=r'classes claims 20000000 elements'):
        check_lengths(lie, LabelInfo, 't')
    assert time.process_time() - start < 0.1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1000


def test_a_huge_length_of_a_string_or_of_pixels_is_refused() -> None:
    data = bytearray(serialize_message(Image(height=2, width=2, step=6, data=bytes(12))))
    for place in (12, len(data) - 16):
        lie = bytearray(data)
        lie[place : place + 4] = struct.pack('<I', 2**32 - 16)
        with pytest.raises(ContractError, match='claims 4294967280 bytes'):
            check_lengths(bytes(lie), Image, 't')


def test_the_number_of_elements_is_bounded_even_if_they_are_there() -> None:
    short = claims(LabelInfo(), 4, MAX_ELEMENTS + 1, 40 * MAX_ELEMENTS)
    with pytest.raises(ContractError, match=f'may have {MAX_ELEMENTS} elements'):
        check_lengths(short, LabelInfo, 't')


def test_a_message_larger_than_its_type_needs_is_refused_unread() -> None:
    for kind, limit in ((RunInfo, MAX_BYTES[RunInfo]), (Image, MAX_MESSAGE_BYTES)):
        with pytest.raises(ContractError, match=f'exceeds {limit}'):
            deserialize_checked(bytes(limit + 1), kind, 't')


def test_big_endian_messages_are_read_too() -> None:
    body = struct.pack('>iII4sI', 7, 9, 4, b'map\0', 0)
    body = body[:12] + b'map\0' + struct.pack('>II', 3, 2)
    body += struct.pack('>I4s', 4, b'xyz\0') + struct.pack('>BxxxI', 1, 0) + struct.pack('>I', 0)
    message = deserialize_checked(b'\0\0\0\0' + body, Image, 't')
    assert (message.header.stamp.sec, message.header.frame_id) == (7, 'map')
    assert (message.height, message.width, message.encoding) == (3, 2, 'xyz')


def test_every_number_of_rosidl_has_a_size() -> None:
    kinds = {
        kind.typename
        for message in TYPES
        for kind in message.SLOT_TYPES
        if isinstance(kind, rosidl.BasicType)
    }
    assert kinds <= SIZES.keys()
