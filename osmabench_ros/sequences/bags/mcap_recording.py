"""Writes received messages as a rosbag2 folder of MCAP files, in a thread that a queue feeds."""

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.files import check_folder, claim_folder, write_text
from osmabench_ros.errors import RunError, SequenceError, needing
from osmabench_ros.sequences.bags.bag_storage import METADATA_FILE, ROOT
from osmabench_ros.sequences.bags.recording_report import RecordedTopic, RecordingSettings

# About one frame; the most that is lost if the recorder is killed.
CHUNK_BYTES = 4 * 2**20


class RecordingFile:
    """A file being written; a disk that fails raises an OSError."""

    def __init__(self, path: Path, start_ns: int, compression: Any) -> None:
        from mcap.writer import Writer

        self.name = path.name
        self.start_ns = start_ns
        self.end_ns = start_ns
        self.counts: Counter[str] = Counter()
        # Messages that are only in memory, repeated ones aside.
        self.unwritten: Counter[str] = Counter()
        self._channels: dict[str, int] = {}
        self._file = path.open('xb')
        self._writer = Writer(self._file, chunk_size=CHUNK_BYTES, compression=compression)
        self._writer.start(profile='ros2', library='osmabench_ros')
        self.written_bytes = self._file.tell()
        # Estimated size once the current chunk is written.
        self.size_bytes = self.written_bytes

    def put(
        self, topic: RecordedTopic, log_ns: int, publish_ns: int, data: bytes, repeated: bool
    ) -> None:
        """Write a message, with its definition if it is the first of its topic."""
        name = topic.topic
        self.unwritten[name] += not repeated
        self.counts[name] += 1
        self.start_ns, self.end_ns = min(self.start_ns, log_ns), max(self.end_ns, log_ns)
        if name not in self._channels:
            definition = topic.definition.encode()
            schema = self._writer.register_schema(topic.message_type, 'ros2msg', definition)
            profiles = yaml.safe_dump([item.to_metadata() for item in topic.qos])
            about = {'offered_qos_profiles': profiles, 'topic_type_hash': topic.type_hash}
            self._channels[name] = self._writer.register_channel(name, 'cdr', schema, about)
        self.size_bytes += len(data)
        self._writer.add_message(self._channels[name], log_ns, data, publish_ns)
        if self._file.tell() != self.written_bytes:
            self.flush()

    def flush(self) -> None:
        """Write the current chunk, so that a kill loses nothing older."""
        self._writer.flush()
        self.size_bytes = self.written_bytes = self._file.tell()
        self.unwritten.clear()

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write the last chunk and the index, and close the file."""
        self.flush()
        self._writer.add_metadata('rosbag2', {'serialized_metadata': yaml.safe_dump(metadata)})
        self._writer.finish()
        self.written_bytes = self._file.tell()
        self._file.close()
        del self._writer  # its index would fill the memory in a long recording

    def abandon(self) -> None:
        """Close a file that cannot be written, at the end of its last whole chunk."""
        self.counts -= self.unwritten
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.truncate(self._file.name, self.written_bytes)


def _span(start_ns: int, end_ns: int, count: int) -> dict[str, Any]:
    return {
        'starting_time': {'nanoseconds_since_epoch': start_ns},
        'duration': {'nanoseconds': end_ns - start_ns},
        'message_count': count,
    }


class McapRecording:
    """An open recording of NAME_0.mcap, NAME_1.mcap … and metadata.yaml.

    One thread writes; another may announce topics.
    """

    def __init__(
        self, directory: Path, settings: RecordingSettings, distribution: str = ''
    ) -> None:
        with needing('recording needs mcap and zstandard', extra('bags')):
            import zstandard  # noqa: F401 - mcap needs it for its default compression
            from mcap.writer import CompressionType
        self._compression = CompressionType[settings.compression.upper()]
        self._directory, self._settings = directory, settings
        self._distribution = distribution
        check_folder(directory)
        claim_folder(directory)
        self._topics: dict[str, RecordedTopic] = {}
        # Publish time and data of the last messages of latched topics.
        self._latched: dict[str, deque[tuple[int, bytes]]] = {}
        self.counts: Counter[str] = Counter()
        # Messages of the chunk at which the disk failed.
        self.lost: Counter[str] = Counter()
        # The files that are finished.
        self.files: list[RecordingFile] = []
        self._current: RecordingFile | None = None

    @property
    def bytes_written(self) -> int:
        """Size of all files on disk."""
        files = [*self.files, self._current] if self._current else self.files
        return sum(item.written_bytes for item in files)

    def add_topic(self, topic: RecordedTopic) -> None:
        """Announce a topic, or update it if publishers with other QoS appear."""
        if topic.repeat and topic.topic not in self._latched:
            self._latched[topic.topic] = deque(maxlen=topic.repeat)
        self._topics[topic.topic] = topic

    def write(self, topic: str, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a message of an announced topic; SequenceError if the disk is full or fails."""
        with self._naming_disk():
            current = self._get_file(log_ns)
            self.counts[topic] += 1
            current.put(self._topics[topic], log_ns, publish_ns, data, False)
        if topic in self._latched:
            self._latched[topic].append((publish_ns, data))

    def flush(self) -> None:
        """Write the current chunk, so that a kill loses nothing older; raises as `write`."""
        if self._current is not None:
            with self._naming_disk():
                self._current.flush()

    def close(self) -> None:
        """Finish the file and metadata.yaml; idempotent; SequenceError if the disk is full."""
        with self._naming_disk():
            if self._current is None and not self.files:
                self._get_file(0)  # a bag without messages is a bag
            self._finish_file()

    def _get_file(self, log_ns: int) -> RecordingFile:
        """Return the current file, or a new one if there is none, or it is full."""
        current, settings = self._current, self._settings
        if current is not None and (
            0 < settings.max_file_bytes <= current.size_bytes
            or 0 < settings.max_file_s * 1e9 <= log_ns - current.start_ns
        ):
            self._finish_file()
        if self._current is None:
            path = self._directory / f'{self._directory.name}_{len(self.files)}.mcap'
            self._current = RecordingFile(path, log_ns, self._compression)
            for topic, latched in list(self._latched.items()):
                for publish_ns, data in latched:
                    self._current.put(self._topics[topic], log_ns, publish_ns, data, True)
        return self._current

    def _finish_file(self) -> None:
        """Finish the current file, if there is one, and describe all in metadata.yaml."""
        if self._current is not None:
            self._current.finish(self._metadata([self._current]))
            self.files.append(self._current)
            self._current = None
        text = yaml.safe_dump(self._metadata(self.files), sort_keys=False)
        write_text(self._directory / METADATA_FILE, text)

    def _metadata(self, files: Sequence[RecordingFile]) -> dict[str, Any]:
        """Return metadata.yaml of version 9 for some files in order, at least one."""
        start_ns = min(item.start_ns for item in files)
        end_ns = max(item.end_ns for item in files)
        counts = sum((item.counts for item in files), Counter[str]())
        content = {
            'version': 9,
            'storage_identifier': 'mcap',
            **_span(start_ns, end_ns, counts.total()),
            'topics_with_message_count': [
                {
                    'topic_metadata': {
                        'name': item.topic,
                        'type': item.message_type,
                        'serialization_format': 'cdr',
                        'offered_qos_profiles': [qos.to_metadata() for qos in item.qos],
                        'type_description_hash': item.type_hash,
                    },
                    'message_count': counts[item.topic],
                }
                for item in list(self._topics.values())
            ],
            'compression_format': '',
            'compression_mode': '',
            'relative_file_paths': [item.name for item in files],
            'files': [
                {'path': item.name, **_span(item.start_ns, item.end_ns, item.counts.total())}
                for item in files
            ],
            'custom_data': None,
            'ros_distro': self._distribution,
        }
        return {ROOT: content}

    @contextmanager
    def _naming_disk(self) -> Iterator[None]:
        """Keep the content of a disk that fails, and say why nothing more is written."""
        try:
            yield
        except (OSError, RunError) as error:
            current, self._current = self._current, None
            if current is not None:
                current.abandon()
                self.files.append(current)
                self.counts.subtract(current.unwritten)
                self.lost.update(current.unwritten)
            reason = error.strerror if isinstance(error, OSError) else error
            problem = f'{self._directory} cannot be written any further: {reason}'
            kept = 'the messages recorded until now are kept'
            remedy = 'Free disk space, or record to another disk'
            raise SequenceError(f'{problem}; {kept}. {remedy}') from error


