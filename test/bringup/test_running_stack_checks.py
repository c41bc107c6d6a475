"""Every single thing that `osmabench doctor --stack` looks at, with the fault it is there for."""

import time
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from builtin_interfaces.msg import Time
from osmabench_ros.msg import RunInfo, RunState, SceneObject, SemanticMap
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import CONTRACT
from osmabench_ros.bringup.doctor.preflight import Finding, Severity
from osmabench_ros.bringup.running_stack.camera import (
    EdgeSample,
    check_classes,
    check_depth,
    check_encoding,
    check_expected,
    check_intrinsics,
    check_optical,
    check_size,
    check_transforms,
)
from osmabench_ros.bringup.running_stack.examination import check_endpoints
from osmabench_ros.bringup.running_stack.run_topics import (
    check_clock,
    check_cloud,
    check_map,
    check_rate,
    check_run_info,
    check_run_state,
    check_stamps,
    check_synchrony,
    declared_rate_hz,
)
from osmabench_ros.bringup.running_stack.stack_observation import TopicRecord, header_stamp_ns
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.ros.messages.images import camera_info_message, image_to_message
from osmabench_ros.ros.wire.qos import (
    Endpoint,
    TopicGraph,
    frame_profile,
    latched_profile,
    qos_conflict,
)
from osmabench_ros.semantics.labels import LabelSet

SECOND_NS = 10**9
IMAGE = 'sensor_msgs/msg/Image'
PINHOLE = Intrinsics(64, 48, 32.0, 32.0, 32.0, 24.0)
WALL_NS = time.time_ns()


def find(findings: list[Finding], level: Severity, words: str) -> Finding:
    """Return the finding of a level that says something; every fault has a remedy."""
    [found] = [item for item in findings if item.level is level and words in item.detail]
    assert found.remedy or level is Severity.OK
    return found


def fine(findings: list[Finding]) -> bool:
    return all(item.level is Severity.OK for item in findings)


def topic(name: str) -> Any:
    return next(item for item in CONTRACT if item.name == name)


def best_effort() -> QoSProfile:
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


def end(node: str, profile: QoSProfile, kind: str = IMAGE, type_hash: str = 'h') -> Endpoint:
    return Endpoint(node, kind, type_hash, profile)


# Who is there.


def test_a_required_topic_without_publisher_fails_and_an_optional_one_is_absent() -> None:
    find(check_endpoints(topic(topics.COLOR), TopicGraph('/c'), ''), Severity.FAILED, 'no node')
    found = check_endpoints(
        topic(topics.SEMANTIC),
        TopicGraph('/s', (), (end('/hydra', frame_profile(lockstep=False)),)),
        '',
    )
    assert '--remap' in find(found, Severity.ABSENT, '/hydra waits for it').remedy


def test_qos_that_does_not_match_names_both_sides_and_who_must_change() -> None:
    graph = TopicGraph(
        '/c', (end('/driver', best_effort()),), (end('/mapper', frame_profile(lockstep=False)),)
    )
    found = find(check_endpoints(topic(topics.COLOR), graph, 'h'), Severity.FAILED, '/driver')
    assert '/mapper subscribes reliable' in found.detail
    assert found.remedy.endswith('change /driver')


@pytest.mark.parametrize(
    ('publisher', 'subscriber', 'matches'),
    [
        (latched_profile(), frame_profile(lockstep=True), True),
        (frame_profile(lockstep=True), latched_profile(), False),
        (frame_profile(lockstep=True), best_effort(), True),
        (
            frame_profile(lockstep=True),
            QoSProfile(depth=1, deadline=Duration(seconds=1)),
            False,
        ),
        (
            QoSProfile(depth=1, deadline=Duration(seconds=1)),
            QoSProfile(depth=1, deadline=Duration(seconds=2)),
            True,
        ),
    ],
)
def test_every_policy_that_dds_compares_counts(
    publisher: QoSProfile, subscriber: QoSProfile, matches: bool
) -> None:
    assert (qos_conflict(end('/a', publisher), end('/b', subscriber)) == '') is matches


