"""Writes received messages as a rosbag2 folder of MCAP files, in a thread that a queue feeds."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.files import write_text
from osmabench_ros.base.owned_folder import check_folder, claim_folder
from osmabench_ros.errors import RunError, SequenceError, needing
from osmabench_ros.sequences.bags.bag_metadata import METADATA_FILE, FileSummary, metadata_document
from osmabench_ros.sequences.bags.recording_report import RecordedTopic, RecordingSettings

FULL = (errno.ENOSPC, errno.EDQUOT)
RESERVE_BYTES = 16 * 2**20


class DiskReserve:
    """Disk space reserved in a file, to finish other files; OSError if there is not enough."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.used = False
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            self.release()
            raise
        finally:
            os.close(descriptor)

    def use(self) -> bool:
        """Free the space; false if it was freed before."""
        if self.used:
            return False
        self.used = True
        self.release()
        return True

    def release(self) -> None:
        """Give the space back."""
        with contextlib.suppress(OSError):
            self._path.unlink()


class GuardedFile:
    """A new file that goes on for a while on its recording's reserve when the disk is full."""

    def __init__(self, path: Path, reserve: DiskReserve) -> None:
        self.path = path
        self._reserve = reserve
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._position = 0

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write all data; OSError if the reserve is used up too, or the disk fails."""
        rest = memoryview(data)
        while rest:
            try:
                written = os.write(self._descriptor, rest)
            except OSError as error:
                if error.errno in FULL and self._reserve.use():
                    continue
                raise
            self._position += written
            rest = rest[written:]
        return len(data)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._position

    def flush(self) -> None:
        """Do nothing; every write goes to the kernel."""

    def close(self) -> None:
        """Close the file; harmless a second time."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass
class McapFile:
    """A file being written, with its channels and schemas so far; its writer is started."""

    file: GuardedFile
    writer: Any
    summary: FileSummary
    channels: dict[str, int] = field(default_factory=dict)
    schemas: dict[str, int] = field(default_factory=dict)
    pending_bytes: int = 0
    written_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Estimated size once the current chunk is written."""
        if self.file.tell() != self.written_bytes:
            self.written_bytes, self.pending_bytes = self.file.tell(), 0
        return self.written_bytes + self.pending_bytes

    def put(self, topic: RecordedTopic, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a message; a disk that fails raises an OSError."""
        channel = self.channels.get(topic.topic)
        if channel is None:
            channel = self.channels[topic.topic] = self._channel(topic)
        self.writer.add_message(channel, log_ns, data, publish_ns)
        self.pending_bytes += len(data)
        self.summary.count(topic.topic, log_ns)

    def _channel(self, topic: RecordedTopic) -> int:
        kind = topic.message_type
        if kind not in self.schemas:
            self.schemas[kind] = self.writer.register_schema(
                kind, 'ros2msg', topic.definition.encode()
            )
        metadata = {
            'offered_qos_profiles': yaml.safe_dump([item.to_metadata() for item in topic.qos]),
            'topic_type_hash': topic.type_hash,
        }
        number: int = self.writer.register_channel(
            topic.topic, 'cdr', self.schemas[kind], metadata
        )
        return number


CHUNK_BYTES = 4 * 2**20
"""About one frame; what is lost at most if the recorder is killed."""
LIBRARY = 'osmabench_ros'
RESERVE_FILE = '.reserve'


