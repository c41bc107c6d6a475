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
    """A topic to record.

    Parameters
    ----------
    topic : str
        Absolute name.
    message_type : str
        Such as ``sensor_msgs/msg/Image``.
    definition : str
        Text of the type and those it nests, in rosbag2's form; ros2msg.
    type_hash : str
        ``RIHS01_…``, empty if unknown.
    qos : tuple of OfferedQos
        Of its publishers.
    repeat : int
        How many of its last messages are written again at the start of each further file; 0
        unless latched.
    """

    topic: str
    message_type: str
    definition: str
    type_hash: str = ''
    qos: tuple[OfferedQos, ...] = ()
    repeat: int = 0


@dataclass(frozen=True)
class RecordingOptions:
    """How to write.

    Parameters
    ----------
    compression : Compression
        Of chunks.
    max_file_bytes : int
        A new file begins before this size is exceeded by more than a chunk; 0 for never.
    max_file_s : float
        A new file begins after so much log time; 0 for never.
    distribution : str
        Of ROS, for metadata.yaml.
    """

    compression: Compression = Compression.ZSTD
    max_file_bytes: int = 0
    max_file_s: float = 0.0
    distribution: str = ''
