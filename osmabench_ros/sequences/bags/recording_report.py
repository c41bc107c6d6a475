"""Settings of a recording, and recording.json: messages received, written and lost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator

from osmabench_ros.base.files import write_text
from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import FilePath, Strict
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.bag_qos import OfferedQos


class Compression(str, Enum):
    """Compression of the chunks of a file."""

    ZSTD = 'zstd'
    LZ4 = 'lz4'
    NONE = 'none'


@dataclass(frozen=True)
class RecordedTopic:
    """A topic to record; a further file begins with its last `repeat` messages if latched."""

    topic: str
    message_type: str
    definition: str
    type_hash: str = ''
    qos: tuple[OfferedQos, ...] = ()
    repeat: int = 0


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(
            f'"{text}" is no regular expression: {error}; write e.g. /camera/.*'
        ) from error
    return text


RegularExpression = Annotated[str, AfterValidator(_regular_expression)]


class RecordedTopics(Strict):
    """The topics of a bag, and their compression."""

    topics: tuple[str, ...] = setting(
        (), 'Topics to record; empty for those of the topic contract.'
    )
    exclude: RegularExpression = setting('', 'Regular expression of topics to leave out.')
    compression: Compression = setting(Compression.ZSTD, 'Of the bag.')


class RecordingSettings(RecordedTopics):
    """What is recorded, and how, into a new folder; files exceed their size by a chunk at most."""

    max_file_bytes: int = setting(0, 'Begin a new file at this size; 0 never.', 0, 2**50)
    max_file_s: float = setting(0.0, 'Begin a new file after these seconds; 0 never.', 0, 1e7)
    bag_directory: FilePath | None = setting(
        None, 'Folder to record to; must not exist, or be empty.'
    )
    more_topics: tuple[str, ...] = setting(
        (), 'Topics to record besides, such as the map of a stack.'
    )
    all_topics: bool = setting(False, 'Record every topic, save hidden ones.')
    queue_bytes: int = setting(2**29, 'What may wait to be written, bytes.', 2**20, 2**40)
    acks: bool = setting(False, 'Take part in lockstep: acknowledge each recorded frame.')
    discovery_period_s: float = setting(0.1, 'How often to look for new topics.', 0.01, 60)


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
    skipped: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    queue_peak_bytes: int = 0
    queue_waits: int = 0
    queue_waited_s: float = 0.0

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
        heard = sum(1 for item in self.topics if item.written)
        frames = (
            f', {_counted(self.frames_expected, "frame")} expected (by {self.frames_counted_by})'
            if self.frames_expected
            else ''
        )
        return (
            f'recorded {_counted(self.messages, "message")} of {_counted(heard, "topic")}, '
            f'{self.bytes_written / 2**20:.1f} MiB in {_counted(self.files, "file")}; '
            f'lost {self.lost}{frames}'
        )


def _counted(number: int, noun: str) -> str:
    return f'{number} {noun}{"" if number == 1 else "s"}'


def write_report(report: RecordingReport, directory: Path) -> None:
    """Write recording.json atomically."""
    path = directory / REPORT_FILE
    document: dict[str, Any] = {**asdict(_plain(report)), 'lost': report.lost}
    write_text(path, json.dumps(document, indent=1) + '\n')


def read_report(directory: Path) -> RecordingReport:
    """Read recording.json; SequenceError if there is none, or it is malformed."""
    path = directory / REPORT_FILE
    try:
        document = read_json(path, SequenceError)
        document.pop('lost')
        counts = tuple(TopicCount(**item) for item in document.pop('topics'))
        return RecordingReport(topics=counts, **document)
    except (TypeError, KeyError, AttributeError) as error:
        raise SequenceError(f'{path} is no report of a recording: {error}') from error


def _plain(report: RecordingReport) -> RecordingReport:
    """Return the report with types that asdict can copy."""
    return RecordingReport(**{**report.__dict__, 'skipped': dict(report.skipped)})
