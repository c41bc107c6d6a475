"""Bags made to harm: one clear error, or named damage, within bounded memory and time."""

import resource
import sqlite3
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lz4.frame
import numpy as np
import pytest
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.records import Channel, Chunk, ChunkIndex, Footer, Header, Message, Schema, Statistics
from rosbags.rosbag2 import StoragePlugin
from support.bag_files import write_bag

from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import LimitError, OsmabenchError, OsmabenchWarning, SequenceError
from osmabench_ros.sequences.bags.bag import open_bag

STRING = 'std_msgs/msg/String'
TEXT = b'\0\1\0\0\6\0\0\0hello\0'


def read(path: Path) -> tuple[list[Any], str]:
    """Return all messages that a bag gives, and what it says is wrong."""
    with open_bag(path) as bag:
        messages = [
            (item.topic, item.header_stamp_ns, item.deserialise()) for item in bag.messages()
        ]
        return messages, bag.cut_off


def built(*records: Any) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return builder.end()


def schema(number: int = 1, name: str = STRING, text: str = 'string data\n') -> Schema:
    return Schema(id=number, name=name, encoding='ros2msg', data=text.encode())


def channel(number: int = 1, topic: str = '/text', qos: str = '') -> Channel:
    return Channel(
        id=number, topic=topic, message_encoding='cdr', schema_id=number,
        metadata={'offered_qos_profiles': qos},
    )  # fmt: skip


def message(log_ns: int = 5, data: bytes = TEXT, number: int = 1) -> Message:
    return Message(channel_id=number, log_time=log_ns, publish_time=log_ns, sequence=0, data=data)


def chunk(content: bytes, compression: str = '', size: int | None = None, **times: int) -> Chunk:
    data = {
        '': lambda: content,
        'zstd': lambda: zstandard.ZstdCompressor().compress(content),
        'lz4': lambda: lz4.frame.compress(content),
    }[compression]()
    return Chunk(
        compression=compression, data=data, message_start_time=times.get('start', 0),
        message_end_time=times.get('end', 9), uncompressed_crc=0,
        uncompressed_size=len(content) if size is None else size,
    )  # fmt: skip


def write_mcap(
    path: Path, *records: Any, summary: bool = True, repeat: int = 1, **statistics: int
) -> Path:
    """Write records; the summary names chunks, each as often as said, and all topics."""
    head = b'\x89MCAP0\r\n' + built(Header(profile='ros2', library=''))
    body, indexes = b'', []
    for record in records:
        data = built(record)
        if isinstance(record, Chunk):
            indexes.append(
                ChunkIndex(
                    chunk_length=len(data), chunk_start_offset=len(head) + len(body),
                    compression=record.compression, compressed_size=len(record.data),
                    message_end_time=record.message_end_time, message_index_length=0,
                    message_index_offsets={}, message_start_time=record.message_start_time,
                    uncompressed_size=record.uncompressed_size,
                )
            )  # fmt: skip
        body += data
    topics = [record for record in records if isinstance(record, (Schema, Channel))]
    total = Statistics(
        attachment_count=0, channel_count=1, channel_message_counts={1: 1},
        chunk_count=len(indexes), message_count=1, message_end_time=9, message_start_time=0,
        metadata_count=0, schema_count=1,
    )  # fmt: skip
    for name, value in statistics.items():
        setattr(total, name, value)
    start = len(head) + len(body)
    tail = built(*topics, *indexes * repeat, total) if summary else b''
    footer = built(Footer(summary_start=start if summary else 0, summary_offset_start=0,
                          summary_crc=0))  # fmt: skip
    path.write_bytes(head + body + tail + footer + b'\x89MCAP0\r\n')
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write_bag(tmp_path / 'bag', StoragePlugin.SQLITE3, count=5)


def change(folder: Path, *statements: str) -> Path:
    file = next(folder.glob('*.db3'))
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return file


BOTH = pytest.mark.parametrize('summary', [True, False], ids=['indexed', 'streamed'])


@BOTH
@pytest.mark.parametrize('compression', ['', 'zstd', 'lz4'])
def test_honest_chunks_are_read(tmp_path: Path, compression: str, summary: bool) -> None:
    file = write_mcap(
        tmp_path / 'a.mcap', schema(), channel(),
        chunk(built(message(5), message(4)), compression, start=4), summary=summary,
    )  # fmt: skip
    messages, cut_off = read(file)
    assert [item[2].data for item in messages] == ['hello'] * 2
    assert cut_off == ''


