"""The files of a bag, and their topics, messages, compression and quality of service."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from osmabench_ros.base.documents import parse_yaml, read_yaml
from osmabench_ros.base.fence import limit_error, memory_limit
from osmabench_ros.errors import OsmabenchError, SequenceError, errors_as

MAX_LOG_NS = 2**63 - 1
# Of the profiles of a file; a publisher takes some hundred.
MAX_PROFILE_CHARACTERS = 2**22

# How rosbag2 writes a duration that never ends.
_INFINITE = {'sec': 9223372036, 'nsec': 854775807}
_DURATIONS = ('deadline', 'lifespan', 'liveliness_lease_duration')

# Names of rosbag2, in the order of rmw's numbers, which bags before Jazzy hold.
_POLICIES = {
    'history': ('system_default', 'keep_last', 'keep_all', 'unknown'),
    'reliability': ('system_default', 'reliable', 'best_effort', 'unknown', 'best_available'),
    'durability': ('system_default', 'transient_local', 'volatile', 'unknown', 'best_available'),
}


@dataclass(frozen=True)
class OfferedQos:
    """The profile of a publisher, policies by rosbag2's names; `depth` is 0 if unknown."""

    reliability: str = 'reliable'
    durability: str = 'volatile'
    history: str = 'keep_last'
    depth: int = 10

    @property
    def latched(self) -> bool:
        """Whether late joiners get the last message."""
        return self.durability == 'transient_local'

    def to_metadata(self) -> dict[str, Any]:
        """Return the entry of `offered_qos_profiles` in metadata.yaml of version 9."""
        return {
            **asdict(self),
            **{name: dict(_INFINITE) for name in _DURATIONS},
            'liveliness': 'automatic',
            'avoid_ros_namespace_conventions': False,
        }


def parse_profiles(path: Path, texts: Sequence[Any]) -> list[tuple[OfferedQos, ...]]:
    """Read the profiles of the topics of a file; LimitError if they are too long."""
    named = [text if isinstance(text, str) else '' for text in texts]
    if sum(map(len, set(named))) > MAX_PROFILE_CHARACTERS:
        raise limit_error(path, 'describes the quality of service of its topics at great length')
    return [parse_offered_qos(text) for text in named]


@lru_cache(maxsize=256)
def parse_offered_qos(text: str) -> tuple[OfferedQos, ...]:
    """Read `offered_qos_profiles`, YAML with names or rmw's numbers; odd entries are left out."""
    try:
        entries = parse_yaml(text, 'offered_qos_profiles', SequenceError)
    except OsmabenchError:
        return ()
    profiles = []
    for item in entries if isinstance(entries, list) else ():
        if isinstance(item, Mapping):
            policies = {name: _policy(item.get(name), known) for name, known in _POLICIES.items()}
            depth = item.get('depth')
            profiles.append(OfferedQos(**policies, depth=depth if isinstance(depth, int) else 0))
    return tuple(profiles)


def _policy(value: Any, known: Sequence[str]) -> str:
    if isinstance(value, int):
        return known[value] if 0 <= value < len(known) else 'unknown'
    text = str(value).lower()
    return text if text in known else 'unknown'


ZSTD_SUFFIX = '.zstd'
MAGIC = b'\x28\xb5\x2f\xfd'
BLOCK_BYTES = 2**20


def unpack_message(data: bytes, topic: str) -> bytes:
    """Return a message as published; SequenceError if it is damaged, LimitError if too large."""
    if data[:4] != MAGIC:
        return data
    import zstandard

    limit = memory_limit(len(data))
    with errors_as(
        SequenceError, f'topic "{topic}": a compressed message is damaged', zstandard.ZstdError
    ):
        size = zstandard.frame_content_size(data)
        if size > limit:
            raise limit_error(f'topic "{topic}"', f'has a compressed message of {size} bytes')
        unknown = limit if size < 0 else 0
        return bytes(zstandard.ZstdDecompressor().decompress(data, max_output_size=unknown))


def unpack_file(source: Path, target: Path) -> str:
    """Unpack a file as far as possible; return why it ended early, empty if it did not."""
    import zstandard

    left = memory_limit(source.stat().st_size)
    remedy = 'free disk space, or set TMPDIR to another disk'
    with source.open('rb') as packed, target.open('wb') as plain:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        try:
            while block := reader.read(BLOCK_BYTES):
                left -= len(block)
                if left < 0:
                    raise limit_error(source, 'unpacks to far more than its size')
                with errors_as(SequenceError, f'{source} cannot be unpacked to {target.parent}',
                               OSError, remedy=remedy):  # fmt: skip
                    plain.write(block)
        except zstandard.ZstdError as error:
            return f'{source.name}: {error}'
    return ''


@dataclass(frozen=True)
class BagTopic:
    """A topic with one type; the count includes repetitions, unknown texts are empty."""

    topic: str
    message_type: str
    message_count: int
    qos: tuple[OfferedQos, ...] = ()
    definition: str = ''

    @property
    def latched(self) -> bool:
        """Whether a publisher kept its last message for late joiners."""
        return any(item.latched for item in self.qos)


class StoredMessage(NamedTuple):
    """A serialized message in a file, possibly compressed."""

    topic: str
    message_type: str
    log_ns: int
    data: bytes


METADATA_FILE = 'metadata.yaml'
ROOT = 'rosbag2_bagfile_information'
LAST_OF_HUMBLE = 5


def read_metadata(folder: Path) -> tuple[list[str], str]:
    """Return the file names of a bag, and its distribution, before version 8 guessed by version.

    Raises SequenceError if metadata.yaml is missing or malformed.
    """
    path = folder / METADATA_FILE
    if not path.exists():
        raise SequenceError(f'{METADATA_FILE} is missing')
    content = read_yaml(path, SequenceError)
    caught = (TypeError, ValueError, KeyError, AttributeError)
    with errors_as(SequenceError, f'{METADATA_FILE} is malformed', *caught):
        content = content[ROOT]
        # Before version 4 the paths began with the name of the folder; none may lead out of it.
        names = [Path(name).name for name in content['relative_file_paths']]
        old = int(content.get('version') or 9) <= LAST_OF_HUMBLE
        return names, str(content.get('ros_distro') or ('humble' if old else 'iron'))


SUFFIXES = ('.mcap', '.db3')
# Where a folder that also holds other files keeps its bag.
INNER_FOLDER = 'bag'


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a bag or a file of one."""
    try:
        files_of(path)
    except SequenceError:
        return False
    return True


def files_of(path: Path) -> tuple[list[Path], str, list[str]]:
    """Return a bag's files in order, its distribution and damage; SequenceError if no bag."""
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
    try:
        names, distribution = read_metadata(folder)
    except OsmabenchError as error:
        return present, '', [str(error)]
    named = [folder / name for name in names]
    # A recorder that is killed has not written down its last file.
    files = [file for file in named if file in present]
    files += [file for file in present if file not in named]
    return files, distribution, [f'{file.name} is missing' for file in named if file not in files]


def _bag_files(folder: Path) -> list[Path]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [folder / name for name in names if _is_bag_file(folder / name)]
    # name_2.mcap comes before name_10.mcap.
    return sorted(filter(os.path.isfile, found), key=lambda file: (len(file.name), file.name))


def _is_bag_file(path: Path) -> bool:
    return path.name.removesuffix(ZSTD_SUFFIX).endswith(SUFFIXES)
