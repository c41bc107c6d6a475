import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from support.world.frames import CAMERA, FRAMES, INFO, START_NS, STEP_NS

from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.axes import World
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.stamped_trajectory import read_tum
from osmabench_ros.mappers.offline.method import load_method
from osmabench_ros.sequences.layout import OSMA, SCANNET, SequenceFormat, SequenceInfo
from osmabench_ros.sequences.reader import FolderSequence
from osmabench_ros.sequences.writer import open_writer


def written(
    directory: Path, form: SequenceFormat = OSMA, info: SequenceInfo | None = INFO
) -> Path:
    writer = open_writer(directory, form, info)
    for frame in FRAMES:
        writer.write(frame)
    writer.close()
    return directory


def pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


def test_osma_layout_has_the_files_that_its_readers_look_for(tmp_path: Path) -> None:
    directory = written(tmp_path / 'room')
    names = {path.name for path in (directory / 'results').iterdir()}
    assert names == {
        f'{kind}{index:06d}.{end}'
        for index in range(4)
        for kind, end in (
            ('frame', 'jpg'),
            ('depth', 'png'),
            ('semantic', 'png'),
            ('instance', 'png'),
        )
    }
    params = yaml.safe_load((directory / 'camera_params.yaml').read_text())['camera_params']
    assert params == {
        'image_height': 12,
        'image_width': 16,
        'fx': 9.5,
        'fy': 10.25,
        'cx': 7.5,
        'cy': 5.5,
        'png_depth_scale': 6553.5,
        'crop_edge': 0,
    }
    classes = json.loads((directory / 'embed_semseg_classes.json').read_text())['classes']
    assert [(item['id'], item['name']) for item in classes] == [(1, 'chair'), (2, 'coffee table')]
    stamps = (directory / 'timestamps.txt').read_text().split()
    assert [int(stamp) for stamp in stamps] == [START_NS + i * STEP_NS for i in range(4)]


def test_osma_depth_that_is_invalid_or_would_saturate_is_0(tmp_path: Path) -> None:
    depth = pixels(written(tmp_path / 'room') / 'results/depth000000.png')
    assert depth.dtype == np.uint16
    assert depth[0, :4].tolist() == [0, 0, 0, 0]
    expected = np.rint(FRAMES[0].depth_m[1:].astype(np.float64) * 6553.5)
    np.testing.assert_array_equal(depth[1:], expected)


def test_osma_trajectory_is_y_up_with_optical_axes(tmp_path: Path) -> None:
    rows = np.loadtxt(written(tmp_path / 'room') / 'traj.txt').reshape(-1, 4, 4)
    assert len(rows) == 4
    # The robot stands on the floor, 1.2 m below the camera, and up is y.
    np.testing.assert_allclose(rows[:, 1, 3], 1.2)
    pose = FRAMES[2].camera_pose
    point = pose.transform(np.array([0.4, 0.3, 2.0]))
    x, y, z = rows[2][:3, :3] @ [0.4, 0.3, 2.0] + rows[2][:3, 3]
    np.testing.assert_allclose([x, -z, y], point, atol=1e-12)


def test_scannet_layout(tmp_path: Path) -> None:
    directory = written(tmp_path / 'room', SCANNET)
    pose = np.loadtxt(directory / 'pose/3.txt')
    np.testing.assert_array_equal(pose, FRAMES[3].camera_pose.matrix)
    intrinsic = np.loadtxt(directory / 'intrinsic/intrinsic_depth.txt')
    np.testing.assert_array_equal(intrinsic[:3, :3], CAMERA.matrix)
    expected = np.rint(FRAMES[3].depth_m[1:].astype(np.float64) * 1000)
    np.testing.assert_array_equal(pixels(directory / 'depth/3.png')[1:], expected)
    assert pixels(directory / 'depth/3.png')[0, 3] == 10500
    assert (directory / 'color/0.jpg').exists()
    np.testing.assert_array_equal(pixels(directory / 'instance/1.png'), FRAMES[1].instance)


def test_tum_layout_names_images_by_their_stamps_and_is_not_read(tmp_path: Path) -> None:
    form = SequenceFormat(layout='tum', world=World.Z_UP, depth_scale=5000, color='png')
    directory = written(tmp_path / 'room', form)
    path = read_tum(directory / 'groundtruth.txt')
    assert path.stamps_ns.tolist() == [frame.stamp_ns for frame in FRAMES]
    np.testing.assert_allclose(
        path.pose(3).matrix, FRAMES[3].camera_pose.matrix, rtol=0, atol=1e-7
    )
    for kind in ('rgb', 'depth'):
        names = sorted(float(item.stem) for item in (directory / f'{kind}_sync').glob('*.png'))
        assert names == [frame.stamp_ns / 1e9 for frame in FRAMES]
    last = sorted((directory / 'depth_sync').iterdir())[-1]
    expected = np.rint(FRAMES[3].depth_m[1:].astype(np.float64) * 5000)
    np.testing.assert_array_equal(pixels(last)[1:], np.where(expected < 65535, expected, 0))
    assert not (directory / 'label').exists()
    with pytest.raises(SequenceError, match='tum, which is written for methods and not read'):
        FolderSequence(directory)


def test_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = written(tmp_path / 'one' / 'room'), written(tmp_path / 'two' / 'room')
    assert sha256_of(one) == sha256_of(two)


def test_a_method_gets_no_ground_truth(tmp_path: Path) -> None:
    directory = written(tmp_path / 'room', load_method('conceptgraphs').sequence, None)
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
def test_a_frame_that_does_not_fit_is_named(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    writer = open_writer(tmp_path / 'room', OSMA, INFO)
    writer.write(FRAMES[0])
    with pytest.raises(SequenceError, match=message):
        writer.write(replace(FRAMES[1], **change))  # type: ignore[arg-type]


def test_refuses_to_overwrite_and_to_end_without_frames(tmp_path: Path) -> None:
    directory = written(tmp_path / 'room')
    with pytest.raises(SequenceError, match='not empty'):
        open_writer(directory, OSMA)
    with pytest.raises(SequenceError, match='none was written'):
        open_writer(tmp_path / 'empty', OSMA).close()
