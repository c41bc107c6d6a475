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
    """A topic to record, with its definition in ros2msg and its ``RIHS01_…`` hash, '' if unknown.

    The last `repeat` messages are written again at the start of each further file; 0 unless
    latched.
    """

    topic: str
    message_type: str
    definition: str
    type_hash: str = ''
    qos: tuple[OfferedQos, ...] = ()
    repeat: int = 0


@dataclass(frozen=True)
class RecordingOptions:
    """How to write; at 0, `max_file_bytes` and `max_file_s` (of log time) never begin a new file.

    A file exceeds its limit of bytes by a chunk at most.
    """

    compression: Compression = Compression.ZSTD
    max_file_bytes: int = 0
    max_file_s: float = 0.0
    distribution: str = ''
