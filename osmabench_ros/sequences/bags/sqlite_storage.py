"""SQLite files of a bag, through Python's sqlite3: plain tables, no views or computed columns."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

from osmabench_ros.base.fence import memory_limit
from osmabench_ros.errors import SequenceError, errors_as
from osmabench_ros.sequences.bags.bag_storage import BagTopic, StoredMessage, parse_profiles

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

    @property
    def topics(self) -> tuple[BagTopic, ...]:
        """Topics in the file."""
        return tuple(self._topics.values())

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
                yield StoredMessage(topic.topic, topic.message_type, log_ns, data)

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
            definitions.update(
                database.execute(
                    'SELECT topic_type, encoded_message_definition FROM message_definitions'
                )
            )
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
    kinds = list(
        database.execute(
            'SELECT type, rootpage > 0 FROM sqlite_master WHERE lower(name) = ?', (table,)
        )
    )
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
