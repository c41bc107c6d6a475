import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.world.frames import CAMERA, FRAMES, INFO, LABELS

from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.layout import OSMA, SCANNET, SequenceFormat
from osmabench_ros.sequences.reader import FolderSequence
from osmabench_ros.sequences.writer import open_writer


@pytest.fixture(params=[OSMA, SCANNET], ids=['osma', 'scannet'])
def form(request: pytest.FixtureRequest) -> SequenceFormat:
    return request.param.model_copy(update={'color': 'png'})


@pytest.fixture
def directory(tmp_path: Path, form: SequenceFormat) -> Path:
    writer = open_writer(tmp_path / 'room', form, INFO)
    for frame in FRAMES:
        writer.write(frame)
    writer.close()
    return tmp_path / 'room'


def test_reads_back_what_was_written(directory: Path, form: SequenceFormat) -> None:
    sequence = FolderSequence(directory)
    assert (sequence.intrinsics, len(sequence)) == (CAMERA, 4)
    assert sequence.info.label_set == LABELS
    for read, frame in zip(sequence, FRAMES, strict=True):
        assert (read.index, read.stamp_ns) == (frame.index, frame.stamp_ns)
        np.testing.assert_allclose(read.camera_pose.matrix, frame.camera_pose.matrix, atol=1e-12)
        assert read.base_pose is not None
        assert frame.base_pose is not None
        np.testing.assert_allclose(read.base_pose.matrix, frame.base_pose.matrix, atol=1e-12)
        np.testing.assert_array_equal(read.color, frame.color)
        np.testing.assert_array_equal(read.semantic, frame.semantic)
        np.testing.assert_array_equal(read.instance, frame.instance)
        assert np.isnan(read.depth_m[0, :3]).all()
        half_step = 0.51 / form.depth_scale
        np.testing.assert_allclose(read.depth_m[1:], frame.depth_m[1:], atol=half_step)


def test_a_foreign_sequence_is_recognised(directory: Path, form: SequenceFormat) -> None:
    for name in ('sequence.json', 'timestamps.txt'):
        (directory / name).unlink()
    sequence = FolderSequence(directory, frame_rate_hz=5.0)
    read = list(sequence)[1]
    assert read.stamp_ns == 1_200_000_000
    assert sequence.info.scene == 'room'
    assert read.base_pose is None
    expected = FRAMES[1].camera_pose.matrix
    np.testing.assert_allclose(read.camera_pose.matrix, expected, atol=1e-12)
    np.testing.assert_allclose(read.depth_m[1:], FRAMES[1].depth_m[1:], atol=1e-3)


def depth_file(directory: Path, index: int) -> Path:
    osma = directory / f'results/depth{index:06d}.png'
    return osma if osma.exists() else directory / f'depth/{index}.png'


def test_saturated_depth_of_others_is_invalid(directory: Path) -> None:
    path = depth_file(directory, 2)
    pixels = np.array(Image.open(path))
    pixels[5, 5:7] = 65535, 65534
    Image.fromarray(pixels.astype(np.uint16)).save(path)
    depth = list(FolderSequence(directory))[2].depth_m
    assert np.isnan(depth[5, 5])
    assert np.isfinite(depth[5, 6])


def test_class_0_stays_a_class_where_it_has_a_name(tmp_path: Path, directory: Path) -> None:
    path = directory / 'embed_semseg_classes.json'
    names = {'classes': [{'id': 0, 'name': 'other'}, {'id': 1, 'name': 'Coffee_Table'}]}
    path.write_text(json.dumps(names))
    sequence = FolderSequence(directory)
    assert sequence.info.label_set is not None
    assert sequence.info.label_set.name_of(1) == 'coffee table'
    semantic = sequence.frame(0).semantic
    assert semantic is not None
    assert semantic[1, :2].tolist() == [0, 0]


def test_a_missing_image_is_named(directory: Path) -> None:
    path = depth_file(directory, 2)
    path.unlink()
    with pytest.raises(SequenceError, match=f'frame 2: .*{path.name} is missing'):
        FolderSequence(directory)


def test_an_image_without_a_pose_is_named(directory: Path) -> None:
    path = depth_file(directory, 3)
    extra = path.with_name(path.name.replace('3', '4'))
    shutil.copy(path, extra)
    with pytest.raises(SequenceError, match=f'frame 4: .*{extra.name} has no pose'):
        FolderSequence(directory)


def test_a_truncated_image_is_named(directory: Path) -> None:
    path = depth_file(directory, 1)
    path.write_bytes(path.read_bytes()[:80])
    sequence = FolderSequence(directory)
    sequence.frame(0)
    with pytest.raises(SequenceError, match=f'frame 1: .*{path.name} is broken'):
        sequence.frame(1)


def test_an_image_of_another_size_is_named(directory: Path) -> None:
    path = depth_file(directory, 1)
    Image.fromarray(np.ones((5, 6), np.uint16)).save(path)
    with pytest.raises(SequenceError, match='frame 1: .* has 6 x 5 pixels, the camera 16 x 12'):
        FolderSequence(directory).frame(1)


def test_a_pose_that_is_none_is_named(directory: Path) -> None:
    if (directory / 'traj.txt').exists():
        path = directory / 'traj.txt'
        lines = path.read_text().splitlines()
        lines[1] = ' '.join(['-inf'] * 16)
        path.write_text('\n'.join(lines))
    else:
        path = directory / 'pose/1.txt'
        path.write_text('\n'.join([' '.join(['-inf'] * 4)] * 4))
    with pytest.raises(SequenceError, match=f'{path.name}.*frame 1: .*finite'):
        FolderSequence(directory)


def test_stamps_must_match_the_frames_and_ascend(directory: Path) -> None:
    path = directory / 'timestamps.txt'
    path.write_text('1\n2\n3\n')
    with pytest.raises(SequenceError, match='3 stamps for 4 poses; frame 3'):
        FolderSequence(directory)
    path.write_text('1\n2\n2\n3\n')
    with pytest.raises(SequenceError, match='must ascend'):
        FolderSequence(directory)


def test_what_is_no_sequence_says_what_one_is(tmp_path: Path) -> None:
    with pytest.raises(SequenceError, match='is not a sequence; it must hold'):
        FolderSequence(tmp_path)
