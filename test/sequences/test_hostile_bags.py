"""Bags made to harm: one clear error, or named damage, within bounded memory and time."""

import sqlite3
import struct
import warnings
from contextlib import closing

import numpy as np
import pytest
import zstandard
from rosbags.rosbag2 import StoragePlugin
from support.mcap_files import TEXT, built, channel, chunk, message, schema, write_mcap
from support.world.bags import write_bag

from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import LimitError, OsmabenchError, OsmabenchWarning, SequenceError
from osmabench_ros.sequences.bags.bag import open_bag


def read(path):
    """Return all messages of a bag, and its report of damage."""
    with open_bag(path) as bag:
        return [(x.topic, x.header_stamp_ns, x.deserialise()) for x in bag.messages()], bag.cut_off


@pytest.fixture
def database(tmp_path):
    return write_bag(tmp_path / 'bag', StoragePlugin.SQLITE3, count=5)


def change(folder, *statements):
    file = next(folder.glob('*.db3'))
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return file


@pytest.fixture
def small_limits(monkeypatch):
    """Allow 8 MiB, and 0.5 times the size of a file."""
    monkeypatch.setenv(VARIABLE, str(8 / 512))


@pytest.mark.usefixtures('small_limits')
def test_chunks_of_one_time_are_not_all_kept(tmp_path):
    content = built(message(data=TEXT + bytes(3 * 2**20)))
    chunks = [chunk(content, 'zstd') for _ in range(5)]
    file = write_mcap(tmp_path / 'a.mcap', schema(), channel(), *chunks)
    with pytest.raises(LimitError, match=rf'a\.mcap has a chunk that claims.*{VARIABLE}'):
        read(file)


@pytest.mark.usefixtures('small_limits')
@pytest.mark.parametrize('sized', [True, False])
def test_compressed_messages_that_become_large(database, sized):
    compressor = zstandard.ZstdCompressor(write_content_size=sized)
    with closing(sqlite3.connect(next(database.glob('*.db3')))) as connection:
        bomb = compressor.compress(TEXT + bytes(40 * 2**20))
        connection.execute('UPDATE messages SET data = ?', (bomb,))
        connection.commit()
    with pytest.raises(OsmabenchError, match='topic'):
        read(database)


@pytest.mark.parametrize(
    'content',
    [
        built(chunk(built(message()))),
        b'\5' + struct.pack('<Q', 2**63) + bytes(22),
        built(message(number=77)),
        built(message(log_ns=2**64 - 1)),
        b'\3' + struct.pack('<Q', 4) + b'\xff\xff\xff\xff',
    ],
    ids=['chunk in chunk', 'long', 'no channel', 'late', 'schema'],
)
def test_chunks_with_odd_content(tmp_path, content):
    for summary in (True, False):
        records = schema(), channel(), chunk(content)
        file = write_mcap(tmp_path / 'a.mcap', *records, summary=summary)
        assert read(file)[0] == []


IDL = (
    '=' * 80
    + '\nIDL: bad_msgs/msg/Bad\nmodule bad_msgs {{ module msg {{ {} struct Bad {{ {} }}; }}; }};'
)
BAD = {
    'nested parentheses': IDL.format(f'const long A = {"(" * 40}1{")" * 40};', 'long a;'),
    'a shift of shifts': IDL.format('const long A = 1 << (1 << 40);', 'long a;'),
    'a giant array': IDL.format('', 'string a[2000000000];'),
    '100,000 fields': ''.join(f'int32 f{i}\n' for i in range(100_000)),
    'an array of arrays of messages': 'bad_msgs/msg/A[9999] a\n' + '=' * 80
    + '\nMSG: bad_msgs/msg/A\nbad_msgs/msg/B[9999] b\n' + '=' * 80
    + '\nMSG: bad_msgs/msg/B\nint32 c\n',
    'itself': 'bad_msgs/msg/Bad a\n',
    'code': 'int32 a\nstring B="""\nimport os\n',
    'dunder fields': 'int32 __msgtype__\nint32 __class__\n',
    'deep brackets': IDL.format('', 'sequence<' * 2000 + 'long' + '>' * 2000 + ' a;'),
}  # fmt: skip


def two_topics(path, text):
    """Write a message on /text, and one on /bad with a definition."""
    return write_mcap(
        path, schema(), channel(), schema(2, 'bad_msgs/msg/Bad', text), channel(2, '/bad'),
        chunk(built(message(), message(data=TEXT, number=2))), channel_count=2,
    )  # fmt: skip


