"""Bags made to harm: one clear error or a fault that is named, within the limits, and no more."""

import sqlite3
import struct
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
from support.bag_files import NUMBERS, typestore, write_bag

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.errors import LimitError, OsmabenchError, OsmabenchWarning, SequenceError
from osmabench_ros.sequences.bags.bag import open_bag

SMALL = Allowance(memory_mib=8, seconds=1)
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


@BOTH
@pytest.mark.parametrize('compression', ['zstd', 'lz4'])
@pytest.mark.parametrize('claimed', [None, 100], ids=['true size', 'false size'])
def test_a_small_chunk_that_becomes_large_is_not_unpacked(
    tmp_path: Path, compression: str, claimed: int | None, summary: bool
) -> None:
    content = built(message(data=TEXT + bytes(40 * 2**20)))
    file = write_mcap(
        tmp_path / 'a.mcap', schema(), channel(), chunk(content, compression, claimed),
        summary=summary,
    )  # fmt: skip
    assert file.stat().st_size < 200_000
    with limited_to(SMALL):
        if claimed is None:
            with pytest.raises(LimitError, match=r'a\.mcap: a chunk claims.*memory_ratio'):
                read(file)
        else:
            assert 'does not unpack to the 100 bytes' in _fault(file)


def _fault(file: Path) -> str:
    """Return what a bag without usable messages says."""
    messages, cut_off = read(file)
    assert messages == []
    return cut_off


@BOTH
def test_many_tiny_messages_in_a_chunk_take_no_memory(tmp_path: Path, summary: bool) -> None:
    content = built(message(data=b'')) * 100_000
    file = write_mcap(
        tmp_path / 'a.mcap', schema(), channel(), chunk(content, 'zstd'), summary=summary
    )
    with limited_to(SMALL), open_bag(file) as bag:
        if summary:
            with pytest.raises(LimitError, match='fill the memory'):
                list(bag.messages())
        else:
            assert sum(1 for _ in bag.messages()) == 100_000


def test_chunks_of_one_time_are_not_all_kept(tmp_path: Path) -> None:
    content = built(message(data=TEXT + bytes(3 * 2**20)))
    chunks = [chunk(content, 'zstd') for _ in range(5)]
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(), *chunks)
    with limited_to(SMALL), pytest.raises(LimitError, match='chunks of one time'):
        read(file)


def test_an_index_that_names_a_chunk_again_is_not_followed(tmp_path: Path) -> None:
    file = write_mcap(
        tmp_path / 'a.mcap', schema(), channel(), chunk(built(message())), repeat=1000
    )
    assert len(read(file)[0]) == 1


def test_time_spent_on_a_bag_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(), chunk(built(message())))
    limits = limited_to(Allowance(seconds=1e-9, seconds_per_mib=1e-9))
    with limits, pytest.raises(LimitError, match=r'a\.mcap: reading it takes over.*seconds'):
        read(file)


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
    with limited_to(Allowance(memory_mib=300, seconds=1)), open_bag(file) as bag:
        good, bad = sorted(bag.messages(), key=lambda item: item.topic == '/bad')
        assert good.deserialise().data == 'hello'
        assert bag.types.stamp_ns(bad.data, name) in (None, 6)
        bag.types.type_hash(name)
        with pytest.raises(SequenceError, match='"/bad"'):
            bad.deserialise()


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('std_msgs/msg/Header', 'int32 nonsense\n'),
        ('9evil', 'int32 a\n'),
        ('', 'int32 a\n'),
        ('a/b/c/../d', 'int32 a\n'),
        ("x/msg/Y': 0} or __import__('os').abort() #", 'int32 a\n'),
        ('x' * 5000, 'int32 a\n'),
        (STRING, '!! no definition'),
    ],
)
def test_odd_types_and_redefined_ones_cost_their_own_topic(
    tmp_path: Path, name: str, text: str
) -> None:
    pose = 'geometry_msgs/msg/PoseStamped'
    file = write_mcap(
        tmp_path / 'a.mcap', schema(1, pose, ''), channel(), schema(2, name, text),
        channel(2, '/odd'), chunk(built(message(data=_pose()), message(number=2))),
        channel_count=2,
    )  # fmt: skip
    with warnings.catch_warnings(), open_bag(file) as bag:
        warnings.simplefilter('ignore', OsmabenchWarning)
        found = {item.topic: item for item in bag.messages()}
        assert bag.types.type_hash('geometry_msgs/msg/PoseStamped')
        for item in found.values():
            if item.topic == '/odd' or not item.message_type:
                try:
                    item.deserialise()
                except SequenceError as error:
                    assert 'topic' in str(error)  # noqa: PT017 - its definition may be used


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
    with pytest.warns(OsmabenchWarning, match=r'definition of std_msgs/msg/String .* that of the'):
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