def test_wrong_types_and_versions_are_told() -> None:
    profile = frame_profile(lockstep=False)
    other = TopicGraph('/c', (end('/driver', profile, 'sensor_msgs/msg/CompressedImage'),))
    find(check_endpoints(topic(topics.COLOR), other, 'h'), Severity.FAILED, 'CompressedImage')
    old = TopicGraph('/c', (end('/driver', profile, type_hash='old'),))
    find(check_endpoints(topic(topics.COLOR), old, 'h'), Severity.FAILED, 'another version')
    assert fine(check_endpoints(topic(topics.COLOR), old, ''))


def test_a_latched_topic_that_is_not_and_two_clocks_are_told() -> None:
    label_info = 'osmabench_ros/msg/LabelInfo'
    volatile = TopicGraph('/l', (end('/a', frame_profile(lockstep=False), label_info),))
    find(check_endpoints(topic(topics.LABEL_INFO), volatile, ''), Severity.WARN, 'volatile')
    clock = 'rosgraph_msgs/msg/Clock'
    two = TopicGraph('/clock', tuple(end(n, best_effort(), clock) for n in ('/a', '/b')))
    find(check_endpoints(topic(topics.CLOCK), two, ''), Severity.FAILED, '/a and /b publish')


# Times.


def record(stamps_s: list[float], name: str = topics.COLOR, rate_hz: float = 10.0) -> TopicRecord:
    """Return what was heard at a rate, with stamps of its own."""
    count = len(stamps_s)
    return TopicRecord(
        name,
        Image,
        received_ns=[round(i * SECOND_NS / rate_hz) for i in range(count)],
        stamps_ns=[round(s * SECOND_NS) for s in stamps_s],
        wall_ns=[WALL_NS + round(i * SECOND_NS / rate_hz) for i in range(count)],
    )


def test_rates_are_measured_and_compared() -> None:
    heard = record([float(i) for i in range(11)])
    assert heard.rate_hz == pytest.approx(10.0)
    assert '10.0 Hz' in find(check_rate(heard, 10.5), Severity.OK, 'jitter 0 ms').detail
    find(check_rate(heard, 25.0), Severity.WARN, 'declared 25 Hz')
    heard.lost = 3
    find(check_rate(heard, 10.0), Severity.WARN, '3 lost')
    find(check_rate(record([1.0, 2.0]), None), Severity.WARN, 'only 2 messages')


WALL_S = WALL_NS / SECOND_NS


@pytest.mark.parametrize(
    ('stamps_s', 'simulated', 'level', 'words'),
    [
        ([0.0, 0.0, 0.0], False, Severity.FAILED, 'stamp is 0'),
        ([5.0, 5.0, 5.0], True, Severity.WARN, 'one and the same stamp'),
        ([0.0, 6.0, 7.0], False, Severity.WARN, 'neither near the time'),
        ([5.0, 4.0, 5.0], True, Severity.WARN, 'backwards 1 times'),
        ([WALL_S, WALL_S + 0.1, WALL_S + 0.2], True, Severity.FAILED, 'wall time'),
        ([5.0, 6.0, 7.0], False, Severity.WARN, 'neither near the time'),
        ([WALL_S + 3, WALL_S + 3.1], False, Severity.FAILED, 'in the future'),
        ([WALL_S - 60, WALL_S - 59.9], False, Severity.WARN, 'old when they come'),
    ],
)
def test_stamps_out_of_their_time_are_told(
    stamps_s: list[float], simulated: bool, level: Severity, words: str
) -> None:
    find(check_stamps(record(stamps_s), simulated=simulated), level, words)


def test_good_stamps_of_either_time_pass() -> None:
    assert check_stamps(record([0.0, 0.1, 0.2]), simulated=True) == []
    now = [WALL_S + i * 0.1 for i in range(3)]
    assert check_stamps(record(now), simulated=False) == []


