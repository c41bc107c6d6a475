"""Images, cameras and pictures in messages whose numbers contradict each other."""

import struct
import zlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.recorded_frames import FRAMES

from osmabench_ros.base.contract import COLOR, DEPTH, DEPTH_INFO, TYPES
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bag_messages import make_codec, unpacked_image

MAX = 2**32 - 1


@pytest.mark.parametrize(
    ('topic', 'changes'),
    [
        (COLOR, {'width': MAX}),
        (COLOR, {'height': MAX}),
        (COLOR, {'step': MAX}),
        (COLOR, {'width': MAX, 'height': MAX, 'step': MAX}),
        (COLOR, {'width': 0}),
        (COLOR, {'height': 0, 'step': MAX, 'data': np.zeros(0, np.uint8)}),
        (COLOR, {'width': 0, 'height': 0, 'step': 0, 'data': np.zeros(0, np.uint8)}),
        (COLOR, {'encoding': '32FC1'}),
        (COLOR, {'encoding': 'x' * 10_000}),
        (COLOR, {'data': np.zeros(0, np.uint8)}),
        (DEPTH, {'encoding': 'rgb8'}),
        (DEPTH, {'step': 3, 'height': MAX}),
        (DEPTH_INFO, {'width': 0}),
        (DEPTH_INFO, {'width': MAX, 'height': MAX}),
        (DEPTH_INFO, {'k': np.full(9, np.nan)}),
        (DEPTH_INFO, {'k': np.zeros(9)}),
        (DEPTH_INFO, {'d': np.full(5, np.inf)}),
    ],
)
def test_numbers_that_contradict_each_other_are_one_error(
    topic: str, changes: dict[str, Any]
) -> None:
    codec = make_codec()
    data = {name: bytes(item) for name, item in codec.serialized(FRAMES[0]).items()}
    message = codec.typestore.deserialize_cdr(data[topic], TYPES[topic])
    for name, value in changes.items():
        setattr(message, name, value)
    data[topic] = bytes(codec.typestore.serialize_cdr(message, TYPES[topic]))
    with pytest.raises((SequenceError, ValueError)) as caught:  # a ValueError gets its name above
        codec.frame(0, FRAMES[0].stamp_ns, data)
    assert 'Traceback' not in str(caught.value)


@pytest.mark.parametrize('cut', [0, 3, 4, 20, 60])
@pytest.mark.parametrize('topic', [COLOR, DEPTH_INFO])
def test_messages_that_are_cut_off_are_one_error(topic: str, cut: int) -> None:
    codec = make_codec()
    data = {name: bytes(item) for name, item in codec.serialized(FRAMES[0]).items()}
    data[topic] = data[topic][:cut]
    with pytest.raises(SequenceError, match=topic):
        codec.frame(0, FRAMES[0].stamp_ns, data)


def png(width: int, height: int, content: bytes = b'', *chunks: tuple[bytes, bytes]) -> bytes:
    def part(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack('>I', zlib.crc32(kind + body))
        return struct.pack('>I', len(body)) + kind + body + crc

    head = part(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0))
    more = b''.join(part(*chunk) for chunk in chunks)
    data = part(b'IDAT', zlib.compress(content)) + part(b'IEND', b'')
    return b'\x89PNG\r\n\x1a\n' + head + more + data


@pytest.mark.parametrize(
    'data',
    [
        png(100_000, 100_000),
        png(2**31 - 1, 1),
        png(9000, 9000),
        png(0, 0),
        png(4, 4),
        png(4, 4, bytes(20), (b'zTXt', b'a\0\0' + zlib.compress(bytes(50_000_000)))),
        png(4, 4, bytes(20), (b'iCCP', b'a\0\0' + zlib.compress(bytes(50_000_000))))[:-20],
        png(4, 4, bytes(20))[:40],
        b'\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01',
        b'\xff\xd8' * 1000,
        b'GIF89a' + bytes(100),
        b'',
    ],
)
@pytest.mark.parametrize('form', ['rgb8; png compressed bgr8', '16UC1; compressedDepth png'])
def test_pictures_that_claim_too_much_are_refused(data: bytes, form: str) -> None:
    if 'compressedDepth' in form:
        data = bytes(12) + data
    with pytest.raises(ValueError, match=r'.'):
        unpacked_image(SimpleNamespace(format=form, data=data, header=None))
