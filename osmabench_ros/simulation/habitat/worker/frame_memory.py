"""Layout of the memory through which images reach the simulator."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

FIELDS = (
    ('depth', np.dtype('<f4'), ()),
    ('instance', np.dtype('<u4'), ()),
    ('semantic', np.dtype('<u4'), ()),
    ('unlit', np.dtype('u1'), (3,)),
    ('lit', np.dtype('u1'), (3,)),
)
"""Name, type and shape of a pixel of each image; four-byte types first keep them aligned."""


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