def clock(times_s: list[float]) -> TopicRecord:
    messages = [Clock(clock=Time(sec=int(t), nanosec=round(t % 1 * 1e9))) for t in times_s]
    return TopicRecord(topics.CLOCK, Clock, has_header=False, messages=messages)


def test_a_clock_that_goes_back_stands_or_belongs_to_something_else_is_told() -> None:
    frames = record([1.0, 2.0, 3.0])
    assert fine(check_clock(clock([1.0, 2.0, 3.0]), frames))
    find(check_clock(clock([2.0, 1.0]), frames), Severity.FAILED, 'backwards')
    find(check_clock(clock([3.0, 3.0]), frames), Severity.FAILED, 'stands still while 3 frames')
    find(check_clock(clock([90.0, 91.0]), frames), Severity.FAILED, '87.0 s apart')


def test_stamps_of_one_frame_must_be_equal() -> None:
    color = record([float(i) for i in range(12)])
    assert fine(check_synchrony(color, record([float(i) for i in range(1, 12)], topics.DEPTH)))
    late = record([i + 0.004 for i in range(12)], topics.DEPTH)
    find(check_synchrony(color, late), Severity.FAILED, 'the nearest is 4.0 ms away')
    half = record([float(i) for i in range(0, 12, 2)], topics.DEPTH)
    find(check_synchrony(color, half), Severity.WARN, '44% of the stamps')


def test_stamps_are_compared_from_when_both_came() -> None:
    color = record([float(i) for i in range(30)])
    assert fine(check_synchrony(color, record([26.0, 27.0, 28.0, 29.0, 30.0], topics.DEPTH)))
    other_time = record([50.0, 51.0, 52.0], topics.DEPTH)
    find(check_synchrony(color, other_time), Severity.FAILED, 'of another time')


def test_the_stamp_is_read_from_the_bytes_alone() -> None:
    from rclpy.serialization import serialize_message

    message = Image()
    message.header.stamp = Time(sec=-3, nanosec=7)
    assert header_stamp_ns(serialize_message(message)) == -3 * SECOND_NS + 7


# Camera.


def info(**changes: Any) -> CameraInfo:
    message = camera_info_message(PINHOLE, Time(), 'optical')
    for name, value in changes.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    ('changes', 'level', 'words'),
    [
        ({'k': [0.0] * 9}, Severity.FAILED, 'not calibrated'),
        ({'width': 0}, Severity.FAILED, 'not set'),
        ({'d': [0.1, 0.0, 0.0, 0.0, 0.0]}, Severity.FAILED, 'distorted'),
        ({'width': 640, 'height': 480}, Severity.WARN, 'odd for 640 x 480'),
        ({'width': 20, 'height': 15}, Severity.FAILED, 'outside the image'),
        ({'r': [0.0] * 9}, Severity.WARN, 'R is empty'),
        ({'p': [9.0] * 12}, Severity.WARN, 'P says'),
        ({'distortion_model': ''}, Severity.WARN, 'distortion_model'),
    ],
)
def test_intrinsics_that_cannot_be_right_are_told(
    changes: dict[str, Any], level: Severity, words: str
) -> None:
    find(check_intrinsics(topics.COLOR_INFO, info(**changes)), level, words)


def test_sizes_and_frames_must_agree() -> None:
    assert fine(check_intrinsics(topics.COLOR_INFO, info()))
    image = image_to_message(np.zeros((24, 32, 3), np.uint8), 'rgb8', Time(), 'depth_optical')
    findings = check_size('i', info(), topics.COLOR, image)
    find(findings, Severity.FAILED, '32 x 24, but i says 64 x 48')
    find(findings, Severity.WARN, 'frame "depth_optical"')
    assert check_expected('i', info(), PINHOLE) == []
    wanted = Intrinsics(64, 48, 55.0, 55.0, 32.0, 24.0)
    find(check_expected('i', info(), wanted), Severity.WARN, 'fx 55.0')


# Pixels.