def _pose() -> bytes:
    types = typestore().types
    stamp = types['builtin_interfaces/msg/Time'](1, 2)
    pose = types['geometry_msgs/msg/PoseStamped'](
        types['std_msgs/msg/Header'](stamp, 'map'),
        types['geometry_msgs/msg/Pose'](
            types['geometry_msgs/msg/Point'](0.0, 0.0, 0.0),
            types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0),
        ),
    )
    return bytes(typestore().serialize_cdr(pose, 'geometry_msgs/msg/PoseStamped'))


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
def test_tables_that_are_no_tables_are_refused(
    database: Path, statements: tuple[str, ...]
) -> None:
    change(database, *statements)
    with limited_to(SMALL), pytest.raises(SequenceError, match=r'bag\.db3 holds no list'):
        read(database)


def test_definitions_in_a_view_are_left_out(database: Path) -> None:
    change(
        database, 'DROP TABLE message_definitions',
        'CREATE VIEW message_definitions AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT '
        "n + 1 FROM r) SELECT 'a' || n AS topic_type, 'x' AS encoded_message_definition FROM r",
    )  # fmt: skip
    with open_bag(database) as bag:
        assert len(list(bag.messages([NUMBERS]))) == 5


@pytest.mark.parametrize(
    ('statement', 'count'),
    [
        ("UPDATE messages SET timestamp = 'soon' WHERE id = 1", 14),
        ('UPDATE messages SET timestamp = -1 WHERE id = 1', 14),
        ("UPDATE messages SET timestamp = 1e999, topic_id = x'00' WHERE id = 1", 14),
        ("UPDATE messages SET data = 'text' WHERE id = 1", 14),
        ("UPDATE messages SET topic_id = 'one' WHERE id = 1", 14),
        ("UPDATE topics SET name = x'ff' WHERE id = 1", 10),
        ('UPDATE topics SET type = 5.5 WHERE id = 1', 15),
        ("UPDATE topics SET offered_qos_profiles = x'ff'", 15),
        ("UPDATE topics SET name = CAST(x'ff41' AS TEXT) WHERE id = 1", 15),
    ],
)
def test_rows_with_other_types_are_left_out_and_named(
    database: Path, statement: str, count: int
) -> None:
    change(database, statement)
    with open_bag(database) as bag:
        assert len(list(bag.messages())) == count
        if count < 15:
            assert 'does not hold' in bag.cut_off


def test_null_where_numbers_should_be(tmp_path: Path) -> None:
    folder = write_bag(tmp_path / 'bag', StoragePlugin.SQLITE3, count=3)
    change(
        folder, 'CREATE TABLE other (id INTEGER PRIMARY KEY, topic_id, timestamp, data)',
        'INSERT INTO other SELECT * FROM messages', 'DROP TABLE messages',
        'ALTER TABLE other RENAME TO messages',
        'INSERT INTO messages VALUES (100, NULL, NULL, NULL), (101, 1, 5, NULL)',
    )  # fmt: skip
    messages, cut_off = read(folder)
    assert len(messages) == 9
    assert '"messages" does not hold numbers and bytes' in cut_off


def test_triggers_and_attached_files_do_nothing(database: Path, tmp_path: Path) -> None:
    other = tmp_path / 'other.db'
    other.write_bytes(b'')
    file = change(
        database, 'CREATE TRIGGER t AFTER INSERT ON messages BEGIN DELETE FROM messages; END',
        "CREATE TABLE evil AS SELECT 'ATTACH' AS a",
    )  # fmt: skip
    before = file.read_bytes()
    assert len(read(database)[0]) == 15
    assert file.read_bytes() == before
    assert [item.name for item in database.iterdir()] != []
    assert other.read_bytes() == b''


