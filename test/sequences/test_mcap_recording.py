"""The writer of recordings, without ROS."""

import errno
import os
import threading
from pathlib import Path

import pytest
from rosbags.highlevel import AnyReader
from support.bag_files import BEACON, BEACON_TEXT, beacon, typestore

from osmabench_ros.base.owned_folder import MARKER
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.sequences.bags import mcap_recording
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.bags.bag_storage import Durability, OfferedQos
from osmabench_ros.sequences.bags.mcap_recording import BackgroundWriter, McapRecording
from osmabench_ros.sequences.bags.recording_report import (
    Compression,
    RecordedTopic,
    RecordingSettings,
)

LINE = '=' * 80
DEFINITION = (
    f'{BEACON_TEXT}{LINE}\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\n'
    f'string frame_id\n{LINE}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n'
)
BULK, MARK = '/bulk', '/mark'
LATCHED = (OfferedQos(durability=Durability.TRANSIENT_LOCAL, depth=1),)


def recording(folder: Path, distribution: str = '', **settings: object) -> McapRecording:
    made = McapRecording(folder, RecordingSettings(**settings), distribution)
    made.add_topic(RecordedTopic(BULK, BEACON, DEFINITION))
    made.add_topic(RecordedTopic(MARK, BEACON, DEFINITION, qos=LATCHED, repeat=1))
    return made


def serialized(index: int) -> bytes:
    return bytes(typestore().serialize_cdr(beacon(index), BEACON))


def noise(index: int, size: int = 300_000) -> bytes:
    return serialized(index) + os.urandom(size)


@pytest.mark.parametrize('compression', list(Compression))
def test_what_is_written_can_be_read(tmp_path: Path, compression: Compression) -> None:
    made = recording(tmp_path / 'bag', compression=compression, distribution='jazzy')
    for index in range(50):
        made.write(BULK, 1000 + index, 500 + index, serialized(index))
    made.close()
    made.close()
    with AnyReader([tmp_path / 'bag']) as reader:
        read = [reader.deserialize(data, item.msgtype) for item, _, data in reader.messages()]
    assert [item.words for item in read] == [f'beacon {index}' for index in range(50)]
    names = {MARKER, 'bag_0.mcap', 'metadata.yaml'}
    assert {item.name for item in (tmp_path / 'bag').iterdir()} == names


def test_files_are_split_by_time_and_begin_with_what_is_latched(tmp_path: Path) -> None:
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


def test_an_empty_recording_is_a_bag(tmp_path: Path) -> None:
    recording(tmp_path / 'bag').close()
    with open_bag(tmp_path / 'bag') as bag:
        assert (bag.message_count, bag.cut_off) == (0, '')


class FullDisk:
    """os.write on a disk of a given size."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._size = folder, size
        self._write = os.write

    def __call__(self, descriptor: int, data: memoryview) -> int:
        used = sum(file.stat().st_size for file in self._folder.iterdir())
        if used + len(data) > self._size:
            raise OSError(errno.ENOSPC, 'No space left on device')
        return self._write(descriptor, data)


@pytest.fixture
def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / 'bag'
    monkeypatch.setattr(mcap_recording.os, 'write', FullDisk(folder, 30 * 2**20))
    return folder


def test_on_a_full_disk_all_that_was_taken_is_kept_and_indexed(full_disk: Path) -> None:
    made = recording(full_disk)
    taken: list[int] = []

    def write_until_full() -> None:
        for index in range(1000):
            taken.append(index)
            made.write(BULK, index, 1, noise(index))

    with pytest.raises(SequenceError, match='cannot be written any further: no space left'):
        write_until_full()
    made.close()
    with open_bag(full_disk) as bag:
        # The message at which the disk was full is in the reserve.
        assert [item.log_ns for item in bag.messages([BULK])] == taken
        assert bag.cut_off == ''
    assert len(taken) > 30


def test_a_full_disk_ends_the_background_writer_with_its_reason(full_disk: Path) -> None:
    made = recording(full_disk)
    writer = BackgroundWriter(made, 2**22, wait_when_full=True)
    taken = sum(writer.put(BULK, 1000 + index, 1, noise(index)) for index in range(100))
    with pytest.raises(SequenceError, match='no space left'):
        writer.close()
    with open_bag(full_disk) as bag:
        kept = bag.message_count
    assert 30 < kept <= taken
    assert kept + writer.dropped[BULK] == 100


def test_a_slow_disk_is_waited_for_or_what_it_cannot_take_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    slow = McapRecording.write

    def write(self: McapRecording, *arguments: object) -> None:
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
    assert waiting.waits > 0
    assert waiting.waited_s > 0.1
    assert waiting.peak_bytes <= 1000
    dropping.close()
    waiting.close()
    with open_bag(tmp_path / 'a') as bag:
        assert bag.message_count == sum(taken)
    with open_bag(tmp_path / 'b') as bag:
        assert bag.message_count == 10


def test_a_folder_that_is_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'thesis').write_text('')
    with pytest.raises(RunError, match='is not empty'):
        recording(tmp_path)
    recording(tmp_path / 'bag').close()
    with pytest.raises(RunError, match='bag exists; choose another folder'):
        recording(tmp_path / 'bag')
