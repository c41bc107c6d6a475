"""The reader of bags of every distribution, without ROS."""

import os
import shutil
import sqlite3

import pytest
import yaml
from rosbags.rosbag2 import CompressionMode, StoragePlugin
from support.world.bags import (
    BEACON,
    BEACON_TEXT,
    BEACONS,
    NUMBERS,
    POSES,
    START_NS,
    STEP_NS,
    S,
    write_bag,
)

from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.bags.bag_storage import OfferedQos, is_bag, parse_offered_qos

BOTH = pytest.mark.parametrize('storage', list(StoragePlugin), ids=lambda item: item.name.lower())
MCAP, SQLITE = StoragePlugin.MCAP, StoragePlugin.SQLITE3


def definition_file(folder):
    file = folder / 'robot_msgs' / 'msg' / 'Beacon.msg'
    file.parent.mkdir(parents=True)
    file.write_text(BEACON_TEXT)
    return file


def split_in_two(folder, second):
    """Put the file of another bag behind the file of the first."""
    file = next(file for file in second.iterdir() if file.suffix in ('.mcap', '.db3'))
    name = f'{folder.name}_later{file.suffix}'
    file.rename(folder / name)
    file = folder / 'metadata.yaml'
    document = yaml.safe_load(file.read_text())
    document['rosbag2_bagfile_information']['relative_file_paths'].append(name)
    file.write_text(yaml.safe_dump(document))


def numbers(path):
    with open_bag(path) as bag:
        return [item.deserialise().data for item in bag.messages([NUMBERS])]


@BOTH
@pytest.mark.parametrize('version', [4, 6, 9])
def test_the_bags_of_every_distribution_are_read(tmp_path, storage, version):
    folder = write_bag(tmp_path / 'bag', storage, version=version)
    with open_bag(folder, [definition_file(tmp_path)] if version < 7 else []) as bag:
        topics = bag.connections_by_topic
        assert {item.message_count for item in topics.values()} == {20}
        assert topics.keys() == {NUMBERS, POSES, BEACONS}
        assert topics[BEACONS].message_type == BEACON
        assert topics[BEACONS].latched
        assert not topics[POSES].latched
        messages = list(bag.messages())
        start, stop = START_NS + 5 * STEP_NS, START_NS + 8 * STEP_NS
        chosen = bag.messages([NUMBERS, '/absent'], start_ns=start, stop_ns=stop)
        assert [item.deserialise().data for item in chosen] == ['5', '6', '7']
        assert bag.cut_off == ''
    assert [item.log_ns for item in messages] == sorted(item.log_ns for item in messages)
    poses = [item for item in messages if item.topic == POSES]
    assert [item.header_stamp_ns for item in poses] == [START_NS + 7 * i for i in range(20)]
    assert poses[3].deserialise().pose.position.x == 3.0
    assert {item.header_stamp_ns for item in messages if item.topic == NUMBERS} == {None}
    marks = [item.deserialise() for item in messages if item.topic == BEACONS]
    assert [(item.number, item.words) for item in marks[:2]] == [(0, 'beacon 0'), (1, 'beacon 1')]


@BOTH
@pytest.mark.parametrize('mode', [CompressionMode.MESSAGE, CompressionMode.FILE])
def test_compressed_bags(tmp_path, storage, mode):
    folder = write_bag(tmp_path / 'bag', storage, mode=mode)
    assert numbers(folder) == [str(index) for index in range(20)]


def test_a_missing_definition_is_named_with_the_remedy(tmp_path):
    folder = write_bag(tmp_path / 'bag', SQLITE, version=5)
    with open_bag(folder) as bag:
        message = next(bag.messages([BEACONS]))
        with pytest.raises(SequenceError, match=r'/beacons.*robot_msgs/msg/Beacon.*--msg-path'):
            message.deserialise()
    definition_file(tmp_path / 'share')
    with open_bag(folder, [tmp_path / 'share']) as bag:
        message = next(bag.messages([BEACONS]))
        assert (message.deserialise().words, message.header_stamp_ns) == ('beacon 0', START_NS)
    with pytest.raises(SequenceError, match='does not exist'):
        open_bag(folder, [tmp_path / 'absent'])
    (tmp_path / 'Bad.msg').write_text('!! 3 =')
    with pytest.raises(SequenceError, match=r'Bad\.msg is not a message definition'):
        open_bag(folder, [tmp_path / 'Bad.msg'])


