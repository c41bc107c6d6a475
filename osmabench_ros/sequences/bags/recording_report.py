"""Settings of a recording, and its report: messages received, written and lost."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import write_json
from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import FilePath, Strict, validated
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.bag_storage import BagTopic

# Of the chunks of a file.
Compression = Literal['zstd', 'lz4', 'none']


@dataclass(frozen=True)
class RecordedTopic(BagTopic):
    """A topic to record; a further file begins with its last `repeat` messages if latched."""

    type_hash: str = ''
    repeat: int = 0


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        remedy = 'write e.g. /camera/.*'
        raise ValueError(f'"{text}" is not a regular expression: {error}; {remedy}') from error
    return text


RegularExpression = Annotated[str, AfterValidator(_check_pattern)]


class RecordedTopics(Strict):
    """The topics of a bag, and their compression."""

    topics: tuple[str, ...] = setting((), 'Topics to record; empty for the topic contract.')
    exclude: RegularExpression = setting('', 'Regular expression of topics to leave out.')
    compression: Compression = setting('zstd', 'Of the bag.')


class RecordingSettings(RecordedTopics):
    """Settings of a recording into a new folder; files exceed their size by a chunk at most."""

    max_file_bytes: int = setting(0, 'Begin a new file at this size; 0 never.', 0, 2**50)
    max_file_s: float = setting(0.0, 'Begin a new file after these seconds; 0 never.', 0, 1e7)
    bag_directory: FilePath | None = setting(
        None, 'Folder to record to; must not exist, or be empty.'
    )
    more_topics: tuple[str, ...] = setting(
        (), 'More topics to record, such as the map of a stack.'
    )
    all_topics: bool = setting(False, 'Record every topic, save hidden ones.')
    queue_bytes: int = setting(2**29, 'What may wait to be written, bytes.', 2**20, 2**40)
    acks: bool = setting(False, 'Take part in lockstep: acknowledge each recorded frame.')


REPORT_FILE = 'recording.json'


@dataclass(frozen=True)
class TopicCount:
    """Messages of one topic that were received, written without repeats, dropped or lost."""

    topic: str
    message_type: str
    received: int
    written: int
    dropped: int
    lost_by_middleware: int
    frames_missed: int | None = None

    @property
    def lost(self) -> int:
        """Number of messages known to be missing, each counted once."""
        return max(self.dropped + self.lost_by_middleware, self.frames_missed or 0)


@dataclass(frozen=True)
class RecordingReport:
    """Report of one recording; `complete` is false while it runs."""

    complete: bool
    error: str
    duration_s: float
    bytes_written: int
    files: int
    topics: tuple[TopicCount, ...]
    frames_expected: int
    frames_counted_by: str
    skipped: Mapping[str, str] = field(default_factory=dict)
    queue_peak_bytes: int = 0

    @property
    def messages(self) -> int:
        """Number of written messages of all topics."""
        return sum(item.written for item in self.topics)

    @property
    def lost(self) -> int:
        """Number of missing messages of all topics."""
        return sum(item.lost for item in self.topics)

    def summary(self) -> str:
        """Return one line for a log."""
        topics = sum(1 for item in self.topics if item.written)
        frames = ''
        if self.frames_expected:
            frames = f', {_count(self.frames_expected, "frame")} expected'
            frames += f' (by {self.frames_counted_by})'
        return (
            f'recorded {_count(self.messages, "message")} of {_count(topics, "topic")}, '
            f'{self.bytes_written / 2**20:.1f} MiB in {_count(self.files, "file")}; '
            f'lost {self.lost}{frames}'
        )


def _count(number: int, noun: str) -> str:
    return f'{number} {noun}{"" if number == 1 else "s"}'


def write_report(report: RecordingReport, directory: Path) -> None:
    """Write recording.json atomically."""
    write_json(directory / REPORT_FILE, {**asdict(report), 'lost': report.lost})


def read_report(directory: Path) -> RecordingReport:
    """Read recording.json; SequenceError if there is none, or it is malformed."""
    path = directory / REPORT_FILE
    data = read_json(path, SequenceError)
    return validated(RecordingReport, data, f'{path} is not a recording report', SequenceError)


# For the first frame to arrive on all topics that carry anything; it is sent again after 3 s.
SETTLE_S = 5.0
MAX_PENDING = 1000


class FrameLedger:
    """Stamps of topics with one message per frame; `repeat_topic` shows repeated frames."""

    def __init__(self, repeat_topic: str) -> None:
        self._repeat_topic = repeat_topic
        self._stamps: dict[str, array[int]] = {}
        self._expected: frozenset[str] | None = None
        self._candidates: frozenset[str] = frozenset()
        self._first_s = 0.0
        self._pending: dict[int, set[str]] = {}
        self._acknowledged_ns: int | None = None
        self._first_state: tuple[int, int] | None = None
        self._last_published = 0

    def expect(self, topics: Collection[str]) -> None:
        """Set the topics that have a publisher; the topics of the first frame carry all frames."""
        self._candidates = frozenset(topics)

    def receive(self, topic: str, stamp_ns: int, now_s: float) -> bool:
        """Note a message; True if its frame is complete, or repeated: acknowledge it then."""
        stamps = self._stamps.setdefault(topic, array('q'))
        if stamps and stamps[-1] == stamp_ns:
            return topic == self._repeat_topic and stamp_ns == self._acknowledged_ns
        stamps.append(stamp_ns)
        if not self._pending and self._expected is None:
            self._first_s = now_s
        self._pending.setdefault(stamp_ns, set()).add(topic)
        while len(self._pending) > MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        return self._is_complete(stamp_ns)

    def settle(self, now_s: float) -> list[int]:
        """Stop waiting for silent topics; return stamps to acknowledge."""
        waited = self._pending and now_s - self._first_s > SETTLE_S
        if self._expected is not None or not waited:
            return []
        self._expected = frozenset(self._pending[min(self._pending)])
        return [stamp_ns for stamp_ns in sorted(self._pending) if self._is_complete(stamp_ns)]

    def run_state(self, frames_published: int, stamp_ns: int) -> None:
        """Take the number of published frames by the run, and the newest stamp."""
        self._first_state = self._first_state or (frames_published, stamp_ns)
        self._last_published = frames_published

    def losses(self) -> tuple[int, str, dict[str, int]]:
        """Return how many frames were expected, by what, and how many each topic missed.

        They are expected by run_state, or because they are on any topic.
        """
        # The frames of a run count from when the recorder joined.
        published, stamp_ns = self._first_state or (0, 0)
        start_ns = stamp_ns if published else -(2**62)
        received = {
            topic: {stamp for stamp in stamps if stamp > start_ns}
            for topic, stamps in self._stamps.items()
        }
        expected, source = len(set().union(*received.values())), 'stamps'
        since_then = self._last_published - published
        # The last frame is out before it is counted.
        if self._first_state is not None and since_then >= expected - 1:
            expected, source = max(since_then, expected), 'run_state'
        missed = {topic: expected - len(stamps) for topic, stamps in received.items()}
        return expected, source, missed

    def _is_complete(self, stamp_ns: int) -> bool:
        topics = self._pending[stamp_ns]
        if self._expected is None and self._candidates and self._candidates <= topics:
            self._expected = frozenset(topics)
        if self._expected is None or not self._expected <= topics:
            return False
        del self._pending[stamp_ns]
        self._acknowledged_ns = stamp_ns
        return True
