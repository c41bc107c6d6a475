"""Frames from bags of real robots: other names, stamps that differ, poses from TF, SQLite."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from support.world.frames import FRAMES, MOUNT

from osmabench_ros.base.contract import CAMERA_FRAME, CAMERA_POSE, COLOR, DEPTH, DEPTH_INFO, TYPES
from osmabench_ros.errors import ConfigError, SequenceError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences.bag_messages import make_codec
from osmabench_ros.sequences.bag_reader import BagSequence
from osmabench_ros.sequences.reading import TF, SequenceReading, matched, reading_from_text
from osmabench_ros.sequences.recorded import open_sequence

STORE = get_typestore(Stores.ROS2_HUMBLE)
NAMES = {COLOR: '/cam/rgb', DEPTH: '/cam/depth', DEPTH_INFO: '/cam/info'}
LATE_NS = {COLOR: 0, DEPTH: 3_000_000, DEPTH_INFO: -2_000_000}
ROBOT = SequenceReading(color='/cam/rgb', depth='/cam/depth', camera_info='/cam/info')


def with_changes(**changes: Any) -> SequenceReading:
    return ROBOT.model_copy(update=changes)


def make(name: str, *values: Any) -> Any:
    return STORE.types[name](*values)


def header(stamp_ns: int, frame_id: str) -> Any:
    stamp = make('builtin_interfaces/msg/Time', *divmod(stamp_ns, 10**9))
    return make('std_msgs/msg/Header', stamp, frame_id)


def transform(stamp_ns: int, parent: str, child: str, pose: Pose) -> Any:
    place = make('geometry_msgs/msg/Vector3', *pose.translation.tolist())
    turn = make('geometry_msgs/msg/Quaternion', *pose.quaternion.tolist())
    return make(
        'geometry_msgs/msg/TransformStamped',
        header(stamp_ns, parent),
        child,
        make('geometry_msgs/msg/Transform', place, turn),
    )


def odometry(stamp_ns: int, pose: Pose) -> Any:
    point = make('geometry_msgs/msg/Point', *pose.translation.tolist())
    turn = make('geometry_msgs/msg/Quaternion', *pose.quaternion.tolist())
    zero = make('geometry_msgs/msg/Vector3', 0.0, 0.0, 0.0)
    return make(
        'nav_msgs/msg/Odometry',
        header(stamp_ns, 'odom'),
        'base_link',
        make(
            'geometry_msgs/msg/PoseWithCovariance',
            make('geometry_msgs/msg/Pose', point, turn),
            np.zeros(36),
        ),
        make(
            'geometry_msgs/msg/TwistWithCovariance',
            make('geometry_msgs/msg/Twist', zero, zero),
            np.zeros(36),
        ),
    )


def robot_bag(folder: Path, *, tf: bool, static: bool = True) -> Path:
    """Write frames of a robot that knows its base; stamps of a frame differ by milliseconds."""
    codec = make_codec()
    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as bag:
        topics = {
            part: bag.add_connection(name, TYPES[part], typestore=STORE)
            for part, name in NAMES.items()
        }
        moving = bag.add_connection(
            '/tf' if tf else '/odom',
            'tf2_msgs/msg/TFMessage' if tf else 'nav_msgs/msg/Odometry',
            typestore=STORE,
        )
        if static:
            fixed = bag.add_connection('/tf_static', 'tf2_msgs/msg/TFMessage', typestore=STORE)
            message = make(
                'tf2_msgs/msg/TFMessage', [transform(0, 'base_link', CAMERA_FRAME, MOUNT)]
            )
            bag.write(fixed, 1, STORE.serialize_cdr(message, 'tf2_msgs/msg/TFMessage'))
        for frame in FRAMES:
            data = codec.serialized(frame)
            for part, connection in topics.items():
                stamp_ns = frame.stamp_ns + LATE_NS[part]
                moved = STORE.deserialize_cdr(data[part], TYPES[part])
                moved.header.stamp.sec, moved.header.stamp.nanosec = divmod(stamp_ns, 10**9)
                bag.write(connection, frame.stamp_ns, STORE.serialize_cdr(moved, TYPES[part]))
        # Poses between the frames, on a line: interpolated ones are known.
        for step in range(-1, 9):
            stamp_ns = FRAMES[0].stamp_ns + step * 20_000_000 + 5_000_000
            pose = Pose.from_yaw(0.0, (stamp_ns / 1e9, 0.0, 0.0))
            if tf:
                message = make(
                    'tf2_msgs/msg/TFMessage', [transform(stamp_ns, 'odom', 'base_link', pose)]
                )
            else:
                message = odometry(stamp_ns, pose)
            bag.write(moving, stamp_ns, STORE.serialize_cdr(message, moving.msgtype))
    return folder


@pytest.mark.parametrize('tf', [True, False], ids=['tf', 'odometry'])
def test_a_robots_bag_gives_frames_with_interpolated_poses(tmp_path: Path, tf: bool) -> None:
    reading = with_changes(pose=TF if tf else '/odom', tolerance_s=0.01)
    folder = robot_bag(tmp_path / 'bag', tf=tf)
    sequence = BagSequence(folder, reading)
    assert sequence.stamps_ns == [frame.stamp_ns for frame in FRAMES]
    for read, frame in zip(sequence, FRAMES, strict=True):
        np.testing.assert_array_equal(read.color, frame.color)
        np.testing.assert_array_equal(read.depth_m, frame.depth_m)
        expected = Pose.from_yaw(0.0, (frame.stamp_ns / 1e9, 0.0, 0.0)) @ MOUNT
        np.testing.assert_allclose(read.camera_pose.matrix, expected.matrix, atol=1e-9)
        assert read.semantic is None
    with pytest.raises(SequenceError, match='must have equal header stamps, or give a tolerance'):
        BagSequence(folder, reading.model_copy(update={'tolerance_s': 0.0}))


def compressed(message: Any, form: str, data: bytes) -> bytes:
    kind = 'sensor_msgs/msg/CompressedImage'
    packed = make(kind, message.header, form, np.frombuffer(data, np.uint8))
    return bytes(STORE.serialize_cdr(packed, kind))


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, 'PNG')
    return buffer.getvalue()


def test_compressed_images_of_a_bag_make_frames(tmp_path: Path) -> None:
    codec, kind = make_codec(), 'sensor_msgs/msg/CompressedImage'
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        topics = {
            COLOR: bag.add_connection('/rgb/compressed', kind, typestore=STORE),
            DEPTH: bag.add_connection('/depth/compressedDepth', kind, typestore=STORE),
            DEPTH_INFO: bag.add_connection('/info', TYPES[DEPTH_INFO], typestore=STORE),
            CAMERA_POSE: bag.add_connection('/pose', TYPES[CAMERA_POSE], typestore=STORE),
        }
        for frame in FRAMES:
            data = dict(codec.serialized(frame))
            millimetres = np.nan_to_num(frame.depth_m, nan=0, posinf=0) * 1000
            for part, form, content in (
                (COLOR, 'rgb8; png compressed bgr8', png(frame.color)),
                (
                    DEPTH,
                    '16UC1; compressedDepth png',
                    bytes(12) + png(millimetres.astype(np.uint16)),
                ),
            ):
                message = STORE.deserialize_cdr(data[part], TYPES[part])
                data[part] = compressed(message, form, content)
            for part, connection in topics.items():
                bag.write(connection, frame.stamp_ns, data[part])
    reading = reading_from_text(
        '{color: /rgb/compressed, depth: /depth/compressedDepth, camera_info: /info, pose: /pose}'
    )
    sequence = open_sequence(tmp_path / 'bag', reading)
    for read, frame in zip(sequence, FRAMES, strict=True):
        np.testing.assert_array_equal(read.color, frame.color)
        seen = np.isfinite(read.depth_m)
        assert seen.any()
        np.testing.assert_allclose(read.depth_m[seen], frame.depth_m[seen], atol=1.1e-3)


def test_how_a_bag_is_read_comes_from_text_or_a_file(tmp_path: Path) -> None:
    said = '{color: /rgb, pose: tf, tolerance_s: 0.02, namespace: robot}'
    file = tmp_path / 'topics.yaml'
    file.write_text(said)
    reading = reading_from_text(str(file))
    assert reading == reading_from_text(said)
    assert (reading.color, reading.pose, reading.depth) == ('/rgb', TF, DEPTH)
    assert (reading.tolerance_s, reading.namespace) == (0.02, 'robot')
    assert reading_from_text('') == SequenceReading()
    for text, reason in (
        ('{colour: /rgb}', 'Did you mean "color"'),
        ('{color: ""}', 'color'),
        ('{tolerance_s: -1}', 'tolerance_s'),
        ('[1]', 'must be a mapping'),
        ('{', 'is not YAML'),
        ('absent.yaml', r'absent\.yaml does not exist'),
    ):
        with pytest.raises(
            ConfigError, match=reason if text == 'absent.yaml' else f'sequence_topics.*{reason}'
        ):
            reading_from_text(text)


def test_message_definitions_lie_beside_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'robot').mkdir()
    said = '{msg_paths: [msgs, /opt/msgs]}'
    (tmp_path / 'robot' / 'topics.yaml').write_text(said)
    monkeypatch.chdir(tmp_path)
    reading = reading_from_text('robot/topics.yaml')
    assert reading.msg_paths == (Path('robot/msgs'), Path('/opt/msgs'))
    assert reading_from_text(said).msg_paths == (Path('msgs'), Path('/opt/msgs'))


def test_topics_are_for_bags(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='topics can be named for bags alone'):
        open_sequence(tmp_path, SequenceReading(color='/rgb'))


def test_what_lacks_is_named(tmp_path: Path) -> None:
    folder = robot_bag(tmp_path / 'bag', tf=False, static=False)
    with pytest.raises(SequenceError, match=r'/camera/color/image_raw.*It has /cam/depth'):
        open_sequence(folder)
    named = with_changes(pose='/odom', tolerance_s=0.01)
    with pytest.raises(SequenceError, match=r'poses of "base_link", and /tf_static does not'):
        BagSequence(folder, named)
    with pytest.raises(SequenceError, match='TF knows no frame "camera_color_optical_frame"'):
        BagSequence(folder, with_changes(pose=TF))
    with pytest.raises(SequenceError, match='expected sensor_msgs/msg/Image'):
        BagSequence(folder, with_changes(pose='/odom', color='/odom'))


def test_stamps_are_matched_once_with_the_nearest() -> None:
    stamps = {'a': [10, 20, 30, 40], 'b': [11, 19, 52], 'c': [9, 21, 29, 41]}
    assert matched(stamps, 'a', 2) == [
        {'a': 10, 'b': 11, 'c': 9},
        {'a': 20, 'b': 19, 'c': 21},
    ]
    assert matched(stamps, 'a', 0) == []
    assert matched({'a': [1, 2, 3], 'b': [2]}, 'a', 5) == [{'a': 1, 'b': 2}]
    assert matched({'a': [1], 'b': []}, 'a', 5) == []
