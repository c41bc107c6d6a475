"""recording.json: what a recorder heard, wrote and missed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from osmabench_ros.base.files import write_text
from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.errors import SequenceError

REPORT_FILE = 'recording.json'


@dataclass(frozen=True)
class TopicCount:
    """Messages of one topic that were received, written without repeats, dropped or lost.

    Dropped: the disk was too slow or full. Lost: as the middleware reports. `frames_missed` is
    None for a topic that does not carry frames.
    """

    topic: str
    message_type: str
    received: int
    written: int
    dropped: int
    lost_by_middleware: int
    frames_missed: int | None = None

    @property
    def lost(self) -> int:
        """Messages that are known to be missing, each counted once."""
        return max(self.dropped + self.lost_by_middleware, self.frames_missed or 0)


@dataclass(frozen=True)
class RecordingReport:
    """Of one recording; while it goes on `complete` is false."""

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
        """Written ones of all topics."""
        return sum(item.written for item in self.topics)

    @property
    def lost(self) -> int:
        """Messages of all topics that are known to be missing."""
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
    """Write recording.json, all of it or nothing."""
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
    """Return it with what asdict can copy."""
    return RecordingReport(**{**report.__dict__, 'skipped': dict(report.skipped)})
