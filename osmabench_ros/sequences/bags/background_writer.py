"""Queues messages without blocking and writes them in a thread."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import NamedTuple

from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.mcap_recording import McapRecording
from osmabench_ros.sequences.bags.recording_report import RecordedTopic

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
