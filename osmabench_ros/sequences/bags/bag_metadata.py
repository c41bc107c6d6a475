"""The files of a bag in order, and metadata.yaml of rosbag2, versions 1 to 9."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.errors import OsmabenchError, SequenceError
from osmabench_ros.sequences.bags.bag_storage import ZSTD_SUFFIX

if TYPE_CHECKING:
    from osmabench_ros.sequences.bags.recording_report import RecordedTopic


METADATA_FILE = 'metadata.yaml'
ROOT = 'rosbag2_bagfile_information'
LAST_OF_HUMBLE = 5


@dataclass(frozen=True)
class BagMetadata:
    """Content of metadata.yaml; before version 8 the distribution is guessed by version."""

    files: tuple[str, ...] = ()
    distribution: str = ''
    fault: str = ''


def read_metadata(folder: Path) -> BagMetadata:
    """Read the metadata of a bag; a missing or damaged file is a fault, not an error."""
    path = folder / METADATA_FILE
    if not path.exists():
        return BagMetadata(fault=f'{METADATA_FILE} is missing')
    try:
        content = read_yaml(path, SequenceError)[ROOT]
        # Before version 4 the paths began with the name of the folder; none may lead out of it.
        files = tuple(Path(name).name for name in content['relative_file_paths'])
        old = int(content.get('version') or 9) <= LAST_OF_HUMBLE
        return BagMetadata(files, str(content.get('ros_distro') or ('humble' if old else 'iron')))
    except OsmabenchError as error:
        return BagMetadata(fault=str(error))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        return BagMetadata(fault=f'{METADATA_FILE} is malformed: {error!r:.200}')


@dataclass
class FileSummary:
    """Counts of one file of a recording; `size_bytes` is set when it is finished."""

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


SUFFIXES = ('.mcap', '.db3')
INNER_FOLDER = 'bag'
"""A folder that holds a bag beside other files keeps it in here."""


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a bag or a file of one."""
    try:
        files_of(path)
    except SequenceError:
        return False
    return True


def files_of(path: Path) -> tuple[list[Path], str, list[str]]:
    """Return a bag's files in order, its distribution and faults; SequenceError if no bag."""
    if os.path.isfile(path):
        if not _is_bag_file(path):
            raise SequenceError(
                f'{path} is not a bag file; name a folder of a bag, or an .mcap or .db3 file'
            )
        return [path], '', []
    folder = path if _bag_files(path) else path / INNER_FOLDER
    present = _bag_files(folder)
    if not os.path.exists(path):
        raise SequenceError(f'{path} does not exist; name a folder of a bag, or one of its files')
    if not present:
        raise SequenceError(
            f'{path} is not a bag: there is no .mcap or .db3 file in it; name a folder of a bag, '
            'or one of its files'
        )
    metadata = read_metadata(folder)
    named = [folder / name for name in metadata.files]
    # A recorder that is killed has not written down its last file.
    files = [file for file in named if file in present]
    files += [file for file in present if file not in named]
    faults = [f'{file.name} is missing' for file in named if file not in present]
    return files, metadata.distribution, faults + ([metadata.fault] if metadata.fault else [])


def _bag_files(folder: Path) -> list[Path]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [folder / name for name in names if _is_bag_file(folder / name)]
    # name_2.mcap comes before name_10.mcap.
    return sorted(filter(os.path.isfile, found), key=lambda file: (len(file.name), file.name))


def _is_bag_file(path: Path) -> bool:
    return path.name.removesuffix(ZSTD_SUFFIX).endswith(SUFFIXES)
