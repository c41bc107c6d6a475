"""SQLite files of a bag, complete or not: plain tables alone, no views, joins or sorting."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.meter import Stopwatch
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.bag_storage import BagTopic, StoredMessage, parse_offered_qos

_MIN_ROW_BYTES = 4
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The last comes where SQLite quotes a damaged file."""
_STEPS, _STEPS_PER_S = 100_000, 20_000_000
"""Instructions of SQLite between two looks at how many are left, and those that count as a second;
asking the clock at each row would take as long as reading it."""
_MAX_TOPICS = 100_000
_NEAR_ROWS = 1000
"""Behind a damaged row so many are tried one by one, then in steps that double."""
_MAX_ROW = 2**62
_MOST_NAMED = 5
"""Faults that are named."""
_ODD_ROW = 'a row of "messages" does not hold numbers and bytes'
_SAFE = ('trusted_schema=OFF', 'query_only=ON', 'cell_size_check=ON', 'mmap_size=0')


class _Steps:
    """Remaining steps that SQLite may execute."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._left = allowance().time_s(size_bytes) * _STEPS_PER_S / _STEPS

    def none_left(self) -> bool:
        """Count steps; returning true makes SQLite abort with an error."""
        self._left -= 1
        return self._left < 0

    def check(self) -> None:
        """Raise LimitError if the limit was reached."""
        if self._left < 0:
            raise exceeded(self._path, 'SQLite takes too long to read it', 'seconds')


class SqliteStorage:
    """A .db3 file, unchanged, with its -wal file; if `recovered`, rows come as written."""

    def __init__(self, path: Path, *, recovered: bool) -> None:
        self._path, self._recovered = path, recovered
        self._size_bytes = path.stat().st_size
        self.cut_off = f'{path.name} was not closed by its recorder' if recovered else ''
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        file, mode = path, 'mode=ro&immutable=1'
        if write_ahead_log(path):
            # SQLite puts the log into the database when it reads it; that is done to a copy.
            self._copy = tempfile.TemporaryDirectory(prefix='osmabench_bag_')
            file, mode = Path(self._copy.name) / path.name, 'mode=rw'
            shutil.copyfile(path, file)
            shutil.copyfile(_log_of(path), _log_of(file))
            self._size_bytes += _log_of(path).stat().st_size
        self._uri = f'{file.absolute().as_uri()}?{mode}'
        self.span_ns: tuple[int, int] | None = None
        try:
            self._names = self._read_topics()
            self.topics = self._counted()
        except BaseException:
            self.close()
            raise

    def messages(
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages, by time if the file is complete and sound."""
        numbers = [
            number
            for number, topic in self._names.items()
            if topics is None or topic.topic in topics
        ]
        where = f'topic_id IN ({",".join(map(str, numbers))})'
        if start_ns is not None:
            where += f' AND timestamp >= {start_ns:d}'
        if stop_ns is not None:
            where += f' AND timestamp < {stop_ns:d}'
        columns = 'rowid, topic_id, timestamp, data'
        query = f'SELECT {columns} FROM messages{{}} WHERE {where}{{}} ORDER BY '  # noqa: S608 - numbers only
        left = self._size_bytes
        for number, log_ns, data in self._rows(query):
            topic = self._names.get(number) if isinstance(number, int) else None
            if topic is None or not _is_time(log_ns) or not isinstance(data, bytes):
                self._note(_ODD_ROW)
                continue
            left -= len(data)
            if left < 0:
                self._note('it is damaged: its messages are larger than itself')
                return
            yield StoredMessage(topic.topic, topic.message_type, log_ns, data)

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self._copy is not None:
            self._copy.cleanup()

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query over all messages; damaged rows are left out and noted."""
        steps = _Steps(self._path, self._size_bytes)
        left, after, failures = self._size_bytes // _MIN_ROW_BYTES, -1, 0
        by_time = not self._recovered
        try:
            with closing(self._connect(steps)) as database:
                while after < _MAX_ROW:
                    try:
                        text = self._ordered(database, query, after, by_time=by_time)
                        for number, *row in database.execute(text):
                            if left <= 0:
                                self._note('it is damaged: it has more rows than bytes')
                                return
                            left, failures = left - 1, 0
                            after = max(after, number) if isinstance(number, int) else after
                            yield tuple(row)
                        return
                    except _ERRORS as error:
                        steps.check()
                        if not failures:
                            self._note(f'it is damaged behind row {max(after, 0)}: {error}')
                        if not by_time:
                            after += 2 ** max(0, failures - _NEAR_ROWS)
                        # The index on time may be what is damaged; the rows lie in their order.
                        by_time, failures = False, failures + 1
        except _ERRORS as error:
            steps.check()
            self._note(str(error))

    def _ordered(
        self, database: sqlite3.Connection, query: str, after: int, *, by_time: bool
    ) -> str:
        """Return the query in an order that SQLite gets without sorting on disk."""
        rest = f' AND rowid > {after:d}' if after >= 0 else ''
        timed = query.format('', rest) + 'timestamp'
        if by_time:
            plan = list(database.execute(f'EXPLAIN QUERY PLAN {timed}'))
            by_time = not any('TEMP B-TREE' in str(row[3]) for row in plan)
        return timed if by_time else query.format(' NOT INDEXED', rest) + 'rowid'

    def _connect(self, steps: _Steps) -> sqlite3.Connection:
        database = sqlite3.connect(self._uri, uri=True)
        database.text_factory = lambda text: text.decode(errors='replace')
        database.set_progress_handler(steps.none_left, _STEPS)
        if hasattr(database, 'setlimit'):  # from Python 3.11 on
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(self._size_bytes, 2**20))
            database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for setting in _SAFE:
            database.execute(f'PRAGMA {setting}')
        if self._recovered:
            # Otherwise SQLite refuses a file that is shorter than its header says.
            database.execute('PRAGMA writable_schema=ON')
        return database

    def _read_topics(self) -> dict[int, BagTopic]:
        steps = _Steps(self._path, self._size_bytes)
        with closing(self._connect(steps)) as database:
            columns = _columns(database, 'topics')
            _columns(database, 'messages')
            column = 'offered_qos_profiles' if 'offered_qos_profiles' in columns else "''"
            rows = database.execute(f'SELECT id, name, type, {column} FROM topics')  # noqa: S608 - one of two constants
            topics = [row for _, row in zip(range(_MAX_TOPICS), rows, strict=False)]
            definitions = _definitions(database)
        found = {}
        watch = Stopwatch(self._path, self._size_bytes)
        for number, name, kind, text in topics:
            if isinstance(number, int) and isinstance(name, str) and isinstance(kind, str):
                with watch.running():
                    qos = parse_offered_qos(text)
                found[number] = BagTopic(name, kind, 0, qos, definitions.get(kind, ''))
            else:
                self._note('a row of "topics" does not hold a number and names')
        return found

    def _counted(self) -> tuple[BagTopic, ...]:
        counts: Counter[int] = Counter()
        query = 'SELECT rowid, topic_id, timestamp FROM messages{} WHERE 1{} ORDER BY '
        for number, log_ns in self._rows(query):
            if isinstance(number, int) and _is_time(log_ns):
                counts[number] += 1
                first_ns, last_ns = self.span_ns or (log_ns, log_ns)
                self.span_ns = min(first_ns, log_ns), max(last_ns, log_ns)
            else:
                self._note(_ODD_ROW)
        return tuple(
            BagTopic(item.topic, item.message_type, counts[number], item.qos, item.definition)
            for number, item in self._names.items()
        )

    def _note(self, fault: str) -> None:
        """Note a fault, once."""
        if fault not in self.cut_off and self.cut_off.count('; ') < _MOST_NAMED:
            text = f'{self._path.name}: {fault}'
            self.cut_off = f'{self.cut_off}; {text}' if self.cut_off else text


def open_sqlite(path: Path) -> SqliteStorage:
    """Open a database, complete or not; SequenceError if its topics cannot be read."""
    try:
        if write_ahead_log(path):
            return SqliteStorage(path, recovered=True)
        try:
            return SqliteStorage(path, recovered=False)
        except _ERRORS:
            return SqliteStorage(path, recovered=True)
    except (*_ERRORS, OSError) as error:
        raise SequenceError(
            f'{path} holds no list of topics that can be read: {error}; it was cut off too '
            'early, or is no bag'
        ) from error


def write_ahead_log(path: Path) -> bool:
    """Return whether a database has content in its write-ahead log."""
    log = _log_of(path)
    return log.exists() and log.stat().st_size > 0


def _log_of(path: Path) -> Path:
    return path.with_name(f'{path.name}-wal')


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    """Return the columns of a table with stored, not computed, values."""
    kinds = list(
        database.execute(
            'SELECT type, typeof(rootpage), rootpage > 0 FROM sqlite_master '
            'WHERE lower(name) = ?', (table,)
        )
    )  # fmt: skip
    columns = list(database.execute(f'PRAGMA table_xinfo({table})'))
    if kinds != [('table', 'integer', 1)] or any(column[6] for column in columns):
        raise sqlite3.DatabaseError(f'"{table}" is no plain table')
    return [str(column[1]) for column in columns]


def _definitions(database: sqlite3.Connection) -> dict[str, str]:
    try:
        _columns(database, 'message_definitions')
        rows = database.execute(
            'SELECT topic_type, encoded_message_definition FROM message_definitions'
        )
        found = [row for _, row in zip(range(_MAX_TOPICS), rows, strict=False)]
    except _ERRORS:
        return {}  # before Iron there is no such table
    return {kind: text for kind, text in found if isinstance(kind, str) and isinstance(text, str)}


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and value >= 0