@pytest.mark.parametrize(
    ('frame', 'level'),
    [
        ('camera_link', Severity.FAILED),
        ('/robot/Map', Severity.FAILED),
        ('camera_rgb_frame', Severity.WARN),
    ],
)
def test_images_must_be_in_an_optical_frame(frame: str, level: Severity) -> None:
    find(check_optical(topics.COLOR, frame), level, f'frame_id is "{frame}"')
    assert check_optical(topics.COLOR, 'openni_rgb_optical_frame') == []


def depth(values: list[float]) -> Image:
    return image_to_message(np.array([values], np.float32), '32FC1', Time(), 'o')


def millimetres(values: list[int]) -> Image:
    return image_to_message(np.array([values], np.uint16), '16UC1', Time(), 'o')


@pytest.mark.parametrize(
    ('image', 'level', 'words'),
    [
        (depth([1.0, 2.0, 3.0, np.inf]), Severity.OK, 'median 2.00 m'),
        (depth([1500.0, 2500.0]), Severity.FAILED, 'millimetres in 32FC1'),
        (depth([1.0, 0.0, 2.0]), Severity.FAILED, '33% of the pixels are 0'),
        (depth([1.0, -1.0, 2.0, 2.0]), Severity.FAILED, 'negative'),
        (depth([np.nan, np.nan]), Severity.FAILED, 'no pixel has a depth'),
        (depth([np.nan, np.nan, np.nan, 1.0]), Severity.WARN, '75% invalid'),
        (millimetres([1500, 2500]), Severity.WARN, 'read as millimetres'),
        (millimetres([1, 2, 3]), Severity.FAILED, 'must be millimetres'),
    ],
)
def test_depth_of_the_wrong_scale_or_without_values_is_told(
    image: Image, level: Severity, words: str
) -> None:
    find(check_depth(image), level, words)


def test_encodings_that_the_contract_does_not_know_are_told() -> None:
    picture = image_to_message(np.zeros((2, 2, 3), np.uint8), 'rgb8', Time(), 'o')
    assert fine(check_encoding(topics.COLOR, picture))
    found = find(check_encoding(topics.DEPTH, picture), Severity.FAILED, 'encoding is rgb8')
    assert 'raw depth' in found.remedy
    picture.encoding = 'yuv422_yuy2'
    find(check_encoding(topics.COLOR, picture), Severity.FAILED, 'must be rgb8 or bgr8 or rgba8')
    picture.encoding, picture.height = 'rgb8', 9
    find(check_encoding(topics.COLOR, picture), Severity.FAILED, 'do not make 2 x 9')


def test_class_ids_need_names() -> None:
    image = millimetres([0, 1, 65535])
    names = LabelSet.from_names('two', ['chair', 'table'])
    first = min(item.id for item in names.classes)
    image = millimetres([first, first + 1, 65535])
    assert fine(check_classes(image, names))
    find(check_classes(image, None), Severity.WARN, 'without names')
    find(check_classes(millimetres([first, 40_000]), names), Severity.FAILED, '[40000]')
    find(check_classes(millimetres([65535]), names), Severity.WARN, 'no pixel')


# Transforms.


def edges(*pairs: str) -> list[EdgeSample]:
    """Return edges from 'parent child' at second 1, or 'parent child static'."""
    split = [text.split() for text in pairs]
    return [EdgeSample(p[0], p[1], SECOND_NS, 'static' in p[2:]) for p in split]


GOOD_TREE = ('world map static', 'map odom', 'odom base_link', 'base_link camera static')


def test_a_tree_from_the_world_to_the_camera_passes() -> None:
    found = find(check_transforms(edges(*GOOD_TREE), 'camera'), Severity.OK, 'world → map')
    assert found.detail == 'world → map → odom → base_link → camera'


