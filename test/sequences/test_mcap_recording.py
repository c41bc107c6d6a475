"""The writer of recordings, without ROS."""

import os
import re
import resource
import threading

import pytest
import yaml
from rosbags.highlevel import AnyReader
from support.world.bags import BEACON, BEACON_TEXT, beacon, make, typestore

from osmabench_ros.base.contract import CONTRACT
from osmabench_ros.base.files import MARKER
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.bags.bag_storage import OfferedQos
from osmabench_ros.sequences.bags.mcap_recording import BackgroundWriter, McapRecording
from osmabench_ros.sequences.bags.recording_report import (
    RecordedTopic,
    RecordingSettings,
)

LINE = '=' * 80
DEFINITION = (
    f'{BEACON_TEXT}{LINE}\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\n'
    f'string frame_id\n{LINE}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n'
)
BULK, MARK = '/bulk', '/mark'
LATCHED = (OfferedQos(durability='transient_local', depth=1),)


def recording(folder, distribution='', **settings):
    made = McapRecording(folder, RecordingSettings(**settings), distribution)
    made.add_topic(RecordedTopic(BULK, BEACON, definition=DEFINITION))
    made.add_topic(RecordedTopic(MARK, BEACON, 0, LATCHED, DEFINITION, repeat=1))
    return made


def serialized(index):
    return bytes(typestore().serialize_cdr(beacon(index), BEACON))


def noise(index, size=300_000):
    return serialized(index) + os.urandom(size)


STORE = typestore()


def count_messages(bag):
    return sum(item.message_count for item in bag.connections)


@pytest.mark.parametrize('compression', ['zstd', 'lz4', 'none'])
def test_every_message_type_of_the_contract_comes_back(tmp_path, compression):
    made = recording(tmp_path / 'bag', compression=compression, distribution='jazzy')
    sent = {}
    for number, item in enumerate(CONTRACT):
        topic, kind = f'/{item.name.lstrip("/")}', item.message_type
        text, _ = STORE.generate_msgdef(kind, ros_version=2)
        fields = re.sub(r'(?m)^.*\w=.*\n', '', text)  # rosbags writes empty constants wrongly
        made.add_topic(RecordedTopic(topic, kind, definition=fields))
        sent[topic] = bytes(STORE.serialize_cdr(make(kind), kind))
        made.write(topic, 1000 + number, 1, sent[topic])
    made.close()
    made.close()
    with open_bag(tmp_path / 'bag') as bag:
        assert (count_messages(bag), bag.cut_off) == (len(sent), '')
        for item in bag.messages():
            assert item.data == sent[item.topic]
            read = item.deserialise()
            assert bytes(STORE.serialize_cdr(read, item.message_type)) == item.data
    with AnyReader([tmp_path / 'bag']) as reader:
        assert {item.topic for item, _, _ in reader.messages()} == set(sent)
    names = {MARKER, 'bag_0.mcap', 'metadata.yaml'}
    assert {item.name for item in (tmp_path / 'bag').iterdir()} == names


def test_files_are_split_by_time_and_begin_with_what_is_latched(tmp_path):
    made = recording(tmp_path / 'bag', max_file_s=1.0)
    made.write(MARK, 10**9, 1, serialized(99))
    for index in range(40):
        made.write(BULK, 10**9 + index * 10**8, 1, serialized(index))
    made.close()
    files = sorted((tmp_path / 'bag').glob('*.mcap'))
    assert len(files) == 4
    for file in files:
        with open_bag(file) as bag:
            first = next(iter(bag.messages()))
            assert (first.topic, first.deserialise().number) == (MARK, 99)
    with open_bag(tmp_path / 'bag') as bag:
        assert [item.topic for item in bag.messages()] == [MARK] + [BULK] * 40


@pytest.fixture
def full_disk(tmp_path):
    """A folder in which no file grows beyond 30 MiB, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30 * 2**20, before[1]))
    yield tmp_path / 'bag'
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_the_recording_and_what_was_written_can_be_read(full_disk):
    made = recording(full_disk)
    writer = BackgroundWriter(made, 2**22, wait_when_full=True)
    taken = sum(writer.put(BULK, 1000 + index, 1, noise(index)) for index in range(150))
    with pytest.raises(SequenceError, match='cannot be written any further: File too large'):
        writer.close()
    with open_bag(full_disk) as bag:
        kept = [item.log_ns for item in bag.messages([BULK])]
        assert count_messages(bag) == len(kept) == made.counts[BULK]
        assert 'bag_0.mcap is damaged: it is cut off at byte' in bag.cut_off
    assert kept == [1000 + index for index in range(len(kept))]
    assert 30 < len(kept) <= taken
    assert len(kept) + writer.dropped[BULK] == 150
    metadata = yaml.safe_load((full_disk / 'metadata.yaml').read_text())
    assert metadata['rosbag2_bagfile_information']['message_count'] == len(kept)


def test_a_killed_recorder_leaves_all_but_the_last_second(tmp_path):
    made = recording(tmp_path / 'bag')
    for index in range(5):
        made.write(BULK, index, 1, serialized(index))
        if index == 2:
            made.flush()
    with open_bag(tmp_path / 'bag') as bag:
        assert [item.log_ns for item in bag.messages()] == [0, 1, 2]
        assert 'bag_0.mcap is damaged: it is cut off at byte' in bag.cut_off


def test_a_slow_disk_is_waited_for_or_what_it_cannot_take_is_counted(tmp_path, monkeypatch):
    gate = threading.Event()
    slow = McapRecording.write

    def write(self, *arguments):
        gate.wait()
        slow(self, *arguments)

    monkeypatch.setattr(McapRecording, 'write', write)
    dropping = BackgroundWriter(recording(tmp_path / 'a'), 1000, wait_when_full=False)
    taken = [dropping.put(BULK, index, 1, bytes(300)) for index in range(10)]
    assert sum(taken) <= 4
    assert dropping.dropped[BULK] == 10 - sum(taken)
    waiting = BackgroundWriter(recording(tmp_path / 'b'), 1000, wait_when_full=True)
    threading.Timer(0.3, gate.set).start()
    assert all(waiting.put(BULK, index, 1, bytes(300)) for index in range(10))
    assert gate.is_set()
    assert waiting.peak_bytes <= 1000
    dropping.close()
    waiting.close()
    with open_bag(tmp_path / 'a') as bag:
        assert count_messages(bag) == sum(taken)
    with open_bag(tmp_path / 'b') as bag:
        assert count_messages(bag) == 10


def test_a_recording_without_messages_is_a_bag_and_is_not_recorded_over(tmp_path):
    recording(tmp_path / 'bag').close()
    with open_bag(tmp_path / 'bag') as bag:
        assert (count_messages(bag), bag.cut_off) == (0, '')
    with pytest.raises(RunError, match='bag exists; choose another folder'):
        recording(tmp_path / 'bag')
    with pytest.raises(RunError, match='is not empty'):
        recording(tmp_path)
