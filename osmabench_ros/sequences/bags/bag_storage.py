"""The files of a bag, SQLite ones with their content; topics, compression, quality of service."""

import os
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

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
    what = f'topic "{topic}": a compressed message is damaged'
    with errors_as(SequenceError, what, zstandard.ZstdError):
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
    message_count: int = 0
    qos: tuple[OfferedQos, ...] = ()
    definition: str = ''

    @property
    def latched(self) -> bool:
        """Whether a publisher kept its last message for late joiners."""
        return any(item.latched for item in self.qos)


# Topic, type, log time and serialized data, possibly compressed, of a message in a file.
StoredMessage = tuple[str, str, int, bytes]


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
# Where a folder that also holds other files keeps its bag: `ros2 bag play SEQUENCE/bag`.
INNER_FOLDER = 'bag'


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a bag or a file of one."""
    if os.path.isfile(path):
        return _is_bag_file(path)
    return bool(_bag_files(path) or _bag_files(path / INNER_FOLDER))


def files_of(path: Path) -> tuple[list[Path], str, list[str]]:
    """Return a bag's files in order, its distribution and damage; SequenceError if no bag."""
    if os.path.isfile(path):
        if not _is_bag_file(path):
            remedy = 'name a folder of a bag, or an .mcap or .db3 file'
            raise SequenceError(f'{path} is not a bag file; {remedy}')
        return [path], '', []
    folder = path if _bag_files(path) else path / INNER_FOLDER
    present = _bag_files(folder)
    if not os.path.exists(path):
        raise SequenceError(f'{path} does not exist; name a folder of a bag, or one of its files')
    if not present:
        raise SequenceError(f'{path} is not a bag: there is no .mcap or .db3 file in it')
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


# Instructions of SQLite between two looks at how many are left: one for a byte of memory.
_STEPS = 100_000

_COUNTS = (
    "SELECT topic_id, count(*), sum(typeof(timestamp) != 'integer'), min(timestamp), "
    'max(timestamp) FROM messages GROUP BY topic_id'
)


class SqliteFile:
    """A .db3 file, which is never written to; SequenceError if it is damaged."""

    cut_off = ''

    def __init__(self, path: Path) -> None:
        self._path, self._size_bytes = path, path.stat().st_size
        self.span_ns: tuple[int, int] | None = None
        with self._naming_damage(), closing(self._connect()) as database:
            self._topics = self._read_topics(database)
        self.topics = tuple(self._topics.values())

    def messages(
        self, topics: Collection[str] | None, start_ns: int, stop_ns: int
    ) -> Iterator[StoredMessage]:
        """Yield messages by time; SequenceError where the file is damaged."""
        chosen = [
            str(number)
            for number, item in self._topics.items()
            if topics is None or item.topic in topics
        ]
        query = (
            'SELECT topic_id, timestamp, data FROM messages '  # noqa: S608 - numbers only
            f'WHERE topic_id IN ({",".join(chosen)}) AND timestamp >= ? AND timestamp < ? '
            'ORDER BY timestamp'
        )
        with self._naming_damage(), closing(self._connect()) as database:
            for number, log_ns, data in database.execute(query, (start_ns, stop_ns)):
                topic = self._topics[number]
                if not isinstance(data, bytes):
                    raise ValueError('a row of "messages" holds no bytes')
                yield topic.topic, topic.message_type, log_ns, data

    def _naming_damage(self) -> AbstractContextManager[None]:
        return errors_as(
            SequenceError,
            f'{self._path} is damaged or not a bag',
            (sqlite3.Error, ValueError, TypeError, KeyError, OverflowError),
            remedy='copy it again, or let "ros2 bag reindex" rebuild the bag',
        )

    def _connect(self) -> sqlite3.Connection:
        uri = f'{self._path.absolute().as_uri()}?mode=ro&immutable=1'
        database = sqlite3.connect(uri, uri=True)
        looks = iter(range(memory_limit(self._size_bytes) // _STEPS))
        database.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
        for setting in ('trusted_schema=OFF', 'query_only=ON', 'cell_size_check=ON'):
            database.execute(f'PRAGMA {setting}')
        return database

    def _read_topics(self, database: sqlite3.Connection) -> dict[int, BagTopic]:
        _columns(database, 'messages')
        column = 'offered_qos_profiles'
        column = column if column in _columns(database, 'topics') else "''"
        rows = list(database.execute(f'SELECT id, name, type, {column} FROM topics'))  # noqa: S608 - one of two constants
        if not all(isinstance(name, str) and isinstance(kind, str) for _, name, kind, _ in rows):
            raise ValueError('a row of "topics" does not hold names')
        definitions: dict[str, str] = {}
        if _columns(database, 'message_definitions', needed=False):
            query = 'SELECT topic_type, encoded_message_definition FROM message_definitions'
            definitions.update(database.execute(query))
        counts: dict[int, int] = {}
        for number, count, odd, first_ns, last_ns in database.execute(_COUNTS):
            if odd or first_ns < 0 or number not in {row[0] for row in rows}:
                raise ValueError('a row of "messages" has no time or topic')
            counts[number] = count
            start_ns, end_ns = self.span_ns or (first_ns, last_ns)
            self.span_ns = min(start_ns, first_ns), max(end_ns, last_ns)
        profiles = parse_profiles(self._path, [text for *_, text in rows])
        return {
            number: BagTopic(name, kind, counts.get(number, 0), qos, definitions.get(kind, ''))
            for (number, name, kind, _), qos in zip(rows, profiles, strict=True)
        }


def _columns(database: sqlite3.Connection, table: str, *, needed: bool = True) -> list[str]:
    """Return the columns of a table, none if it may be missing; an error if they are computed."""
    query = 'SELECT type, rootpage > 0 FROM sqlite_master WHERE lower(name) = ?'
    kinds = list(database.execute(query, (table,)))
    columns = list(database.execute(f'PRAGMA table_xinfo({table})'))
    if not kinds and not needed:
        return []
    if kinds != [('table', 1)] or any(column[6] for column in columns):
        raise ValueError(f'"{table}" is not a plain table')
    return [str(column[1]) for column in columns]


def has_log(path: Path) -> bool:
    """Return whether a killed recorder left content in the write-ahead log of a database."""
    log = _log_of(path)
    return log.exists() and log.stat().st_size > 0


def copy_with_log(path: Path, target: Path) -> None:
    """Copy a database with the content of its write-ahead log."""
    shutil.copyfile(path, target)
    shutil.copyfile(_log_of(path), _log_of(target))
    with (
        errors_as(SequenceError, f'{path} is damaged', sqlite3.Error),
        closing(sqlite3.connect(target)) as database,
    ):
        database.execute('PRAGMA wal_checkpoint(TRUNCATE)')


def _log_of(path: Path) -> Path:
    return path.with_name(f'{path.name}-wal')
