import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.world.frames import CAMERA, FRAMES, INFO, LABELS

from osmabench_ros.base import contract as topics
from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.sequences import bag_messages
from osmabench_ros.sequences.bag_reader import BagSequence
from osmabench_ros.sequences.reading import SequenceReading
from osmabench_ros.sequences.recorded import RecordedFrames
from osmabench_ros.sequences.writer import BagWriter


def written(directory: Path, frames: list[Frame] = FRAMES) -> Path:
    writer = BagWriter(directory, INFO)
    for frame in frames:
        writer.write(frame)
    writer.close()
    return directory


def large_frames(count: int) -> list[Frame]:
    """Return frames of which every one fills a chunk of the bag."""
    camera = Intrinsics(640, 480, 300.0, 300.0, 319.5, 239.5)
    return [
        replace(
            FRAMES[0],
            index=index,
            stamp_ns=10**9 + index,
            intrinsics=camera,
            color=np.full((480, 640, 3), index, np.uint8),
            depth_m=np.ones((480, 640), np.float32),
            semantic=None,
            instance=None,
        )
        for index in range(count)
    ]


def test_topics_are_those_of_the_bridge() -> None:
    for name in (
        'COLOR',
        'DEPTH',
        'SEMANTIC',
        'INSTANCE',
        'COLOR_INFO',
        'DEPTH_INFO',
        'CAMERA_POSE',
        'WORLD_FRAME',
        'CAMERA_FRAME',
    ):
        assert getattr(bag_messages, name) == getattr(topics, name)


def test_reads_back_what_was_written_without_loss(tmp_path: Path) -> None:
    sequence = BagSequence(written(tmp_path / 'room'))
    assert (len(sequence), sequence.intrinsics, sequence.cut_off) == (4, CAMERA, '')
    assert sequence.info.label_set == LABELS
    for read, frame in zip(sequence, FRAMES, strict=True):
        assert (read.index, read.stamp_ns) == (frame.index, frame.stamp_ns)
        np.testing.assert_allclose(read.camera_pose.matrix, frame.camera_pose.matrix, atol=1e-12)
        assert read.base_pose is not None
        assert frame.base_pose is not None
        np.testing.assert_allclose(read.base_pose.matrix, frame.base_pose.matrix, atol=1e-12)
        for name in ('color', 'depth_m', 'semantic', 'instance'):
            np.testing.assert_array_equal(getattr(read, name), getattr(frame, name))


def test_rosbags_reads_the_bag_as_rosbag2(tmp_path: Path) -> None:
    from rosbags.rosbag2 import Reader

    with Reader(written(tmp_path / 'room') / 'bag') as bag:
        counts = {item.topic: item.msgcount for item in bag.connections}
        stamps = [stamp for _, stamp, _ in bag.messages()]
    assert counts == {f'/{topic}': 4 for topic in bag_messages.PARTS}
    assert sorted(set(stamps)) == [frame.stamp_ns for frame in FRAMES]


def test_a_bag_is_a_frame_source(tmp_path: Path) -> None:
    source = RecordedFrames(BagSequence(written(tmp_path / 'room')))
    assert [source.frame(index).frame.stamp_ns for index in range(4)] == [
        frame.stamp_ns for frame in FRAMES
    ]


def test_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = written(tmp_path / 'one' / 'room'), written(tmp_path / 'two' / 'room')
    assert sha256_of(one) == sha256_of(two)


def test_a_truncated_bag_is_read_as_far_as_it_goes_and_says_so(tmp_path: Path) -> None:
    file = written(tmp_path / 'room', large_frames(4)) / 'bag' / 'bag.mcap'
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 5 // 8])
    sequence = BagSequence(tmp_path / 'room')
    assert [frame.color[0, 0, 0] for frame in sequence] == [0, 1]
    assert 'cut off after 2 frames (bag.mcap is damaged: ' in sequence.description


def test_a_bag_cut_off_before_the_first_frame_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path / 'room') / 'bag' / 'bag.mcap'
    file.write_bytes(file.read_bytes()[:400])
    with pytest.raises(SequenceError, match=r'no message on /camera/color/image_raw.*cut off'):
        BagSequence(tmp_path / 'room')


def test_a_stamp_that_lacks_an_image_is_counted(tmp_path: Path) -> None:
    frames = [FRAMES[0], replace(FRAMES[1], instance=None), *FRAMES[2:]]
    sequence = BagSequence(written(tmp_path / 'room', frames))
    assert [frame.stamp_ns for frame in sequence] == [
        FRAMES[index].stamp_ns for index in (0, 2, 3)
    ]
    assert '1 more stamps lack' in sequence.description


def test_bad_bags_and_frames_are_named(tmp_path: Path) -> None:
    directory = written(tmp_path / 'room')
    with pytest.raises(SequenceError, match='not empty'):
        BagWriter(directory, INFO)
    with pytest.raises(SequenceError, match=r'/robot/camera/depth/image_rect'):
        BagSequence(directory, SequenceReading(namespace='robot'))
    shutil.rmtree(directory / 'bag')
    with pytest.raises(SequenceError, match='is not a bag: there is no'):
        BagSequence(directory)
    (directory / 'text.mcap').write_text('this is no bag, but long enough to hold a magic')
    with pytest.raises(SequenceError, match=r'text\.mcap'):
        BagSequence(directory)
    writer = BagWriter(tmp_path / 'other', INFO)
    writer.write(FRAMES[1])
    with pytest.raises(SequenceError, match='stamp 1000000000 ns does not come after'):
        writer.write(FRAMES[0])
