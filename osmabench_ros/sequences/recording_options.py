"""What is recorded to a bag, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from osmabench_ros.sequences.bag_qos import OfferedQos


class Compression(str, Enum):
    """Of the chunks of a file."""

    ZSTD = 'zstd'
    LZ4 = 'lz4'
    NONE = 'none'


@dataclass(frozen=True)
class RecordedTopic:
    """A topic to record; `definition` in ros2msg, `type_hash` ``RIHS01_…`` or, if unknown, ''.

    A further file begins with the last `repeat` messages, 0 unless latched.
    """

    topic: str
    message_type: str
    definition: str
    type_hash: str = ''
    qos: tuple[OfferedQos, ...] = ()
    repeat: int = 0


@dataclass(frozen=True)
class RecordingOptions:
    """How to write; a new file begins after a number of bytes, or seconds of log time, unless 0.

    A file exceeds `max_file_bytes` by a chunk at most.
    """

    compression: Compression = Compression.ZSTD
    max_file_bytes: int = 0
    max_file_s: float = 0.0
    distribution: str = ''
