"""Frames and poses from our bags, and from bags of robots with other names and stamps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin
from support.images import encoded_image
from support.world import frames as small
from support.world.bags import (
    S,
    header,
    make,
    odometry,
    pose_message,
    pose_stamped,
    tf,
    transform,
    write_messages,
)
from support.world.frames import CAMERA, FRAMES, INFO, LABELS, MOUNT, assert_same_frame

from osmabench_ros.base.contract import CAMERA_FRAME, CAMERA_POSE, COLOR, DEPTH, DEPTH_INFO, TYPES
from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import ConfigError, ContractError, SequenceError
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.runs.bag_content import read_trajectory
from osmabench_ros.sequences.bag_messages import make_codec
from osmabench_ros.sequences.recorded import BagSequence, open_sequence
from osmabench_ros.sequences.topics import (
    TF,
    SequenceReading,
    match_stamps,
    read_transforms,
    reading_from_text,
    trajectory_of,
)
from osmabench_ros.sequences.writer import BagWriter

NAMES = {COLOR: '/cam/rgb', DEPTH: '/cam/depth', DEPTH_INFO: '/cam/info'}
LATE_NS = {COLOR: 0, DEPTH: 3_000_000, DEPTH_INFO: -2_000_000}
ROBOT = SequenceReading(color='/cam/rgb', depth='/cam/depth', camera_info='/cam/info')


def write_frames(directory, frames=FRAMES):
    small.write_frames(BagWriter(directory, INFO), frames)
    return directory


def messages_of(frame):
    codec = make_codec()
    data = codec.serialize(frame)
    return {topic: codec.typestore.deserialize_cdr(item, TYPES[topic])
            for topic, item in data.items()}  # fmt: skip


def test_frames_come_back_without_loss_and_give_the_same_bytes(tmp_path):
    sequence = BagSequence(write_frames(tmp_path / 'one' / 'room'))
    assert (len(sequence), sequence.intrinsics, sequence.cut_off) == (4, CAMERA, '')
    assert sequence.info.label_set == LABELS
    for read, frame in zip(sequence, FRAMES, strict=True):
        assert_same_frame(read, frame)
        np.testing.assert_array_equal(read.depth_m, frame.depth_m)
    again = write_frames(tmp_path / 'two' / 'room')
    assert sha256_of(again) == sha256_of(tmp_path / 'one' / 'room')


def test_a_truncated_bag_is_read_as_far_as_it_goes_and_says_so(tmp_path):
    camera = Intrinsics(640, 480, 300.0, 300.0, 319.5, 239.5)
    frames = [  # each fills a chunk
        Frame(index, 10**9 + index, FRAMES[0].camera_pose, camera,
              np.full((480, 640, 3), index, np.uint8), np.ones((480, 640), np.float32))
        for index in range(4)
    ]  # fmt: skip
    file = write_frames(tmp_path / 'room', frames) / 'bag' / 'bag.mcap'
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 5 // 8])
    sequence = BagSequence(tmp_path / 'room')
    assert [frame.color[0, 0, 0] for frame in sequence] == [0, 1]
    assert 'cut off after 2 frames (bag.mcap is damaged: ' in sequence.description
    file.write_bytes(data[:400])
    with pytest.raises(SequenceError, match=r'no message on /camera/color/image_raw.*cut off'):
        BagSequence(tmp_path / 'room')


def test_a_stamp_that_lacks_an_image_is_counted(tmp_path):
    frames = [FRAMES[0], replace(FRAMES[1], instance=None), *FRAMES[2:]]
    sequence = BagSequence(write_frames(tmp_path / 'room', frames))
    assert sequence.stamps_ns == [FRAMES[index].stamp_ns for index in (0, 2, 3)]
    assert '1 more stamps lack' in sequence.description


def test_a_bag_is_written_once_and_in_order(tmp_path):
    with pytest.raises(SequenceError, match='not empty'):
        BagWriter(write_frames(tmp_path / 'room'), INFO)
    writer = BagWriter(tmp_path / 'other', INFO)
    writer.write(FRAMES[1])
    with pytest.raises(SequenceError, match='stamp 1000000000 ns does not come after'):
        writer.write(FRAMES[0])


def robot_bag(folder, *, tf_tree, static=True):
    """Write frames of a robot that knows its base; stamps of a frame differ by milliseconds."""
    messages = []
    if static:
        mounted = transform('base_link', CAMERA_FRAME, MOUNT)
        messages.append(('/tf_static', 1, tf(mounted)))
    for frame in FRAMES:
        found = messages_of(frame)
        for part, topic in NAMES.items():
            stamp = found[part].header.stamp
            stamp.sec, stamp.nanosec = divmod(frame.stamp_ns + LATE_NS[part], 10**9)
            messages.append((topic, frame.stamp_ns, found[part]))
    # Poses between the frames, on a line: interpolated ones are known.
    for step in range(-1, 9):
        stamp_ns = FRAMES[0].stamp_ns + step * 20_000_000 + 5_000_000
        pose = Pose.from_yaw(0.0, (stamp_ns / 1e9, 0.0, 0.0))
        if tf_tree:
            moved = transform('odom', 'base_link', pose, stamp_ns)
            messages.append(('/tf', stamp_ns, tf(moved)))
        else:
            messages.append(('/odom', stamp_ns, odometry(pose, stamp_ns, 'odom', 'base_link')))
    return write_messages(folder, messages, StoragePlugin.SQLITE3)


@pytest.mark.parametrize('tf_tree', [True, False], ids=['tf', 'odometry'])
def test_a_robots_bag_gives_frames_with_interpolated_poses(tmp_path, tf_tree):
    reading = ROBOT.model_copy(update={'pose': TF if tf_tree else '/odom', 'tolerance_s': 0.01})
    folder = robot_bag(tmp_path / 'bag', tf_tree=tf_tree)
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


def test_a_path_gives_frames_at_the_stamps_of_its_poses(tmp_path):
    found = [(frame.stamp_ns, messages_of(frame)) for frame in FRAMES]
    messages = [
        (f'/{topic}', stamp_ns, parts[topic]) for stamp_ns, parts in found for topic in NAMES
    ]
    poses = [parts[CAMERA_POSE] for _, parts in found]
    path = make('nav_msgs/Path', header=header(0, 'world'), poses=poses)
    folder = write_messages(tmp_path / 'bag', [*messages, ('/path', 2 * 10**9, path)])
    sequence = BagSequence(folder, SequenceReading(pose='/path'))
    assert sequence.stamps_ns == [frame.stamp_ns for frame in FRAMES]


def compressed(header, form, data):
    content = np.frombuffer(data, np.uint8)
    return make('sensor_msgs/CompressedImage', header=header, format=form, data=content)


def test_compressed_images_of_a_bag_make_frames(tmp_path):
    messages = []
    for frame in FRAMES:
        found, stamp_ns = messages_of(frame), frame.stamp_ns
        header = found[COLOR].header
        mm = (np.nan_to_num(frame.depth_m, nan=0, posinf=0) * 1000).astype(np.uint16)
        color = compressed(header, 'rgb8; png compressed bgr8', encoded_image(frame.color))
        depth = compressed(header, '16UC1; compressedDepth png', bytes(12) + encoded_image(mm))
        messages += [
            ('/rgb/compressed', stamp_ns, color), ('/depth/compressedDepth', stamp_ns, depth),
            ('/info', stamp_ns, found[DEPTH_INFO]), ('/pose', stamp_ns, found[CAMERA_POSE]),
        ]  # fmt: skip
    names = 'color: /rgb/compressed, depth: /depth/compressedDepth, camera_info: /info'
    reading = reading_from_text(f'{{{names}, pose: /pose}}')
    sequence = open_sequence(write_messages(tmp_path / 'bag', messages), reading)
    for read, frame in zip(sequence, FRAMES, strict=True):
        np.testing.assert_array_equal(read.color, frame.color)
        seen = np.isfinite(read.depth_m)
        assert seen.any()
        np.testing.assert_allclose(read.depth_m[seen], frame.depth_m[seen], atol=1.1e-3)


def test_the_topics_of_a_bag_come_from_text_or_a_file(tmp_path, monkeypatch):
    text = '{color: /rgb, pose: tf, tolerance_s: 0.02, namespace: robot, msg_paths: [msgs, /opt]}'
    (tmp_path / 'robot').mkdir()
    (tmp_path / 'robot' / 'topics.yaml').write_text(text)
    monkeypatch.chdir(tmp_path)
    reading = reading_from_text('robot/topics.yaml')
    assert reading.msg_paths == (Path('robot/msgs'), Path('/opt'))
    assert reading_from_text(text).msg_paths == (Path('msgs'), Path('/opt'))
    assert (reading.color, reading.pose, reading.depth) == ('/rgb', TF, DEPTH)
    assert (reading.tolerance_s, reading.namespace) == (0.02, 'robot')
    assert reading_from_text('') == SequenceReading()


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('{colour: /rgb}', 'sequence_topics.*Did you mean "color"'),
        ('{color: ""}', 'sequence_topics.*color'),
        ('{tolerance_s: -1}', 'sequence_topics.*tolerance_s'),
        ('[1]', 'sequence_topics.*must be a mapping'),
        ('absent.yaml', r'absent\.yaml does not exist'),
    ],
)
def test_wrong_topics_are_named(text, reason):
    with pytest.raises(ConfigError, match=reason):
        reading_from_text(text)


def test_missing_topics_frames_and_types_are_named(tmp_path):
    folder = robot_bag(tmp_path / 'bag', tf_tree=False, static=False)
    for reading, reason in (
        (SequenceReading(), r'/camera/color/image_raw.*It has /cam/depth'),
        (SequenceReading(namespace='robot'), '/robot/camera/depth/image_rect'),
        (ROBOT.model_copy(update={'pose': '/odom', 'tolerance_s': 0.01}),
         r'poses of "base_link", and /tf_static does not'),
        (ROBOT.model_copy(update={'pose': TF}), 'TF has no frame "camera_color_optical_frame"'),
        (ROBOT.model_copy(update={'pose': '/odom', 'color': '/odom'}),
         'expected sensor_msgs/msg/Image'),
    ):  # fmt: skip
        with pytest.raises(SequenceError, match=reason):
            open_sequence(folder, reading)


def test_stamps_are_matched_once_with_the_nearest():
    stamps = {'a': [10, 20, 30, 40], 'b': [11, 19, 52], 'c': [9, 21, 29, 41]}
    matched = [{'a': 10, 'b': 11, 'c': 9}, {'a': 20, 'b': 19, 'c': 21}]
    assert match_stamps(stamps, 'a', 2) == matched
    assert match_stamps(stamps, 'a', 0) == []
    assert match_stamps({'a': [1, 2, 3], 'b': [2]}, 'a', 5) == [{'a': 1, 'b': 2}]
    assert match_stamps({'a': [1], 'b': []}, 'a', 5) == []


@pytest.mark.parametrize(
    ('topic', 'changes', 'cut'),
    [
        (COLOR, {'width': 2**32 - 1, 'height': 2**32 - 1, 'step': 2**32 - 1}, None),
        (COLOR, {'encoding': '32FC1'}, None),
        (COLOR, {'data': np.zeros(0, np.uint8)}, None),
        (DEPTH, {'encoding': 'rgb8'}, None),
        (DEPTH_INFO, {'width': 2**32 - 1, 'height': 2**32 - 1}, None),
        (DEPTH_INFO, {'k': np.zeros(9)}, None),
        (COLOR, {}, 60),
        (DEPTH_INFO, {}, 3),
    ],
)
def test_a_message_that_contradicts_itself_is_one_error(topic, changes, cut):
    codec = make_codec()
    data = {name: bytes(item) for name, item in codec.serialize(FRAMES[0]).items()}
    message = codec.typestore.deserialize_cdr(data[topic], TYPES[topic])
    for name, value in changes.items():
        setattr(message, name, value)
    data[topic] = bytes(codec.typestore.serialize_cdr(message, TYPES[topic]))[:cut]
    with pytest.raises((SequenceError, ValueError), match='.'):  # the caller names it
        codec.frame(0, FRAMES[0].stamp_ns, data, FRAMES[0].camera_pose)


POSES = [Pose.from_yaw(0.1 * i, (i, 2.0, 0.0)) for i in range(5)]


def covered(pose, stamp_ns):
    inner = make('geometry_msgs/PoseWithCovariance', pose=pose_message(pose))
    own = header(stamp_ns, 'map')
    return make('geometry_msgs/PoseWithCovarianceStamped', header=own, pose=inner)


MAKERS = {
    'geometry_msgs/msg/PoseStamped': lambda pose, stamp: pose_stamped(pose, stamp, 'map'),
    'geometry_msgs/msg/PoseWithCovarianceStamped': covered,
    'nav_msgs/msg/Odometry': lambda pose, stamp: odometry(pose, stamp, 'map', 'base'),
    'geometry_msgs/msg/TransformStamped': lambda pose, stamp: transform(
        'map', 'base', pose, stamp
    ),
}


@pytest.mark.parametrize('kind', MAKERS)
def test_every_kind_of_pose_message_is_read(kind):
    messages = [MAKERS[kind](pose, (9 - i) * S + 7) for i, pose in enumerate(POSES)]
    found = trajectory_of(messages, kind, '/pose')
    assert found.stamps_ns.tolist() == [(5 + i) * S + 7 for i in range(5)]
    np.testing.assert_array_equal(found.positions[:, 0], [4, 3, 2, 1, 0])
    np.testing.assert_allclose(found.rotations[0], POSES[4].rotation, atol=1e-12)
    assert found.frame_id == 'map'
    assert found.child_frame_id == ('base' if 'Pose' not in kind else '')


def test_of_a_path_the_last_message_counts():
    stamped = [pose_stamped(pose, i * S, 'map') for i, pose in enumerate(POSES)]
    paths = [make('nav_msgs/Path', header=header(0, 'map'), poses=stamped[:n]) for n in (2, 4)]
    assert len(trajectory_of(paths, 'nav_msgs/msg/Path', '/path')) == 4


BROKEN = pose_stamped(POSES[0], 0)
BROKEN.pose.orientation.w = float('nan')
MIXED = [pose_stamped(POSES[0], index, frame) for index, frame in enumerate(('map', 'odom'))]


@pytest.mark.parametrize(
    ('messages', 'kind', 'reason'),
    [
        ([BROKEN], 'geometry_msgs/msg/PoseStamped', '"/pose": a quaternion'),
        (MIXED, 'geometry_msgs/msg/PoseStamped', 'several frames'),
        ([], 'sensor_msgs/msg/Image', 'Image holds no poses'),
        ([], 'nav_msgs/msg/Path', '"/pose": there is no pose'),
    ],
)
def test_wrong_messages_are_named(messages, kind, reason):
    with pytest.raises(ContractError, match=reason):
        trajectory_of(messages, kind, '/pose')


def test_a_chain_of_tf_is_a_trajectory(tmp_path):
    messages = [('/tf_static', 0, tf(transform('base', 'camera', Pose.from_yaw(0, (0, 0, 1.5)))))]
    for i, pose in enumerate(POSES):
        messages.append(('/tf', i * S, tf(transform('/odom', '/base', pose, i * S))))
        messages.append(('/tf', i * S, tf(transform('map', 'odom', Pose.identity(), i * S))))
    bag = write_messages(tmp_path / 'bag', messages)
    found = read_trajectory(f'{bag}:/tf:map.camera')
    np.testing.assert_allclose(found.positions[:, 2], 1.5)
    np.testing.assert_allclose(found.positions[:, 0], [0, 1, 2, 3, 4])
    for name, reason in (
        ('/tf:map', 'names no frames'), ('/odom', 'is not in the bag'),
        ('/tf:map.arm', 'does not connect "map" with "arm"'),
    ):  # fmt: skip
        with pytest.raises((ConfigError, ContractError), match=reason):
            read_trajectory(f'{bag}:{name}')
    with pytest.raises(ContractError, match='"/tf": a transform from "" to "base"'):
        list(read_transforms([('/tf', tf(transform('', 'base', POSES[0])))]))