@pytest.mark.parametrize(
    ('more', 'level', 'words'),
    [
        (('world base_link',), Severity.FAILED, 'base_link has 2 parents: odom, world'),
        (('base_link camera',), Severity.FAILED, 'on /tf and on /tf_static'),
        (('a b', 'b a'), Severity.FAILED, 'in a circle'),
    ],
)
def test_two_authorities_and_circles_are_told(
    more: tuple[str, ...], level: Severity, words: str
) -> None:
    find(check_transforms(edges(*GOOD_TREE, *more), 'camera'), level, words)


def test_a_camera_that_hangs_on_nothing_is_told() -> None:
    tree = edges('odom base_link', 'base_link camera static')
    find(
        check_transforms(tree, 'camera'), Severity.WARN, 'odom → base_link → camera, not on world'
    )
    find(check_transforms(tree, 'other'), Severity.WARN, 'no transform leads to other')
    back = [*edges('odom base_link'), EdgeSample('odom', 'base_link', 0, False)]
    find(check_transforms(back, 'base_link'), Severity.WARN, 'go backwards 1 times')


# Run and map.


def test_run_info_must_fit_the_stack() -> None:
    run = RunInfo(participants=['mapper'], camera_frame='optical', camera_info=info())
    assert fine(check_run_info(run, info(), 'optical', ['/robot/mapper', '/driver']))
    find(check_run_info(run, info(), 'optical', ['/driver']), Severity.FAILED, 'mapper')
    find(check_run_info(run, info(), 'lens', ['/mapper']), Severity.FAILED, 'images say "lens"')
    wide = info(k=[1.0, 0.0, 32.0, 0.0, 1.0, 24.0, 0.0, 0.0, 1.0])
    find(check_run_info(run, wide, 'optical', ['/mapper']), Severity.FAILED, 'differs')


def test_the_state_of_a_run_is_told_with_its_reason() -> None:
    failed = RunState(state=RunState.STATE_FAILED, message='mapper died')
    find(check_run_state(failed), Severity.FAILED, 'mapper died')
    assert fine(check_run_state(RunState(state=RunState.STATE_WAITING)))


def test_only_a_run_in_realtime_declares_a_rate() -> None:
    run = RunInfo(frame_rate=10.0, speed_factor=2.0, pacing=RunInfo.PACING_REALTIME)
    assert declared_rate_hz(run) == 20.0
    run.pacing = RunInfo.PACING_LOCKSTEP
    assert declared_rate_hz(run) is None
    assert declared_rate_hz(None) is None


def test_a_map_in_another_frame_or_without_chunks_is_told() -> None:
    message = SemanticMap()
    find(check_map(message), Severity.FAILED, 'frame_id is ""')
    message.header.frame_id = message.graph.header.frame_id = 'world'
    find(check_map(message), Severity.FAILED, 'no chunks')
    message.chunk_count = 1
    assert fine(check_map(message))
    message.chunk_count = 0
    message.graph.objects.append(SceneObject(kind='object', id=1))
    [alone] = check_map(message)
    assert alone.level is Severity.OK
    assert '1 nodes, 0 edges, no points' in alone.detail


def cloud(points: list[list[float]], frame: str = 'map') -> PointCloud2:
    data = np.array(points, np.float32)
    fields = [
        PointField(name=axis, offset=4 * i, datatype=PointField.FLOAT32, count=1)
        for i, axis in enumerate('xyz')
    ]
    message = PointCloud2(
        height=1, width=len(data), fields=fields, point_step=12, row_step=12 * len(data)
    )
    message.data = data.tobytes()
    message.header.frame_id = frame
    return message


def test_a_cloud_that_is_broken_or_empty_is_told() -> None:
    good = cloud([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert fine(check_cloud('c', good))
    holes = cloud([[np.nan, 0.0, 0.0], [1.0, 1.0, 1.0]])
    find(check_cloud('c', holes), Severity.WARN, '50% not finite')
    find(check_cloud('c', cloud([[0.0, 0.0, 0.0]], '')), Severity.FAILED, 'frame_id is empty')
    good.width = 2**31
    assert check_cloud('c', good)[0].level is Severity.FAILED