READ = """
import resource, sys
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.sequences.bags.bag import open_bag
from pathlib import Path
for path in sys.argv[1:]:
    try:
        with open_bag(Path(path)) as bag:
            for item in bag.messages():
                item.deserialise()
            print(bag.cut_off)
    except OsmabenchError as error:
        print(error)
owners = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
print(max(resource.getrusage(owner).ru_maxrss for owner in owners))
"""
GIB = 2**30


def test_bombs_end_in_one_error_within_20_seconds_and_2_gib(
    tmp_path: Path, database: Path
) -> None:
    zeros, tiny = bytes(GIB), built(message(data=b'')) * 3_000_000
    computed = 'data AS (zeroblob(1000000000))'
    bombs = {'row': database, 'file': tmp_path / 'file.mcap.zstd'}
    change(
        database, 'DROP TABLE messages',
        f'CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id, timestamp, {computed})',
        'INSERT INTO messages (topic_id, timestamp) VALUES (1, 1)',
    )  # fmt: skip
    bombs['file'].write_bytes(zstandard.ZstdCompressor().compress(zeros))
    for name, item in {
        'zstd': chunk(zeros, 'zstd'),
        'lz4': chunk(zeros, 'lz4'),
        'false': chunk(zeros, 'zstd', 100),
        'tiny': chunk(tiny, 'zstd'),
    }.items():
        for summary in (True, False)[: 1 if name == 'tiny' else 2]:
            file = tmp_path / f'{name}{summary}.mcap'
            bombs[file.stem] = write_mcap(file, schema(), channel(), item, summary=summary)
    del zeros, tiny, item
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, '-c', READ, *map(str, bombs.values())],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    *lines, peak_kib = done.stdout.splitlines()
    answers = dict(zip(bombs, lines, strict=True))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 20
    assert int(peak_kib) * 1024 < 2 * GIB
    assert 'is damaged or not a bag: "messages" is not a plain table' in answers['row']
    assert 'unpacks to far more than its size' in answers['file']
    assert 'a chunk that claims 1073741824 bytes' in answers['zstdTrue']
    assert answers['zstdTrue'] == answers['zstdFalse'].replace('zstdFalse', 'zstdTrue')
    assert VARIABLE in answers['lz4True']
    assert 'does not unpack to the 100 bytes' in answers['falseFalse']
    assert 'fills the memory with messages of one time' in answers['tinyTrue']


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow 8 MiB, and 0.5 times the size of a file."""
    monkeypatch.setenv(VARIABLE, str(8 / 512))


@pytest.mark.usefixtures('small_limits')
def test_chunks_of_one_time_are_not_all_kept(tmp_path: Path) -> None:
    content = built(message(data=TEXT + bytes(3 * 2**20)))
    chunks = [chunk(content, 'zstd') for _ in range(5)]
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(), *chunks)
    with pytest.raises(LimitError, match=rf'a\.mcap has a chunk that claims.*{VARIABLE}'):
        read(file)


@pytest.mark.usefixtures('small_limits')
@pytest.mark.parametrize('sized', [True, False])
def test_compressed_messages_that_become_large(database: Path, sized: bool) -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=sized)
    with closing(sqlite3.connect(next(database.glob('*.db3')))) as connection:
        bomb = compressor.compress(TEXT + bytes(40 * 2**20))
        connection.execute('UPDATE messages SET data = ?', (bomb,))
        connection.commit()
    with pytest.raises(OsmabenchError, match='topic'):
        read(database)


def test_an_index_that_names_a_chunk_again_is_not_followed(tmp_path: Path) -> None:
    file = write_mcap(
        tmp_path / 'a.mcap', schema(), channel(), chunk(built(message())), repeat=1000
    )
    assert len(read(file)[0]) == 1


def _cut(offset: int, replacement: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        place = offset % len(data)
        return data[:place] + replacement + data[place + len(replacement) :]

    return change


FOOTER_START = -8 - 20
"""Where the footer says that the summary begins."""


@pytest.mark.parametrize(
    'change',
    [
        _cut(9, struct.pack('<Q', 2**64 - 1)),
        _cut(9, struct.pack('<Q', 2**40)),
        _cut(FOOTER_START, struct.pack('<Q', 2**64 - 1)),
        _cut(FOOTER_START, struct.pack('<Q', 9)),
        _cut(FOOTER_START, struct.pack('<Q', 3)),
        lambda data: data[: len(data) // 2],
        lambda data: data[:20],
        lambda data: b'',
        lambda data: data[:8],
        lambda data: data[:8] * 1000,
        lambda data: bytes(1000),
    ],
)
def test_lengths_and_offsets_that_lead_nowhere(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(), chunk(built(message())))
    file.write_bytes(change(file.read_bytes()))
    try:
        read(file)
    except SequenceError as error:
        assert 'a.mcap' in str(error)  # noqa: PT017 - it may be readable as well


@BOTH
@pytest.mark.parametrize(
    'content',
    [
        built(chunk(built(message()))),
        b'\5' + struct.pack('<Q', 2**63) + bytes(22),
        b'\5' + struct.pack('<Q', 3) + bytes(3),
        b'\5\0\0',
        built(message(number=77)),
        built(message(log_ns=2**64 - 1)),
        b'\3' + struct.pack('<Q', 4) + b'\xff\xff\xff\xff',
    ],
    ids=['chunk in chunk', 'long', 'short', 'cut', 'no channel', 'late', 'schema'],
)
def test_chunks_with_odd_content(tmp_path: Path, content: bytes, summary: bool) -> None:
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(), chunk(content), summary=summary)
    assert read(file)[0] == []


def test_a_log_time_beyond_63_bits_is_damage(tmp_path: Path) -> None:
    chunks = [chunk(built(message())), chunk(built(message(2**64 - 1)), start=2**64 - 1, end=9)]
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(), *chunks)
    messages, cut_off = read(file)
    assert len(messages) == 1
    assert '18446744073709551615' in cut_off


@pytest.mark.parametrize(
    'qos',
    ['[' * 20_000, '- ' * 10_000, '- {depth: ' + '9' * 10_000 + '}', 'a: &a [*a]', '!!python/x',
     '- {history: [1], reliability: {a: b}, depth: x}', '- 2001-99-99', '\0', '"' * 40_000,
     '&a [&b [1,1,1,1,1,1,1,1,1], *b, *b, *b]'],
)  # fmt: skip
def test_profiles_that_make_no_sense_are_left_out(tmp_path: Path, qos: str) -> None:
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(qos=qos), chunk(built(message())))
    assert len(read(file)[0]) == 1


IDL = (
    '=' * 80
    + '\nIDL: bad_msgs/msg/Bad\nmodule bad_msgs {{ module msg {{ {} struct Bad {{ {} }}; }}; }};'
)
BAD = {
    'nested parentheses': IDL.format(f'const long A = {"(" * 40}1{")" * 40};', 'long a;'),
    'a giant shift': IDL.format('const long A = 1 << 60000000000;', 'long a;'),
    'a shift of shifts': IDL.format('const long A = 1 << (1 << 40);', 'long a;'),
    'a giant array': IDL.format('', 'string a[2000000000];'),
    '100,000 fields': ''.join(f'int32 f{i}\n' for i in range(100_000)),
    'a definition of 2 MB': '# \n' * 700_000,
    'an array of texts': 'string[100000000] a\n',
    'an array of arrays of messages': 'bad_msgs/msg/A[9999] a\n' + '=' * 80
    + '\nMSG: bad_msgs/msg/A\nbad_msgs/msg/B[9999] b\n' + '=' * 80
    + '\nMSG: bad_msgs/msg/B\nint32 c\n',
    'itself': 'bad_msgs/msg/Bad a\n',
    'each other': 'bad_msgs/msg/A a\n' + '=' * 80 + '\nMSG: bad_msgs/msg/A\nbad_msgs/msg/Bad b\n',
    'code': 'int32 a\nstring B="""\nimport os\n',
    'code in a name': 'int32 a=1;import os\n',
    'twice the same field': 'int32 a\nint32 a\n',
    'dunder fields': 'int32 __msgtype__\nint32 __class__\n',
    'nothing': '\0\0\0',
    'a number of 10,000 digits': f'int32 A={"9" * 10_000}\nint32[{"9" * 10_000}] b\n',
    'deep brackets': IDL.format('', 'sequence<' * 2000 + 'long' + '>' * 2000 + ' a;'),
}  # fmt: skip