# The most that a killed recorder loses, in a chunk that is not full.
FLUSH_PERIOD_S = 1.0


class BackgroundWriter:
    """Writes a recording in a thread, from a queue of `max_queue_bytes` that waits or drops."""

    def __init__(
        self, recording: McapRecording, max_queue_bytes: int, *, wait_when_full: bool
    ) -> None:
        self._recording = recording
        self._max_bytes = max_queue_bytes
        self._wait = wait_when_full
        self._queue: deque[tuple[str, int, int, bytes]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closing = False
        self.error: SequenceError | None = None
        self.dropped: Counter[str] = Counter()
        self.peak_bytes = 0
        self._thread = threading.Thread(target=self._run, name='bag_writer', daemon=True)
        self._thread.start()

    def put(self, topic: str, log_ns: int, publish_ns: int, data: bytes) -> bool:
        """Queue a message; False if it is dropped: the queue is full or writing has failed."""
        with self._changed:
            while self._wait and self._is_full(len(data)) and self.error is None:
                self._changed.wait(0.2)
            if self._is_full(len(data)) or self.error is not None or self._closing:
                self.dropped[topic] += 1
                return False
            self._queue.append((topic, log_ns, publish_ns, data))
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

    def _run(self) -> None:
        for step in (self._write_all, self._recording.close):
            try:
                step()
            except Exception as error:  # a thread that dies silently would lose everything
                problem = f'the bag cannot be written: {type(error).__name__} {error}'
                known = error if isinstance(error, SequenceError) else SequenceError(problem)
                with self._changed:
                    self.error = self.error or known
                    self.dropped.update(topic for topic, *_ in self._queue)
                    self._queue.clear()
                    self._bytes = 0
                    self._changed.notify_all()
        self.dropped.update(self._recording.lost)

    def _write_all(self) -> None:
        flushed_s = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing, FLUSH_PERIOD_S)
                item = self._queue.popleft() if self._queue else None
                if item is None and self._closing:
                    return
            if item is not None:
                self._recording.write(*item)
                with self._changed:
                    self._bytes -= len(item[-1])
                    self._changed.notify()
            if time.monotonic() - flushed_s > FLUSH_PERIOD_S:
                self._recording.flush()
                flushed_s = time.monotonic()
