from pathlib import Path

import numpy as np
import pytest
from support.world.frames import FRAMES, INFO, MOUNT

from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.sequences.bag_reader import BagSequence
from osmabench_ros.sequences.layout import OSMA
from osmabench_ros.sequences.reader import FolderSequence
from osmabench_ros.sequences.recorded import RecordedFrames, open_sequence
from osmabench_ros.sequences.writer import BagWriter, open_writer
from osmabench_ros.simulation.frame_source import FrameSource


def source_of(directory: Path, info: object = INFO) -> FrameSource:
    writer = open_writer(directory, OSMA, info)  # type: ignore[arg-type]
    for frame in FRAMES:
        writer.write(frame)
    writer.close()
    return RecordedFrames(FolderSequence(directory))


def test_plays_all_frames_with_their_stamps_and_the_base(tmp_path: Path) -> None:
    source = source_of(tmp_path / 'room')
    assert (source.dataset, source.scene, len(source)) == ('small', 'room', 4)
    assert source.frame_rate_hz == pytest.approx(25.0)
    np.testing.assert_array_equal(source.base_to_camera.matrix, MOUNT.matrix)
    for index, frame in enumerate(FRAMES):
        played = source.frame(index).frame
        assert (played.index, played.stamp_ns) == (index, frame.stamp_ns)
        assert played.base_pose is not None
        assert frame.base_pose is not None
        np.testing.assert_allclose(played.base_pose.matrix, frame.base_pose.matrix, atol=1e-12)
    source.close()


def test_frames_may_be_asked_for_again_and_out_of_order(tmp_path: Path) -> None:
    source = source_of(tmp_path / 'room')
    assert [source.frame(index).frame.index for index in (2, 2, 0, 3, 1)] == [2, 2, 0, 3, 1]
    with pytest.raises(IndexError, match='frame 4 of 4'):
        source.frame(4)


def test_a_camera_on_no_robot_is_its_own_base(tmp_path: Path) -> None:
    source = source_of(tmp_path / 'room', None)
    expected = optical_pose_in_link().matrix
    np.testing.assert_array_equal(source.base_to_camera.matrix, expected)
    assert source.label_set.classes == ()
    assert source.frame(0).frame.semantic is None


def test_opens_folders_and_bags(tmp_path: Path) -> None:
    for writer in (BagWriter(tmp_path / 'bag', INFO), open_writer(tmp_path / 'osma', OSMA, INFO)):
        writer.write(FRAMES[0])
        writer.close()
    assert isinstance(open_sequence(tmp_path / 'osma'), FolderSequence)
    for path in ('bag', 'bag/bag', 'bag/bag/bag.mcap'):
        sequence = open_sequence(tmp_path / path)
        assert isinstance(sequence, BagSequence)
        assert [frame.stamp_ns for frame in sequence] == [FRAMES[0].stamp_ns]
    with pytest.raises(SequenceError, match='does not exist'):
        open_sequence(tmp_path / 'nowhere')