@pytest.mark.parametrize('text', BAD.values(), ids=BAD)
def test_a_bad_definition_costs_its_own_topic(tmp_path: Path, text: str) -> None:
    name = 'bad_msgs/msg/Bad'
    file = write_mcap(
        tmp_path / 'a.mcap', schema(), channel(), schema(2, name, text), channel(2, '/bad'),
        chunk(built(message(), message(data=TEXT, number=2))), channel_count=2,
    )  # fmt: skip
    with open_bag(file) as bag:
        good, bad = sorted(bag.messages(), key=lambda item: item.topic == '/bad')
        assert good.deserialise().data == 'hello'
        assert bag.types.stamp_ns(bad.data, name) in (None, 6)
        bag.types.type_hash(name)
        with pytest.raises(SequenceError, match='"/bad"'):
            bad.deserialise()


def test_a_standard_type_that_another_topic_redefines_is_read(tmp_path: Path) -> None:
    bad = f'std_msgs/String inner\n{"=" * 80}\nMSG: std_msgs/String\nint64 nonsense\n'
    file = write_mcap(
        tmp_path / 'a.mcap', schema(), channel(), schema(2, 'bad_msgs/msg/Bad', bad),
        channel(2, '/bad'), chunk(built(message(), message(number=2))), channel_count=2,
    )  # fmt: skip
    with open_bag(file) as bag:
        texts = [item.deserialise().data for item in bag.messages(['/text'])]
    assert texts == ['hello']