@pytest.mark.parametrize('text', BAD.values(), ids=BAD)
def test_a_bad_definition_costs_its_own_topic(tmp_path, text):
    with open_bag(two_topics(tmp_path / 'a.mcap', text)) as bag:
        good, bad = sorted(bag.messages(), key=lambda item: item.topic == '/bad')
        assert good.deserialise().data == 'hello'
        assert bad.header_stamp_ns in (None, 6)
        bag.types.type_hash(bad.message_type)
        with pytest.raises(SequenceError, match='"/bad"'):
            bad.deserialise()


def test_a_standard_type_that_another_topic_redefines_is_read(tmp_path):
    bad = f'std_msgs/String inner\n{"=" * 80}\nMSG: std_msgs/String\nint64 nonsense\n'
    with open_bag(two_topics(tmp_path / 'a.mcap', bad)) as bag:
        assert [item.deserialise().data for item in bag.messages(['/text'])] == ['hello']


def test_a_definition_that_cannot_be_read_is_replaced_with_a_warning(tmp_path):
    file = write_mcap(tmp_path / 'a.mcap', schema(text='!!'), channel(), chunk(built(message())))
    with pytest.warns(OsmabenchWarning, match=r'definition of std_msgs/msg/String .* the one of'):
        assert read(file)[0][0][2].data == 'hello'


ENDLESS = (
    'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) '
    "SELECT n AS id, 1 AS topic_id, n AS timestamp, x'00010000' AS data FROM r"
)


@pytest.mark.parametrize(
    'statements',
    [
        ('DROP TABLE messages', f'CREATE VIEW messages AS {ENDLESS}'),
        ('DROP TABLE messages',),
        ('DROP TABLE topics', 'CREATE TABLE topics (name)'),
        ("UPDATE messages SET timestamp = 'soon' WHERE id = 1",),
        ("UPDATE messages SET data = 'text' WHERE id = 1",),
        ("UPDATE topics SET name = x'ff' WHERE id = 1",),
    ],
)
def test_views_and_rows_of_other_types_are_refused(database, statements):
    change(database, *statements)
    with pytest.raises(SequenceError, match=r'bag\.db3 is damaged or not.*"ros2 bag reindex"'):
        read(database)


@pytest.mark.parametrize(
    'text',
    ['[' * 100_000, '- x', 'rosbag2_bagfile_information: {relative_file_paths: [[1], null]}',
     'rosbag2_bagfile_information: {relative_file_paths: [/etc/passwd, ../../x, ""]}'],
)  # fmt: skip
def test_odd_metadata_is_a_fault(tmp_path, text):
    folder = write_bag(tmp_path / 'bag', StoragePlugin.MCAP, count=2)
    (folder / 'metadata.yaml').write_text(text)
    messages, cut_off = read(folder)
    assert len(messages) == 6
    assert cut_off


def test_links_to_what_is_not_a_file_are_not_read(tmp_path):
    folder = write_bag(tmp_path / 'bag', StoragePlugin.MCAP, count=2)
    (folder / 'loop.mcap').symlink_to(folder / 'loop.mcap')
    (folder / 'zero.mcap').symlink_to('/dev/zero')
    (folder / 'metadata.yaml').unlink()
    (folder / 'metadata.yaml').symlink_to('/dev/zero')
    messages, cut_off = read(folder)
    assert len(messages) == 6
    assert 'metadata.yaml cannot be read: it is not an ordinary file' in cut_off


@pytest.mark.parametrize('storage', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_damaged_bags_give_one_error_or_less(tmp_path, storage):
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
MANY = NAMES[:4] + struct.pack('<I', 2**32 - 1)


@pytest.mark.parametrize(
    ('text', 'data', 'reason'),
    [
        ('int32 class\nint32 import\n', b'\0\1\0\0' + bytes(8), ''),
        ("string C='quo\"te\\'\nint32 a\n", b'\0\1\0\0' + bytes(4), ''),
        ('string[] names\n', NAMES, ''),
        ('string[] names\n', MANY + NAMES[8:], 'sequence length'),
        ('float64[] n\n', MANY + bytes(12), '"/text"'),
        ('string[] names\n', b'\0\7\0\0' + NAMES[4:], 'CDR encapsulation'),
    ],
)
def test_odd_definitions_are_read_and_lengths_in_messages_are_checked(
    tmp_path, text, data, reason
):
    content = chunk(built(message(data=data)))
    file = tmp_path / 'a.mcap'
    write_mcap(file, schema(1, 'odd_msgs/msg/Odd', text), channel(), content)
    if reason:
        with pytest.raises(SequenceError, match=reason):
            read(file)
    else:
        assert len(read(file)[0]) == 1