class McapRecording:
    """An open recording of NAME_0.mcap, NAME_1.mcap … and metadata.yaml; not thread-safe."""

    def __init__(
        self, directory: Path, settings: RecordingSettings, distribution: str = ''
    ) -> None:
        self._mcap = _mcap_writer()
        self._directory, self._settings = directory, settings
        self._distribution = distribution
        check_folder(directory)
        claim_folder(directory)
        try:
            self._reserve = DiskReserve(directory / RESERVE_FILE)
        except OSError as error:
            raise SequenceError(
                f'{directory} cannot be recorded to: {error.strerror}; free disk space or record '
                'to another folder'
            ) from error
        self._topics: dict[str, RecordedTopic] = {}
        # Publish time and data of the last messages of latched topics.
        self._latched: dict[str, deque[tuple[int, bytes]]] = {}
        self.counts: dict[str, int] = {}
        self.files: list[FileSummary] = []
        self._current: McapFile | None = None

    @property
    def bytes_written(self) -> int:
        """Size of all files on disk."""
        current = self._current.file.tell() if self._current else 0
        return sum(item.size_bytes for item in self.files) + current

    def add_topic(self, topic: RecordedTopic) -> None:
        """Announce a topic, or update it if publishers with other QoS appear."""
        self._topics[topic.topic] = topic
        self.counts.setdefault(topic.topic, 0)
        if topic.repeat and topic.topic not in self._latched:
            self._latched[topic.topic] = deque(maxlen=topic.repeat)

    def write(self, topic: str, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a message of an announced topic; SequenceError if the disk is full or fails."""
        try:
            self._file_for(log_ns).put(self._topics[topic], log_ns, publish_ns, data)
        except OSError as error:
            raise self._disk_error(error.strerror or str(error)) from error
        if topic in self._latched:
            self._latched[topic].append((publish_ns, data))
        self.counts[topic] += 1
        if self._reserve.used:
            raise self._disk_error('no space left on the disk')

    def flush(self) -> None:
        """Write the current chunk, so that a kill loses nothing older; raises as `write`."""
        if self._current is None or not hasattr(self._current.writer, 'flush'):
            return  # mcap before 1.3 has none
        try:
            self._current.writer.flush()
        except OSError as error:
            raise self._disk_error(error.strerror or str(error)) from error

    def close(self) -> None:
        """Finish the file and metadata.yaml; idempotent; SequenceError if the disk is full."""
        self._reserve.use()
        try:
            if self._current is None and not self.files:
                self._current = self._new_file(0)  # a bag without messages is a bag
            self._finish_file()
            self._write_metadata()
        except OSError as error:
            raise self._disk_error(error.strerror or str(error)) from error

    def _file_for(self, log_ns: int) -> McapFile:
        if self._current is not None and self._is_full(self._current, log_ns):
            self._finish_file()
            self._write_metadata()
        if self._current is None:
            self._current = self._new_file(log_ns)
            for topic, latched in self._latched.items():
                for publish_ns, data in latched:
                    self._current.put(self._topics[topic], log_ns, publish_ns, data)
        return self._current

    def _is_full(self, current: McapFile, log_ns: int) -> bool:
        settings = self._settings
        too_large = 0 < settings.max_file_bytes <= current.size_bytes
        span_ns = log_ns - current.summary.start_ns
        return too_large or 0 < settings.max_file_s * 1e9 <= span_ns

    def _new_file(self, log_ns: int) -> McapFile:
        name = f'{self._directory.name}_{len(self.files)}.mcap'
        file = GuardedFile(self._directory / name, self._reserve)
        writer = self._mcap.Writer(
            file,
            chunk_size=CHUNK_BYTES,
            compression=self._mcap.CompressionType[self._settings.compression.name],
        )
        writer.start(profile='ros2', library=LIBRARY)
        return McapFile(file, writer, FileSummary(name, log_ns, log_ns))

    def _finish_file(self) -> None:
        current, self._current = self._current, None
        if current is None:
            return
        self.files.append(current.summary)
        try:
            own = metadata_document(
                [current.summary], list(self._topics.values()), self._distribution
            )
            current.writer.add_metadata('rosbag2', {'serialized_metadata': yaml.safe_dump(own)})
            current.writer.finish()
        finally:
            current.summary.size_bytes = current.file.tell()
            current.file.close()

    def _write_metadata(self) -> None:
        document = metadata_document(self.files, list(self._topics.values()), self._distribution)
        try:
            write_text(self._directory / METADATA_FILE, yaml.safe_dump(document, sort_keys=False))
        except RunError as error:
            raise self._disk_error(str(error)) from error

    def _disk_error(self, reason: str) -> SequenceError:
        return SequenceError(
            f'{self._directory} cannot be written any further: {reason}; what was recorded until '
            'now is kept. Free disk space, or record to another disk'
        )


def _mcap_writer() -> Any:
    with needing('recording needs mcap and zstandard', extra('bags')):
        import mcap.writer
        import zstandard  # noqa: F401 - mcap needs it for its default compression
    return mcap.writer


FLUSH_PERIOD_S = 1.0
"""What a recorder that is killed loses at most, in a chunk that is not full."""


class _Waiting(NamedTuple):
    topic: str
    log_ns: int
    publish_ns: int
    data: bytes


class BackgroundWriter:
    """Writes a recording in a thread, from a queue of `max_queue_bytes` that waits or drops."""

    def __init__(
        self, recording: McapRecording, max_queue_bytes: int, *, wait_when_full: bool
    ) -> None:
        self._recording = recording
        self._max_bytes = max_queue_bytes
        self._wait = wait_when_full
        self._queue: deque[_Waiting | RecordedTopic] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closing = False
        self.error: SequenceError | None = None
        self.dropped: Counter[str] = Counter()
        self.waits = 0
        self.waited_s = 0.0
        self.peak_bytes = 0
        self._thread = threading.Thread(target=self._run, name='bag_writer', daemon=True)
        self._thread.start()

    def add_topic(self, topic: RecordedTopic) -> None:
        """Announce a topic before its first message."""
        with self._changed:
            self._queue.append(topic)
            self._changed.notify()

    def put(self, topic: str, log_ns: int, publish_ns: int, data: bytes) -> bool:
        """Queue a message; False if it is dropped: the queue is full or writing has failed."""
        with self._changed:
            if self._is_full(len(data)) and self._wait:
                self._wait_for_space(len(data))
            if self._is_full(len(data)) or self.error is not None or self._closing:
                self.dropped[topic] += 1
                return False
            self._queue.append(_Waiting(topic, log_ns, publish_ns, data))
            self._bytes += len(data)
            self.peak_bytes = max(self.peak_bytes, self._bytes)
            self._changed.notify()
        return True

    def close(self) -> None:
        """Write the queue and finish the bag; raises the SequenceError of a failed write."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _is_full(self, size: int) -> bool:
        return self._bytes > 0 and self._bytes + size > self._max_bytes

    def _wait_for_space(self, size: int) -> None:
        start_s = time.monotonic()
        while self._is_full(size) and self.error is None:
            self._changed.wait(0.2)
        self.waits += 1
        self.waited_s += time.monotonic() - start_s

    def _run(self) -> None:
        try:
            self._write_all()
        except SequenceError as error:
            self._fail(error)
        except Exception as error:  # a thread that dies in silence would lose everything
            self._fail(SequenceError(f'the bag cannot be written: {type(error).__name__} {error}'))
        finally:
            try:
                self._recording.close()
            except SequenceError as error:
                self._fail(error)

    def _fail(self, error: SequenceError) -> None:
        with self._changed:
            self.error = self.error or error
            for item in self._queue:
                if isinstance(item, _Waiting):
                    self.dropped[item.topic] += 1
            self._queue.clear()
            self._bytes = 0
            self._changed.notify_all()

    def _write_all(self) -> None:
        flushed_s = time.monotonic()
        while (items := self._next()) is not None:
            for item in items:
                self._write(item)
            if time.monotonic() - flushed_s > FLUSH_PERIOD_S:
                self._recording.flush()
                flushed_s = time.monotonic()

    def _write(self, item: _Waiting | RecordedTopic) -> None:
        if isinstance(item, RecordedTopic):
            self._recording.add_topic(item)
            return
        self._recording.write(*item)
        with self._changed:
            self._bytes -= len(item.data)
            self._changed.notify()

    def _next(self) -> tuple[_Waiting | RecordedTopic, ...] | None:
        """Wait for the next message, or for the time to flush; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing, FLUSH_PERIOD_S)
            if self._queue:
                return (self._queue.popleft(),)
            return None if self._closing else ()