def test_a_definition_that_cannot_be_read_is_replaced_with_a_warning(tmp_path: Path) -> None:
    file = write_mcap(tmp_path / 'a.mcap', schema(text='!!'), channel(), chunk(built(message())))
    with pytest.warns(OsmabenchWarning, match=r'definition of std_msgs/msg/String .* the one of'):
        assert read(file)[0][0][2].data == 'hello'


@pytest.mark.parametrize(
    ('text', 'data'),
    [
        ('int32 class\nint32 import\n', bytes(12)),
        ('float64 A=1e999\nfloat64 B=-1e999\nint32 a\n', bytes(8)),
        ("string C='quo\"te\\'\nint32 a\n", bytes(8)),
    ],
)
def test_definitions_that_are_only_odd_are_read(tmp_path: Path, text: str, data: bytes) -> None:
    data = b'\0\1\0\0' + data[4:]
    file = write_mcap(
        tmp_path / 'a.mcap', schema(1, 'odd_msgs/msg/Odd', text), channel(),
        chunk(built(message(data=data))),
    )  # fmt: skip
    assert len(read(file)[0]) == 1


ENDLESS = (
    'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) '
    "SELECT n AS id, 1 AS topic_id, n AS timestamp, x'00010000' AS data FROM r"
)


@pytest.mark.parametrize(
    'statements',
    [
        ('DROP TABLE messages', f'CREATE VIEW messages AS {ENDLESS}'),
        ('DROP TABLE messages', f'CREATE VIEW MESSAGES AS {ENDLESS}'),
        ('DROP TABLE topics',
         "CREATE VIEW topics AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) "
         "SELECT id, 'n' AS name, 't' AS type, '' AS offered_qos_profiles FROM r"),
        ('DROP TABLE messages',
         'CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id, timestamp, '
         'data AS (zeroblob(1000000000)))'),
        ('DROP TABLE messages', 'CREATE VIRTUAL TABLE messages USING fts5(topic_id, timestamp)'),
        ('DROP TABLE messages',),
        ('DROP TABLE topics', 'CREATE TABLE topics (name)'),
    ],
    ids=['view', 'view in capitals', 'topics', 'computed', 'virtual', 'missing', 'columns'],
)  # fmt: skip
def test_views_and_computed_columns_are_refused(
    database: Path, statements: tuple[str, ...]
) -> None:
    change(database, *statements)
    with pytest.raises(SequenceError, match=r'bag\.db3 is damaged or not a bag'):
        read(database)


@pytest.mark.parametrize(
    'statement',
    [
        "UPDATE messages SET timestamp = 'soon' WHERE id = 1",
        'UPDATE messages SET timestamp = -1 WHERE id = 1',
        "UPDATE messages SET data = 'text' WHERE id = 1",
        "UPDATE messages SET topic_id = 'one' WHERE id = 1",
        "UPDATE topics SET name = x'ff' WHERE id = 1",
        "UPDATE topics SET name = CAST(x'ff41' AS TEXT) WHERE id = 1",
    ],
)
def test_rows_with_other_types_are_damage(database: Path, statement: str) -> None:
    change(database, statement)
    with pytest.raises(SequenceError, match=r'bag\.db3 is damaged.*"ros2 bag reindex"'):
        read(database)