def truncate(file):
    os.truncate(file, file.stat().st_size * 2 // 3)


def overwrite_the_middle(file, *, cut=False):
    """Write over more than a message, so that the head of one is in it."""
    sound = file.read_bytes()
    start, garbage = len(sound) // 2, b'\xff' * 150_000
    end = -1 if cut else None
    file.write_bytes(sound[:start] + garbage + sound[start + len(garbage) : end])


def test_a_truncated_mcap_is_read_as_far_as_it_goes(tmp_path):
    folder = write_bag(tmp_path / 'bag', MCAP, count=40, payload=100_000)
    truncate(folder / 'bag.mcap')
    with open_bag(folder) as bag:
        read = [item.deserialise().data for item in bag.messages([NUMBERS])]
        assert 'bag.mcap' in bag.cut_off
        assert bag.connections_by_topic[NUMBERS].message_count == len(read)
        assert bag.connections_by_topic[BEACONS].latched
    assert 10 < len(read) < 40
    assert [text[:2] for text in read[10:]] == [str(index) for index in range(10, len(read))]


@pytest.mark.parametrize('indexed', [True, False])
def test_damage_in_the_middle_of_an_mcap_is_named_and_the_rest_is_read(tmp_path, indexed):
    folder = write_bag(tmp_path / 'bag', MCAP, count=40, payload=100_000)
    overwrite_the_middle(folder / 'bag.mcap', cut=not indexed)
    with open_bag(folder) as bag:
        read = [(item.log_ns - START_NS) // STEP_NS for item in bag.messages([NUMBERS])]
        reported = bag.cut_off
        assert len(list(bag.messages([NUMBERS]))) == len(read)
        assert bag.cut_off == reported
    assert 'bag.mcap is damaged: the chunk at byte' in reported
    assert 20 < len(read) < 40
    assert read == sorted(set(read))
    assert {0, 39} <= set(read)


@pytest.mark.parametrize('damage', [overwrite_the_middle, truncate])
def test_a_damaged_database_is_an_error_with_the_remedy(tmp_path, damage):
    folder = write_bag(tmp_path / 'bag', SQLITE, count=40, payload=100_000)
    damage(folder / 'bag.db3')
    with pytest.raises(SequenceError, match=r'bag\.db3 is damaged.*"ros2 bag reindex"'):
        numbers(folder)


def test_a_database_whose_recorder_was_killed_gives_what_is_in_its_log(tmp_path):
    folder, killed, late = write_bag(tmp_path / 'bag', SQLITE), tmp_path / 'killed', START_NS + S
    database = sqlite3.connect(folder / 'bag.db3')
    for pragma in ('journal_mode=WAL', 'wal_autocheckpoint=0'):
        database.execute(f'PRAGMA {pragma}')
    database.execute(
        'INSERT INTO messages (topic_id, timestamp, data) '
        'SELECT topic_id, ?, data FROM messages WHERE topic_id = 1 LIMIT 1', (late,)
    )  # fmt: skip
    database.commit()
    shutil.copytree(folder, killed)
    database.close()
    before = (killed / 'bag.db3').read_bytes()
    with open_bag(killed) as bag:
        read = [item.log_ns for item in bag.messages([NUMBERS])]
        assert 'was not closed by its recorder' in bag.cut_off
    assert (len(read), read[-1]) == (21, late)
    assert (killed / 'bag.db3').read_bytes() == before


@BOTH
def test_a_bag_without_metadata_or_a_split_says_so(tmp_path, storage):
    folder = write_bag(tmp_path / 'bag', storage, count=3)
    split_in_two(folder, write_bag(tmp_path / 'second', storage, count=2))
    # The latched message that is repeated at the split comes once.
    with open_bag(folder) as bag:
        marks = [item.deserialise().number for item in bag.messages([BEACONS])]
    assert marks == [0, 1, 2]
    assert numbers(folder) == ['0', '1', '2', '0', '1']
    metadata = folder / 'metadata.yaml'
    metadata.rename(tmp_path / 'metadata.yaml')
    with open_bag(folder) as bag:
        assert bag.cut_off == 'metadata.yaml is missing'
        assert bag.connections_by_topic[NUMBERS].message_count == 5
    (tmp_path / 'metadata.yaml').rename(metadata)
    next(folder.glob('bag_later.*')).unlink()
    with open_bag(folder) as bag:
        assert 'is missing' in bag.cut_off
        assert len(list(bag.messages([NUMBERS]))) == 3


def test_a_path_that_is_not_a_bag_is_named(tmp_path):
    with pytest.raises(SequenceError, match='is not a bag: there is no'):
        open_bag(tmp_path)
    for name in ('notes.txt', 'empty.mcap', 'empty.db3'):
        (tmp_path / name).touch()
        with pytest.raises(SequenceError, match=name):
            open_bag(tmp_path / name)
    assert not is_bag(tmp_path / 'notes.txt')
    assert is_bag(tmp_path / 'empty.db3')


def test_offered_qos_in_all_spellings():
    numbers_of_rmw = '- {history: 1, depth: 1, reliability: 1, durability: 1}'
    names = '- {history: keep_last, depth: 1, reliability: reliable, durability: TRANSIENT_LOCAL}'
    assert parse_offered_qos(numbers_of_rmw) == parse_offered_qos(names)
    (profile,) = parse_offered_qos(names)
    assert profile == OfferedQos('reliable', 'transient_local', 'keep_last', 1)
    assert parse_offered_qos(yaml.safe_dump([profile.to_metadata()])) == (profile,)
    assert parse_offered_qos(': not yaml [') == ()
