"""Writes what a recorder hears as a rosbag2 folder of MCAP files."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from osmabench_ros.errors import MissingDependencyError, SequenceError
from osmabench_ros.sequences.bag_metadata import METADATA_FILE, FileSummary, metadata_document
from osmabench_ros.sequences.bag_qos import OfferedQos
from osmabench_ros.sequences.guarded_file import DiskReserve, GuardedFile

CHUNK_BYTES = 4 * 2**20
"""About one frame; what is lost at most if the recorder is killed."""
LIBRARY = 'osmabench_ros'
RESERVE_FILE = '.reserve'


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


@dataclass
class _Latched:
    """The last messages of a latched topic: publish time and data."""

    messages: deque[tuple[int, bytes]]


@dataclass
class _OpenFile:
    """The file being written."""

    file: GuardedFile
    writer: Any
    summary: FileSummary
    channels: dict[str, int] = field(default_factory=dict)
    schemas: dict[str, int] = field(default_factory=dict)
    pending_bytes: int = 0
    written_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """About what it will be once the chunk in progress is written."""
        if self.file.tell() != self.written_bytes:
            self.written_bytes, self.pending_bytes = self.file.tell(), 0
        return self.written_bytes + self.pending_bytes


class McapRecording:
    """An open recording; not thread-safe.

    Parameters
    ----------
    directory : Path
        Must not exist; gets NAME_0.mcap, NAME_1.mcap … and metadata.yaml.
    options : RecordingOptions
        How to write.

    Raises
    ------
    SequenceError
        If the folder exists or cannot be made, or the disk is full already.
    MissingDependencyError
        If mcap or the compression is not installed.
    """

    def __init__(self, directory: Path, options: RecordingOptions) -> None:
        self._mcap = _mcap_writer()
        self._directory, self._options = directory, options
        try:
            directory.mkdir(parents=True)
            self._reserve = DiskReserve(directory / RESERVE_FILE)
        except FileExistsError as error:
            raise SequenceError(
                f'{directory} exists; record to another folder, or remove it'
            ) from error
        except OSError as error:
            raise SequenceError(
                f'{directory} cannot be recorded to: {error.strerror}; free disk space or record '
                'to another folder'
            ) from error
        self._topics: dict[str, RecordedTopic] = {}
        self._latched: dict[str, _Latched] = {}
        self.counts: dict[str, int] = {}
        self.files: list[FileSummary] = []
        self._current: _OpenFile | None = None

    @property
    def bytes_written(self) -> int:
        """Size of all files on disk."""
        current = self._current.file.tell() if self._current else 0
        return sum(item.size_bytes for item in self.files) + current

    def add_topic(self, topic: RecordedTopic) -> None:
        """Announce a topic; again, if publishers with other QoS came."""
        self._topics[topic.topic] = topic
        self.counts.setdefault(topic.topic, 0)
        if topic.repeat and topic.topic not in self._latched:
            self._latched[topic.topic] = _Latched(deque(maxlen=topic.repeat))

    def write(self, topic: str, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a message of an announced topic.

        Parameters
        ----------
        topic : str
            Absolute name.
        log_ns, publish_ns : int
            When it was received, and its header stamp.
        data : bytes
            Serialized.

        Raises
        ------
        SequenceError
            If the disk is full or fails; `close` then still finishes the file.
        """
        try:
            current = self._file_for(log_ns)
            self._put(current, topic, log_ns, publish_ns, data)
        except OSError as error:
            raise self._disk_error(error.strerror or str(error)) from error
        if topic in self._latched:
            self._latched[topic].messages.append((publish_ns, data))
        self.counts[topic] += 1
        if self._reserve.used:
            raise self._disk_error('no space left on the disk')

    def flush(self) -> None:
        """Write the chunk in progress, so that a kill loses nothing older.

        Raises
        ------
        SequenceError
            As `write`.
        """
        if self._current is None or not hasattr(self._current.writer, 'flush'):
            return  # mcap before 1.3 has none
        try:
            self._current.writer.flush()
        except OSError as error:
            raise self._disk_error(error.strerror or str(error)) from error

    def close(self) -> None:
        """Finish the file and write metadata.yaml; harmless a second time.

        Raises
        ------
        SequenceError
            If the disk is so full that a file stays without its index; what is in it can be
            read all the same.
        """
        self._reserve.use()
        try:
            if self._current is None and not self.files:
                self._current = self._new_file(0)  # a bag without messages is a bag
            self._finish_file()
            self._write_metadata()
        except OSError as error:
            raise self._disk_error(error.strerror or str(error)) from error

    def _file_for(self, log_ns: int) -> _OpenFile:
        if self._current is not None and self._is_full(self._current, log_ns):
            self._finish_file()
            self._write_metadata()
        if self._current is None:
            self._current = self._new_file(log_ns)
            self._repeat_latched(self._current, log_ns)
        return self._current

    def _is_full(self, current: _OpenFile, log_ns: int) -> bool:
        options = self._options
        too_large = 0 < options.max_file_bytes <= current.size_bytes
        span_ns = log_ns - current.summary.start_ns
        return too_large or 0 < options.max_file_s * 1e9 <= span_ns

    def _new_file(self, log_ns: int) -> _OpenFile:
        name = f'{self._directory.name}_{len(self.files)}.mcap'
        file = GuardedFile(self._directory / name, self._reserve)
        writer = self._mcap.Writer(
            file,
            chunk_size=CHUNK_BYTES,
            compression=self._mcap.CompressionType[self._options.compression.name],
        )
        writer.start(profile='ros2', library=LIBRARY)
        return _OpenFile(file, writer, FileSummary(name, log_ns, log_ns))

    def _put(
        self, current: _OpenFile, topic: str, log_ns: int, publish_ns: int, data: bytes
    ) -> None:
        channel = current.channels.get(topic)
        if channel is None:
            channel = current.channels[topic] = self._channel(current, self._topics[topic])
        current.writer.add_message(channel, log_ns, data, publish_ns)
        current.pending_bytes += len(data)
        current.summary.count(topic, log_ns)

    def _channel(self, current: _OpenFile, topic: RecordedTopic) -> int:
        kind = topic.message_type
        if kind not in current.schemas:
            current.schemas[kind] = current.writer.register_schema(
                kind, 'ros2msg', topic.definition.encode()
            )
        metadata = {
            'offered_qos_profiles': yaml.safe_dump([item.to_metadata() for item in topic.qos]),
            'topic_type_hash': topic.type_hash,
        }
        number: int = current.writer.register_channel(
            topic.topic, 'cdr', current.schemas[kind], metadata
        )
        return number

    def _repeat_latched(self, current: _OpenFile, log_ns: int) -> None:
        for topic, latched in self._latched.items():
            for publish_ns, data in latched.messages:
                self._put(current, topic, log_ns, publish_ns, data)

    def _finish_file(self) -> None:
        current, self._current = self._current, None
        if current is None:
            return
        self.files.append(current.summary)
        try:
            own = metadata_document(
                [current.summary], list(self._topics.values()), self._options.distribution
            )
            current.writer.add_metadata('rosbag2', {'serialized_metadata': yaml.safe_dump(own)})
            current.writer.finish()
        finally:
            current.summary.size_bytes = current.file.tell()
            current.file.close()

    def _write_metadata(self) -> None:
        document = metadata_document(
            self.files, list(self._topics.values()), self._options.distribution
        )
        path = self._directory / METADATA_FILE
        temporary = path.with_suffix('.yaml.tmp')
        temporary.write_text(yaml.safe_dump(document, sort_keys=False))
        os.replace(temporary, path)

    def _disk_error(self, reason: str) -> SequenceError:
        return SequenceError(
            f'{self._directory} cannot be written any further: {reason}; what was recorded until '
            'now is kept. Free disk space, or record to another disk'
        )


def _mcap_writer() -> Any:
    try:
        import mcap.writer
        import zstandard  # noqa: F401 - mcap needs it for its default compression
    except ImportError as error:
        raise MissingDependencyError(
            f'recording needs mcap and zstandard ({error}); pip install osmabench_ros[bags]'
        ) from error
    return mcap.writer
