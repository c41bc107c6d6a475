"""metadata.yaml of rosbag2, versions 1 to 9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmabench_ros.base.limits.documents import read_yaml
from osmabench_ros.errors import OsmabenchError, SequenceError

if TYPE_CHECKING:
    from osmabench_ros.sequences.recording_options import RecordedTopic

METADATA_FILE = 'metadata.yaml'
ROOT = 'rosbag2_bagfile_information'


@dataclass(frozen=True)
class BagMetadata:
    """What is read of metadata.yaml; before version 8 the distribution is guessed by version."""

    files: tuple[str, ...] = ()
    distribution: str = ''
    fault: str = ''


def read_metadata(folder: Path) -> BagMetadata:
    """Read the metadata of a bag; one that is missing or damaged is no error, but a fault."""
    path = folder / METADATA_FILE
    if not path.exists():
        return BagMetadata(fault=f'{METADATA_FILE} is missing')
    try:
        document = read_yaml(path, SequenceError)
    except OsmabenchError as error:
        return BagMetadata(fault=str(error))
    content = document.get(ROOT) if isinstance(document, Mapping) else None
    if not isinstance(content, Mapping):
        return BagMetadata(fault=f'{METADATA_FILE} holds no "{ROOT}"')
    names = content.get('relative_file_paths')
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return BagMetadata(fault=f'{METADATA_FILE} names no files')
    # Before version 4 the paths began with the name of the folder; none may lead out of it.
    files = tuple(Path(name).name for name in names)
    return BagMetadata(files, _distribution(content))


def _distribution(content: Mapping[str, Any]) -> str:
    named = content.get('ros_distro')
    if named and isinstance(named, str):
        return named
    version = content.get('version')
    return 'humble' if isinstance(version, int) and version <= 5 else 'iron'


@dataclass
class FileSummary:
    """One file of a recording as far as it is written; `size_bytes` is set once it is finished."""

    name: str
    start_ns: int
    end_ns: int
    counts: Counter[str] = field(default_factory=Counter)
    size_bytes: int = 0

    def count(self, topic: str, log_ns: int) -> None:
        """Count a message."""
        self.counts[topic] += 1
        self.start_ns = min(self.start_ns, log_ns)
        self.end_ns = max(self.end_ns, log_ns)

    def to_metadata(self) -> dict[str, Any]:
        """Return the entry under `files`."""
        return {
            'path': self.name,
            'starting_time': {'nanoseconds_since_epoch': self.start_ns},
            'duration': {'nanoseconds': self.end_ns - self.start_ns},
            'message_count': self.counts.total(),
        }


def metadata_document(
    files: Sequence[FileSummary], topics: Iterable[RecordedTopic], distribution: str
) -> dict[str, Any]:
    """Return metadata.yaml of version 9 for MCAP `files` in order, at least one."""
    start_ns = min(item.start_ns for item in files)
    end_ns = max(item.end_ns for item in files)
    counts = sum((item.counts for item in files), Counter[str]())
    return {
        ROOT: {
            'version': 9,
            'storage_identifier': 'mcap',
            'duration': {'nanoseconds': end_ns - start_ns},
            'starting_time': {'nanoseconds_since_epoch': start_ns},
            'message_count': sum(counts.values()),
            'topics_with_message_count': [_topic_entry(item, counts) for item in topics],
            'compression_format': '',
            'compression_mode': '',
            'relative_file_paths': [item.name for item in files],
            'files': [item.to_metadata() for item in files],
            'custom_data': None,
            'ros_distro': distribution,
        }
    }


def _topic_entry(topic: RecordedTopic, counts: Counter[str]) -> dict[str, Any]:
    return {
        'topic_metadata': {
            'name': topic.topic,
            'type': topic.message_type,
            'serialization_format': 'cdr',
            'offered_qos_profiles': [item.to_metadata() for item in topic.qos],
            'type_description_hash': topic.type_hash,
        },
        'message_count': counts[topic.topic],
    }
