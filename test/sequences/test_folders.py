"""Sequences in the folder layouts of OSMa-Bench, ScanNet and methods."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml
from PIL import Image
from support.world import frames as small
from support.world.frames import (
    CAMERA,
    FRAMES,
    INFO,
    LABELS,
    MOUNT,
    START_NS,
    STEP_NS,
    assert_same_frame,
    write_frames,
)

from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import ConfigError, SequenceError
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK, World
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.stamped_trajectory import read_tum
from osmabench_ros.mappers.offline_method import load_method
from osmabench_ros.sequences import recorded
from osmabench_ros.sequences.layout import OSMA, SCANNET, SequenceFormat
from osmabench_ros.sequences.recorded import FolderSequence
from osmabench_ros.sequences.topics import SequenceReading
from osmabench_ros.sequences.writer import BagWriter, FolderWriter


def write(directory, form=OSMA, info=INFO):
    small.write_frames(FolderWriter(directory, form, info))
    return directory


def pixels(path):
    return np.array(Image.open(path))


def test_osma_layout_has_the_files_that_its_readers_look_for(tmp_path):
    directory = write(tmp_path / 'room')
    ends = {'frame': 'jpg', 'depth': 'png', 'semantic': 'png', 'instance': 'png'}
    assert {path.name for path in (directory / 'results').iterdir()} == {
        f'{kind}{index:06d}.{end}' for index in range(4) for kind, end in ends.items()
    }
    params = yaml.safe_load((directory / 'camera_params.yaml').read_text())['camera_params']
    assert params == {
        'image_height': 12, 'image_width': 16, 'fx': 9.5, 'fy': 10.25, 'cx': 7.5, 'cy': 5.5,
        'png_depth_scale': 6553.5, 'crop_edge': 0,
    }  # fmt: skip
    classes = json.loads((directory / 'embed_semseg_classes.json').read_text())['classes']
    assert [(item['id'], item['name']) for item in classes] == [(1, 'chair'), (2, 'coffee table')]
    stamps = (directory / 'timestamps.txt').read_text().split()
    assert [int(stamp) for stamp in stamps] == [START_NS + i * STEP_NS for i in range(4)]
    # Depth that is invalid or would saturate is 0.
    depth = pixels(directory / 'results/depth000000.png')
    assert depth.dtype == np.uint16
    assert depth[0, :4].tolist() == [0, 0, 0, 0]
    expected = np.rint(FRAMES[0].depth_m[1:].astype(np.float64) * 6553.5)
    np.testing.assert_array_equal(depth[1:], expected)
    # The trajectory is y-up with optical axes: the floor is 1.2 m below the camera.
    poses = np.loadtxt(directory / 'traj.txt').reshape(-1, 4, 4)
    np.testing.assert_allclose(poses[:, 1, 3], 1.2)
    point = FRAMES[2].camera_pose.transform(np.array([0.4, 0.3, 2.0]))
    x, y, z = poses[2][:3, :3] @ [0.4, 0.3, 2.0] + poses[2][:3, 3]
    np.testing.assert_allclose([x, -z, y], point, atol=1e-12)
    assert sha256_of(write(tmp_path / 'two' / 'room')) == sha256_of(directory)


def test_scannet_layout(tmp_path):
    directory = write(tmp_path / 'room', SCANNET)
    pose = np.loadtxt(directory / 'pose/3.txt')
    np.testing.assert_array_equal(pose, FRAMES[3].camera_pose.matrix)
    intrinsic = np.loadtxt(directory / 'intrinsic/intrinsic_depth.txt')
    np.testing.assert_array_equal(intrinsic[:3, :3], CAMERA.matrix)
    expected = np.rint(FRAMES[3].depth_m[1:].astype(np.float64) * 1000)
    np.testing.assert_array_equal(pixels(directory / 'depth/3.png')[1:], expected)
    assert pixels(directory / 'depth/3.png')[0, 3] == 10500
    assert (directory / 'color/0.jpg').exists()
    np.testing.assert_array_equal(pixels(directory / 'instance/1.png'), FRAMES[1].instance)


def test_tum_layout_names_images_by_their_stamps_and_is_not_read(tmp_path):
    form = SequenceFormat(layout='tum', world=World.Z_UP, depth_scale=5000, color='png')
    directory = write(tmp_path / 'room', form)
    path = read_tum(directory / 'groundtruth.txt')
    assert path.stamps_ns.tolist() == [frame.stamp_ns for frame in FRAMES]
    matrix = FRAMES[3].camera_pose.matrix
    np.testing.assert_allclose(path.pose(3).matrix, matrix, rtol=0, atol=1e-7)
    for kind in ('rgb', 'depth'):
        names = sorted(float(item.stem) for item in (directory / f'{kind}_sync').glob('*.png'))
        assert names == [frame.stamp_ns / 1e9 for frame in FRAMES]
    last = sorted((directory / 'depth_sync').iterdir())[-1]
    expected = np.rint(FRAMES[3].depth_m[1:].astype(np.float64) * 5000)
    np.testing.assert_array_equal(pixels(last)[1:], np.where(expected < 65535, expected, 0))
    assert not (directory / 'label').exists()
    with pytest.raises(SequenceError, match='tum, which is not read'):
        FolderSequence(directory)


def test_a_method_gets_no_ground_truth(tmp_path):
    directory = write(tmp_path / 'room', load_method('conceptgraphs').sequence, None)
    names = {path.name[:5] for path in (directory / 'results').iterdir()}
    assert names == {'frame', 'depth'}
    assert not (directory / 'embed_semseg_classes.json').exists()


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'stamp_ns': START_NS}, 'frame 1: stamp'),
        ({'instance': np.full((12, 16), 70_000, np.int32)}, 'frame 1: instance ids 70000'),
        ({'intrinsics': Intrinsics(16, 12, 9.0, 9.0, 7.5, 5.5)}, 'frame 1: the camera changed'),
    ],
)
def test_a_frame_that_does_not_fit_is_named(tmp_path, change, message):
    writer = FolderWriter(tmp_path / 'room', OSMA, INFO)
    writer.write(FRAMES[0])
    with pytest.raises(SequenceError, match=message):
        writer.write(replace(FRAMES[1], **change))  # type: ignore[arg-type]
    with pytest.raises(SequenceError, match='not empty'):
        FolderWriter(tmp_path / 'room', OSMA)
    with pytest.raises(SequenceError, match='none was written'):
        FolderWriter(tmp_path / 'empty', OSMA).close()


@pytest.fixture(params=[OSMA, SCANNET], ids=['osma', 'scannet'])
def form(request):
    return request.param.model_copy(update={'color': 'png'})


@pytest.fixture
def directory(tmp_path, form):
    return write(tmp_path / 'room', form)


def test_frames_come_back(directory, form):
    sequence = FolderSequence(directory)
    assert (sequence.intrinsics, len(sequence)) == (CAMERA, 4)
    assert sequence.info.label_set == LABELS
    for read, frame in zip(sequence, FRAMES, strict=True):
        assert_same_frame(read, frame)
        assert np.isnan(read.depth_m[0, :3]).all()
        half_step = 0.51 / form.depth_scale
        np.testing.assert_allclose(read.depth_m[1:], frame.depth_m[1:], atol=half_step)


def test_a_third_party_sequence_is_recognised(directory):
    for name in ('sequence.json', 'timestamps.txt'):
        (directory / name).unlink()
    names = {'classes': [{'id': 0, 'name': 'other'}, {'id': 1, 'name': 'Coffee_Table'}]}
    (directory / 'embed_semseg_classes.json').write_text(json.dumps(names))
    depth = pixels(depth_file(directory, 1))
    depth[5, 5:7] = 65535, 65534
    Image.fromarray(depth).save(depth_file(directory, 1))
    sequence = FolderSequence(directory, frame_rate_hz=5.0)
    read = list(sequence)[1]
    assert read.stamp_ns == 1_200_000_000
    assert (sequence.info.scene, read.base_pose) == ('room', None)
    expected = FRAMES[1].camera_pose.matrix
    np.testing.assert_allclose(read.camera_pose.matrix, expected, atol=1e-12)
    np.testing.assert_allclose(read.depth_m[6:], FRAMES[1].depth_m[6:], atol=1e-3)
    # Saturated depth is invalid; class 0 stays a class where it has a name.
    assert np.isfinite(read.depth_m[5, 5:7]).tolist() == [False, True]
    assert read.semantic[1, :2].tolist() == [0, 0]
    assert sequence.info.label_set.name_of(1) == 'coffee table'


def depth_file(directory, index):
    osma = directory / f'results/depth{index:06d}.png'
    return osma if osma.exists() else directory / f'depth/{index}.png'


def spoil_pose(directory):
    path = directory / 'traj.txt'
    if path.exists():
        lines = path.read_text().splitlines()
        path.write_text('\n'.join([lines[0], ' '.join(['-inf'] * 16), *lines[2:]]))
    else:
        (directory / 'pose/1.txt').write_text('-inf ' * 16)


def add_depth(directory):
    last = depth_file(directory, 3)
    shutil.copy(last, last.with_name(last.name.replace('3', '4')))


def cut_depth(directory):
    path = depth_file(directory, 1)
    path.write_bytes(path.read_bytes()[:80])


DAMAGE = {
    'missing image': (lambda room: depth_file(room, 2).unlink(), 'frame 2: .*2.png is missing'),
    'image without pose': (add_depth, 'frame 4: .*4.png has no pose'),
    'truncated image': (cut_depth, 'frame 1: .*1.png is broken'),
    'other size': (
        lambda room: Image.fromarray(np.ones((5, 6), np.uint16)).save(depth_file(room, 1)),
        'frame 1: .* has 6 x 5 pixels, the camera 16 x 12',
    ),
    'infinite pose': (spoil_pose, r'(traj|1)\.txt.*frame 1: .*finite'),
    'few stamps': (
        lambda room: (room / 'timestamps.txt').write_text('1\n2\n3\n'),
        '3 stamps for 4 poses; frame 3',
    ),
    'equal stamps': (
        lambda room: (room / 'timestamps.txt').write_text('1\n2\n2\n3\n'), 'must ascend',
    ),
    'other format': (
        lambda room: (room / 'sequence.json').write_text('{"format": "x"}'),
        r'sequence\.json is malformed: .*format',
    ),
    'classes': (
        lambda room: (room / 'embed_semseg_classes.json').write_text('[1]'),
        r'classes\.json is malformed',
    ),
    'no sequence': (shutil.rmtree, 'is not a sequence; it must hold'),
}  # fmt: skip


@pytest.mark.parametrize('name', DAMAGE)
def test_damage_is_named(directory, name):
    damage, expected = DAMAGE[name]
    damage(directory)
    with pytest.raises(SequenceError, match=expected):
        list(FolderSequence(directory))


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