@pytest.mark.parametrize(
    'text',
    ['[' * 100_000, 'a: ' * 10_000, '&a [*a]', '- x', '\0', '{', 'a: 9' + '9' * 5000,
     'rosbag2_bagfile_information: [1]', 'rosbag2_bagfile_information: {relative_file_paths: 3}',
     'rosbag2_bagfile_information: {relative_file_paths: [[1], {a: b}, null]}',
     'rosbag2_bagfile_information: {relative_file_paths: [/etc/passwd, ../../x, ""], '
     'ros_distro: [1]}',
     'a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nrosbag2_bagfile_information: '
     '{relative_file_paths: [*b, *b], ros_distro: *b}'],
)  # fmt: skip
def test_odd_metadata_is_a_fault(tmp_path: Path, text: str) -> None:
    folder = write_bag(tmp_path / 'bag', StoragePlugin.MCAP, count=2)
    (folder / 'metadata.yaml').write_text(text)
    messages, cut_off = read(folder)
    assert len(messages) == 6
    assert cut_off


def test_links_out_of_the_folder_are_not_read(tmp_path: Path) -> None:
    folder = write_bag(tmp_path / 'bag', StoragePlugin.MCAP, count=2)
    other = write_bag(tmp_path / 'other', StoragePlugin.MCAP, count=3)
    (folder / 'bag_1.mcap').symlink_to(other / 'other.mcap')
    (folder / 'loop.mcap').symlink_to(folder / 'loop.mcap')
    (folder / 'zero.mcap').symlink_to('/dev/zero')
    messages, cut_off = read(folder)
    assert len(messages) == 6
    assert 'bag_1.mcap leads out of the folder' in cut_off
    (folder / 'metadata.yaml').unlink()
    (folder / 'metadata.yaml').symlink_to('/dev/zero')
    assert 'metadata.yaml cannot be read: it is not an ordinary file' in read(folder)[1]


@pytest.mark.parametrize('name', ['/dev/zero', '/proc/self/mem', 'nul\0byte', 'x' * 5000])
def test_paths_that_are_no_bags(name: str) -> None:
    with pytest.raises(SequenceError):
        read(Path(name))


@pytest.mark.parametrize('storage', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_damaged_bags_give_one_error_or_less(tmp_path: Path, storage: StoragePlugin) -> None:
    folder = write_bag(tmp_path / 'bag', storage, count=3)
    file = next(file for file in folder.iterdir() if file.suffix in ('.mcap', '.db3'))
    sound, rng = file.read_bytes(), np.random.default_rng(5)
    outcomes = set()
    for _ in range(25):
        damaged = bytearray(sound)
        for place in rng.integers(0, len(sound), rng.integers(1, 9)):
            damaged[place] = rng.choice([0, 1, 127, 128, 255])
        file.write_bytes(damaged[: rng.integers(len(sound) // 2, 2 * len(sound))])
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', OsmabenchWarning)
            try:
                read(folder)
                outcomes.add('read')
            except OsmabenchError:
                outcomes.add('refused')
    assert outcomes == {'read', 'refused'}


NAMES = b'\x00\x01\x00\x00' + struct.pack('<I', 2) + b'\2\0\0\0a\0\0\0\2\0\0\0b\0'


@pytest.mark.parametrize(
    ('text', 'data', 'fault'),
    [
        ('string[] names\n', NAMES, ''),
        (
            'string[] names\n',
            NAMES[:4] + struct.pack('<I', 2**32 - 1) + NAMES[8:],
            'sequence length',
        ),
        ('string[] names\n', NAMES[:8] + struct.pack('<I', 2**31) + NAMES[12:], 'bytes'),
        (
            'string[] names\n',
            NAMES[:4] + struct.pack('<I', 600_000) + bytes(2_400_000),
            'sequence length',
        ),
        ('string[3] names\n', NAMES[:4] + NAMES[8:], 'bytes'),
        ('std_msgs/Empty[] e\n', NAMES[:4] + struct.pack('<I', 2**32 - 1), 'sequence length'),
        ('float64[] n\n', NAMES[:4] + struct.pack('<I', 2**32 - 1) + bytes(12), '"/text"'),
        ('string[] names\n', b'\0\7\0\0' + NAMES[4:], 'CDR encapsulation'),
        ('string[] names\n', b'', 'CDR encapsulation'),
    ],
)
def test_lengths_in_messages_are_checked_before_they_are_believed(
    tmp_path: Path, text: str, data: bytes, fault: str
) -> None:
    file = write_mcap(
        tmp_path / 'a.mcap', schema(1, 'odd_msgs/msg/Odd', text), channel(),
        chunk(built(message(data=data))),
    )  # fmt: skip
    if not fault:
        assert read(file)[0][0][2].names == ['a', 'b']
        return
    with pytest.raises(SequenceError, match=fault):
        read(file)