def test_a_table_whose_pages_lead_in_circles_ends(tmp_path: Path) -> None:
    folder = write_bag(tmp_path / 'bag', StoragePlugin.SQLITE3, count=400, payload=300)
    file = next(folder.glob('*.db3'))
    with closing(sqlite3.connect(file)) as connection:
        root = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        ).fetchone()[0]
        size = connection.execute('PRAGMA page_size').fetchone()[0]
    data = bytearray(file.read_bytes())
    page = memoryview(data)[(root - 1) * size : root * size]
    assert page[0] == 5  # an interior page: each cell names a child
    count = struct.unpack_from('>H', page, 3)[0]
    for i in range(count):
        cell = struct.unpack_from('>H', page, 12 + 2 * i)[0]
        page[cell : cell + 4] = page[8:12]  # all the same child
    file.write_bytes(data)
    try:
        with limited_to(SMALL):
            messages, _ = read(folder)
    except SequenceError:
        return
    assert sum(1 for _ in messages) <= 1200


def test_a_blob_that_claims_more_than_the_file_is_damage(database: Path) -> None:
    file = next(database.glob('*.db3'))
    data = file.read_bytes()
    # The header of a row: its type code for the data says how long it is.
    marker = b'\0\1\0\0'
    file.write_bytes(data.replace(marker, b'\xff\xff\xff\xff', 3))
    try:
        read(database)
    except OsmabenchError as error:
        assert 'topic' in str(error) or 'bag.db3' in str(error)  # noqa: PT017


@pytest.mark.parametrize('storage', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_compressed_messages_that_become_large(tmp_path: Path, storage: StoragePlugin) -> None:
    folder = write_bag(tmp_path / 'bag', StoragePlugin.SQLITE3, count=1)
    compressor = zstandard.ZstdCompressor(write_content_size=storage is StoragePlugin.MCAP)
    bomb = compressor.compress(TEXT + bytes(40 * 2**20))
    file = next(folder.glob('*.db3'))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute('UPDATE messages SET data = ?', (bomb,))
        connection.commit()
    with limited_to(SMALL), pytest.raises(OsmabenchError, match='topic'):
        read(folder)


def test_a_compressed_file_that_becomes_large(tmp_path: Path) -> None:
    file = tmp_path / 'a.mcap.zstd'
    file.write_bytes(zstandard.ZstdCompressor().compress(bytes(40 * 2**20)))
    limits = limited_to(SMALL)
    with limits, pytest.raises(LimitError, match=r'a\.mcap\.zstd: it unpacks.*memory_ratio'):
        read(file)


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
    assert 'metadata.yaml is a device' in read(folder)[1]


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


@pytest.mark.parametrize('storage', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_profiles_of_many_topics_take_no_more_time_than_the_file_may(
    tmp_path: Path, storage: StoragePlugin
) -> None:
    folder = write_bag(tmp_path / 'bag', storage, count=1)
    limits = limited_to(Allowance(seconds=1e-6, seconds_per_mib=1e-6))
    with limits, pytest.raises(LimitError, match='limit seconds'):
        read(folder)


NAMES = b'\x00\x01\x00\x00' + struct.pack('<I', 2) + b'\2\0\0\0a\0\0\0\2\0\0\0b\0'


@pytest.mark.parametrize(
    ('text', 'data', 'fault'),
    [
        ('string[] names\n', NAMES, ''),
        ('string[] names\n', NAMES[:4] + struct.pack('<I', 2**32 - 1) + NAMES[8:], 'elements'),
        ('string[] names\n', NAMES[:8] + struct.pack('<I', 2**31) + NAMES[12:], 'bytes'),
        (
            'string[] names\n',
            NAMES[:4] + struct.pack('<I', 600_000) + bytes(2_400_000),
            'may have',
        ),
        ('string[3] names\n', NAMES[:4] + NAMES[8:], 'bytes'),
        ('std_msgs/Empty[] e\n', NAMES[:4] + struct.pack('<I', 2**32 - 1), 'elements'),
        ('float64[] n\n', NAMES[:4] + struct.pack('<I', 2**32 - 1) + bytes(12), '"/text"'),
        ('string[] names\n', b'\0\7\0\0' + NAMES[4:], 'no plain CDR'),
        ('string[] names\n', b'', 'no plain CDR'),
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
