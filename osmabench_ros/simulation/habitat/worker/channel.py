"""Between the simulator and its worker: messages over pipes, images in memory.

A message is JSON with its length before it.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import struct
import time
from typing import Any

import numpy as np

_HEADER = struct.Struct('>I')

# Images travel through shared memory, so a longer message can only be nonsense.
LARGEST_MESSAGE_BYTES = 64 * 2**20


class ChannelClosed(Exception):  # noqa: N818, it is not a fault when the other side ends
    """The other side has gone."""


class ChannelTimeout(Exception):  # noqa: N818, named for what happened
    """The other side did not answer in time."""


def send(descriptor: int, message: dict[str, Any]) -> None:
    """Write a message to a pipe; raises ChannelClosed if its reading end is closed."""
    body = json.dumps(message).encode()
    data = memoryview(_HEADER.pack(len(body)) + body)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError as error:
        raise ChannelClosed(str(error)) from error


def receive(descriptor: int, timeout_s: float | None = None) -> dict[str, Any]:
    """Read a message from a pipe; ChannelClosed if it ends or is out of step, ChannelTimeout."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    (length,) = _HEADER.unpack(_read(descriptor, _HEADER.size, deadline))
    if length > LARGEST_MESSAGE_BYTES:
        raise ChannelClosed(f'a message of {length} bytes was announced; the pipe is out of step')
    message: dict[str, Any] = json.loads(_read(descriptor, length, deadline))
    return message


def _read(descriptor: int, count: int, deadline: float | None) -> bytes:
    parts: list[bytes] = []
    while count:
        if deadline is not None:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([descriptor], [], [], left)[0]:
                raise ChannelTimeout
        part = os.read(descriptor, min(count, 2**20))
        if not part:
            raise ChannelClosed('end of file')
        parts.append(part)
        count -= len(part)
    return b''.join(parts)


# Name, type and shape of a pixel of each image; four-byte types first keep them aligned.
FIELDS = (
    ('depth', np.dtype('<f4'), ()),
    ('ids', np.dtype('<u4'), ()),
    ('unlit', np.dtype('u1'), (3,)),
    ('lit', np.dtype('u1'), (3,)),
)


def memory_bytes(width: int, height: int) -> int:
    """Return how many bytes the images of one pose take."""
    return sum(
        height * width * dtype.itemsize * (shape[0] if shape else 1) for _, dtype, shape in FIELDS
    )


def map_images(descriptor: int, width: int, height: int) -> dict[str, Any]:
    """Map a file into memory and return its images by name, each (height, width, ...)."""
    memory = mmap.mmap(descriptor, memory_bytes(width, height))
    images: dict[str, Any] = {}
    offset = 0
    for name, dtype, shape in FIELDS:
        images[name] = np.ndarray((height, width, *shape), dtype, memory, offset)
        offset += images[name].nbytes
    return images
