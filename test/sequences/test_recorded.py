import numpy as np
import pytest
from support.world.frames import FRAMES, INFO, MOUNT, write_frames

from osmabench_ros.errors import ConfigError, SequenceError
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.sequences import recorded
from osmabench_ros.sequences.layout import OSMA
from osmabench_ros.sequences.topics import SequenceReading
from osmabench_ros.sequences.writer import BagWriter, FolderWriter


def test_frames_are_played_with_stamps_and_base_also_out_of_order(tmp_path):
    write_frames(FolderWriter(tmp_path / 'room', OSMA, INFO))
    source = recorded.RecordedFrames(recorded.FolderSequence(tmp_path / 'room'))
    assert (source.dataset, source.scene, len(source)) == ('small', 'room', 4)
    assert source.frame_rate_hz == pytest.approx(25.0)
    np.testing.assert_array_equal(source.base_to_camera.matrix, MOUNT.matrix)
    for index in (0, 1, 2, 2, 0, 3, 1):
        played, frame = source.frame(index).frame, FRAMES[index]
        assert (played.index, played.stamp_ns) == (index, frame.stamp_ns)
        np.testing.assert_allclose(played.base_pose.matrix, frame.base_pose.matrix, atol=1e-12)
    with pytest.raises(IndexError, match='frame 4 of 4'):
        source.frame(4)
    source.close()


def test_a_camera_on_no_robot_is_its_own_base(tmp_path):
    write_frames(FolderWriter(tmp_path / 'room', OSMA))
    source = recorded.RecordedFrames(recorded.FolderSequence(tmp_path / 'room'))
    expected = OPTICAL_IN_LINK.matrix
    np.testing.assert_array_equal(source.base_to_camera.matrix, expected)
    assert source.label_set.classes == ()
    assert source.frame(0).frame.semantic is None


def test_folders_and_bags_are_opened(tmp_path):
    write_frames(BagWriter(tmp_path / 'bag', INFO))
    write_frames(FolderWriter(tmp_path / 'osma', OSMA, INFO))
    assert isinstance(recorded.open_sequence(tmp_path / 'osma'), recorded.FolderSequence)
    for path in ('bag', 'bag/bag', 'bag/bag/bag.mcap'):
        sequence = recorded.open_sequence(tmp_path / path)
        assert isinstance(sequence, recorded.BagSequence)
        assert sequence.stamps_ns == [frame.stamp_ns for frame in FRAMES]
    with pytest.raises(SequenceError, match='does not exist'):
        recorded.open_sequence(tmp_path / 'nowhere')
    with pytest.raises(ConfigError, match='topics can be named only for bags'):
        recorded.open_sequence(tmp_path, SequenceReading(color='/rgb'))
