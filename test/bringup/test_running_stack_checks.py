"""Every check of `osmabench doctor --stack`, each with an error that it must find."""

import time

import numpy as np
import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from builtin_interfaces.msg import Time
from osmabench_ros.msg import RunInfo, RunState, SceneObject, SemanticMap
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import CONTRACT
from osmabench_ros.bringup.examination import (
    CHECKS,
    check_classes,
    check_clock,
    check_cloud,
    check_depth,
    check_encoding,
    check_endpoints,
    check_expected,
    check_intrinsics,
    check_map,
    check_rate,
    check_run_info,
    check_run_state,
    check_stamps,
    check_synchrony,
    check_transforms,
    declared_rate_hz,
)
from osmabench_ros.bringup.preflight import CONDITION, Severity
from osmabench_ros.bringup.stack_observation import CDR_BYTES, TopicRecord
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.transform_tree import StampedTransform
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages.images import camera_info_message, image_to_message
from osmabench_ros.ros.messages.map_messages import point_cloud_message
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.bags.bag_types import stamp_at

SECOND_NS = 10**9
IMAGE = 'sensor_msgs/msg/Image'
PINHOLE = Intrinsics(64, 48, 32.0, 32.0, 32.0, 24.0)
WALL_NS = time.time_ns()


FAILED, WARN, OK = Severity.FAILED, Severity.WARN, Severity.OK


def topic(name):
    return next(item for item in CONTRACT if item.name == name)


BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED, LOSSLESS = qos.latched_profile(), qos.lossless_profile()
FRAME, LOCKSTEP = qos.frame_profile(lockstep=False), qos.frame_profile(lockstep=True)


def end(node, profile, kind=IMAGE, type_hash='h'):
    return qos.Endpoint(node, kind, type_hash, profile)


def ends(name, *publishers, subscriber=None):
    """Check endpoints of a topic; our messages have the version h."""
    subscribers = () if subscriber is None else (subscriber,)
    return check_endpoints(topic(name), qos.TopicGraph('/t', publishers, subscribers, 'h'))


def both(name, profile, kind, *nodes):
    """Check a topic that two nodes publish."""
    return ends(name, *(end(node, profile, kind) for node in nodes))


def record(stamps_s, name=topics.COLOR, rate_hz=10.0):
    """Return messages with these stamps, received at a rate."""
    times_ns = [round(i * SECOND_NS / rate_hz) for i in range(len(stamps_s))]
    stamps_ns = [round(s * SECOND_NS) for s in stamps_s]
    wall_ns = [WALL_NS + item for item in times_ns]
    return TopicRecord(name, Image, received_ns=times_ns, stamps_ns=stamps_ns, wall_ns=wall_ns)


WALL_S = WALL_NS / SECOND_NS
EVEN = [float(i) for i in range(12)]


def synchrony(depth_s):
    return check_synchrony(record(EVEN), record(depth_s, topics.DEPTH))


def losing():
    heard = record(EVEN)
    heard.lost = 3
    return heard


def clock(times_s):
    messages = [Clock(clock=Time(sec=int(t), nanosec=round(t % 1 * 1e9))) for t in times_s]
    return TopicRecord(topics.CLOCK, Clock, has_header=False, messages=messages)


def change(message, changes):
    for name, value in changes.items():
        setattr(message, name, value)
    return message


def info(**changes):
    return change(camera_info_message(PINHOLE, Time(), 'optical'), changes)


def depth(values):
    return image_to_message(np.array([values], np.float32), '32FC1', Time(), 'o')


def millimetres(values):
    return image_to_message(np.array([values], np.uint16), '16UC1', Time(), 'o')


def picture(**changes):
    zeros = np.zeros((2, 2, 3), np.uint8)
    return change(image_to_message(zeros, 'rgb8', Time(), 'depth_optical'), changes)


def size():
    return CHECKS.find_all('size', 'c', image=picture(), info=info())


def frame_name(frame):
    return CHECKS.find_first('frame_name', 'c', frame=frame)


NAMES = LabelSet.from_names('two', ['chair', 'table'])
FIRST = min(item.id for item in NAMES.classes)


def edge(parent, child, stamp_ns=SECOND_NS, *, static):
    return StampedTransform(parent, child, stamp_ns, Pose.identity(), static)


def edges(*pairs):
    """Return edges from 'parent child' at second 1, or 'parent child static'."""
    split = [text.split() for text in pairs]
    return [edge(p[0], p[1], static='static' in p[2:]) for p in split]


EARLIER = edge('world', 'base', 0, static=False)
GOOD_TREE = ('world map static', 'map odom', 'odom base_link', 'base_link camera static')


def tree(*more):
    return check_transforms(edges(*GOOD_TREE, *more), 'camera')


def run(frame='optical', *nodes, **changes):
    """Compare a run of one participant with a stack of these nodes."""
    message = RunInfo(participants=['mapper'], camera_frame='optical', camera_info=info())
    return check_run_info(message, info(**changes), frame, nodes or ['/robot/mapper', '/driver'])


def semantic_map(frame='world', *objects, chunks=0):
    message = SemanticMap(chunk_count=chunks)
    message.header.frame_id = message.graph.header.frame_id = frame
    message.graph.objects.extend(objects)
    return message


def cloud(points, frame='map'):
    return point_cloud_message(DenseMap(np.array(points, np.float32)), Header(frame_id=frame))


ORIGIN = [0.0, 0.0, 0.0]
DIED = RunState(state=RunState.STATE_FAILED, message='mapper died')
NODE = SceneObject(kind='object', id=1)
NARROW = 'is 64 x 48, fx 32.0; the configuration says 64 x 48, fx 55.0'
BROKEN = cloud([ORIGIN])
BROKEN.width = 2**31

OLD, WALL = end('/driver', FRAME, type_hash='old'), [WALL_S + i * 0.1 for i in range(3)]
LABELS, CLOCK = 'osmabench_ros/msg/LabelInfo', 'rosgraph_msgs/msg/Clock'
MAP, ACK = 'osmabench_ros/msg/SemanticMap', 'osmabench_ros/msg/FrameAck'
HYDRA = end('/hydra', FRAME)
COMPRESSED = end('/driver', FRAME, 'sensor_msgs/msg/CompressedImage')
CASES = [
    # Endpoints.
    (ends(topics.COLOR), FAILED, 'no node publishes /t (colour images)'),
    (ends(topics.SEMANTIC), Severity.ABSENT, 'no node publishes'),
    (ends(topics.SEMANTIC, subscriber=HYDRA), Severity.ABSENT, '/hydra waits for it'),
    (ends(topics.COLOR, COMPRESSED), FAILED, 'CompressedImage, not sensor_msgs/msg/Image'),
    (ends(topics.COLOR, OLD), FAILED, 'another version of sensor_msgs/msg/Image (old)'),
    (check_endpoints(topic(topics.COLOR), qos.TopicGraph('/c', (OLD,))), OK, 'from /driver'),
    (ends(topics.LABEL_INFO, end('/a', FRAME, LABELS)), WARN, '/a publishes volatile'),
    (both(topics.CLOCK, BEST_EFFORT, CLOCK, '/a', '/b'), FAILED, '/a and /b publish at the'),
    (both(topics.SEMANTIC_MAP, LATCHED, MAP, '/a', '/bag_player'), FAILED, '/a and /bag_player'),
    (both(topics.FRAME_ACK, LOSSLESS, ACK, '/a', '/b'), OK, '/a, /b'),
    # Rates and stamps.
    (check_rate(record(EVEN), 10.5), OK, '10.0 Hz, jitter 0 ms'),
    (check_rate(record(EVEN), 25.0), WARN, 'declared 25 Hz'),
    (check_rate(losing(), 10.0), WARN, '3 lost'),
    (check_rate(record([1.0, 2.0]), None), WARN, 'only 2 messages'),
    (check_stamps(record([0.0, 0.0, 0.0]), simulated=False), FAILED, 'stamp is 0'),
    (check_stamps(record([0.0]), simulated=False), WARN, 'stamp is 0'),
    (check_stamps(record([5.0, 5.0, 5.0]), simulated=True), WARN, 'one and the same stamp'),
    (check_stamps(record([0.0, 6.0, 7.0]), simulated=False), WARN, 'neither near the time'),
    (check_stamps(record([5.0, 4.0, 5.0]), simulated=True), WARN, 'backwards 1 times'),
    (check_stamps(record(WALL), simulated=True), FAILED, 'wall time'),
    (check_stamps(record([WALL_S + 3, WALL_S + 4]), simulated=False), FAILED, 'in the future'),
    (check_stamps(record([WALL_S - 60, WALL_S - 59]), simulated=False), WARN, 'old when they'),
    (check_clock(clock(EVEN), record(EVEN)), OK, 'goes forward, 12 messages'),
    (check_clock(clock([2.0, 1.0]), record(EVEN)), FAILED, 'backwards'),
    (check_clock(clock([11.0, 11.0]), record(EVEN)), FAILED, 'does not advance while 12 frames'),
    (check_clock(clock([90.0, 91.0]), record(EVEN)), FAILED, '79.0 s apart'),
    (synchrony(EVEN[1:]), OK, '100%'),
    (synchrony([i + 0.004 for i in EVEN]), FAILED, 'the nearest is 4.0 ms away'),
    (synchrony(EVEN[::2]), WARN, '44% of the stamps'),
    # Stamps are compared from the time when both topics came.
    (synchrony([9.0, 10.0, 11.0]), OK, '100%'),
    (synchrony([50.0, 51.0, 52.0]), FAILED, 'of another time'),
    # The camera.
    (check_intrinsics('i', info()), OK, '64 x 48, fx 32.0'),
    (check_intrinsics('i', info(k=[0.0] * 9)), FAILED, 'not calibrated'),
    (check_intrinsics('i', info(width=0)), FAILED, 'not set'),
    (check_intrinsics('i', info(d=[0.1, 0.0, 0.0, 0.0, 0.0])), FAILED, 'distorted'),
    (check_intrinsics('i', info(width=640, height=480)), WARN, 'odd for 640 x 480'),
    (check_intrinsics('i', info(width=20, height=15)), FAILED, 'outside the image'),
    (check_intrinsics('i', info(r=[0.0] * 9)), WARN, 'R is empty'),
    (check_intrinsics('i', info(p=[9.0] * 12)), WARN, 'P says fx 9.0, K says 32.0'),
    (check_intrinsics('i', info(distortion_model='')), WARN, 'distortion_model'),
    (size(), FAILED, '2 x 2, but camera/color/camera_info says 64 x 48'),
    (size(), WARN, 'frame "depth_optical", but camera/color/camera_info says "optical"'),
    (check_expected('i', info(), Intrinsics(64, 48, 55.0, 55.0, 32.0, 24.0)), WARN, NARROW),
    (frame_name('camera_link'), FAILED, 'frame_id is "camera_link"'),
    (frame_name('/robot/Map'), FAILED, 'frame_id is "/robot/Map"'),
    (frame_name('camera_rgb_frame'), WARN, 'frame_id is "camera_rgb_frame"'),
    # Images.
    (check_encoding(topics.COLOR, picture()), OK, 'rgb8, 2 x 2'),
    (check_encoding(topics.DEPTH, picture()), FAILED, 'encoding is rgb8'),
    (check_encoding(topics.COLOR, picture(encoding='yuv422_yuy2')), FAILED, 'must be rgb8 or'),
    (check_encoding(topics.COLOR, picture(height=9)), FAILED, 'do not make 2 x 9'),
    (check_depth(depth([1.0, 2.0, 3.0, np.inf])), OK, 'median 2.00 m'),
    (check_depth(depth([1500.0, 2500.0])), FAILED, 'millimetres in 32FC1'),
    (check_depth(depth([1.0, 0.0, 2.0])), FAILED, '33% of the pixels are 0'),
    (check_depth(depth([1.0, -1.0, 2.0, 2.0])), FAILED, 'negative'),
    (check_depth(depth([np.nan, np.nan])), FAILED, 'no pixel has a depth'),
    (check_depth(depth([np.nan, np.nan, np.nan, 1.0])), WARN, '75% invalid'),
    (check_depth(millimetres([1500, 2500])), WARN, 'read as millimetres'),
    (check_depth(millimetres([1500, 2500])), OK, 'median 2.00 m'),
    (check_depth(millimetres([1, 2, 3])), FAILED, 'must be millimetres'),
    (check_classes(millimetres([FIRST, 65535]), NAMES), OK, '1 classes seen, all named'),
    (check_classes(millimetres([FIRST]), None), WARN, 'without names'),
    (check_classes(millimetres([FIRST, 40_000]), NAMES), FAILED, '[40000]'),
    (check_classes(millimetres([65535]), NAMES), WARN, 'no pixel'),
    # Transforms.
    (tree(), OK, 'world → map → odom → base_link → camera'),
    (tree('world base_link'), FAILED, 'base_link has 2 parents: odom, world'),
    (tree('base_link camera'), FAILED, 'on /tf and on /tf_static'),
    (tree('a b', 'b a'), FAILED, 'in a circle: a → b → a'),
    (check_transforms(edges('odom base'), 'base'), WARN, 'odom → base, not on world'),
    (check_transforms(edges('odom base'), 'other'), WARN, 'no transform leads to other'),
    (check_transforms([*edges('world base'), EARLIER], 'base'), WARN, 'go backwards 1 times'),
    # The run and its map.
    (run(), OK, 'unnamed, lockstep'),
    (run('optical', '/driver'), FAILED, 'not running: mapper'),
    (run('lens'), FAILED, 'images say "lens"'),
    (run(k=[1.0, 0.0, 32.0, 0.0, 1.0, 24.0, 0.0, 0.0, 1.0]), FAILED, 'differs'),
    (check_run_state(RunState(state=RunState.STATE_WAITING)), OK, 'waiting'),
    (check_run_state(DIED), FAILED, 'mapper died'),
    (check_map(semantic_map('')), FAILED, 'frame_id is ""'),
    (check_map(semantic_map()), FAILED, 'no chunks'),
    (check_map(semantic_map(chunks=1)), OK, 'in 1 chunks'),
    (check_map(semantic_map('world', NODE)), OK, '1 nodes, 0 edges, no points'),
    (check_cloud('c', cloud([ORIGIN, ORIGIN])), OK, '2 points in map'),
    (check_cloud('c', cloud([[np.nan, 0.0, 0.0], ORIGIN])), WARN, '50% not finite'),
    (check_cloud('c', cloud([ORIGIN], '')), FAILED, 'frame_id is empty'),
    (check_cloud('c', BROKEN), FAILED, 'but data has 12 bytes'),
]


@pytest.mark.parametrize(('findings', 'level', 'words'), CASES)
def test_every_error_is_named_with_its_remedy(findings, level, words):
    [found] = [item for item in findings if item.level is level and words in item.detail]
    assert found.remedy or level in (OK, Severity.ABSENT)
    assert level is not OK or all(item.level in (OK, WARN) for item in findings)


def test_values_that_are_right_give_no_finding():
    assert check_stamps(record([0.0, 0.1, 0.2]), simulated=True) == []
    assert check_stamps(record(WALL), simulated=False) == []
    assert check_expected('i', info(), PINHOLE) == []
    assert frame_name('openni_rgb_optical_frame') == []


def test_remedies_name_who_must_change_and_what():
    driver, mapper = end('/driver', BEST_EFFORT), end('/mapper', FRAME)
    [found] = ends(topics.COLOR, driver, subscriber=mapper)
    assert '/mapper subscribes reliable' in found.detail
    assert found.remedy.endswith('change /driver')
    [awaited] = ends(topics.SEMANTIC, subscriber=HYDRA)
    assert '--remap camera/semantic/image_raw:=' in awaited.remedy
    assert 'raw depth' in check_encoding(topics.DEPTH, picture())[0].remedy


def test_every_row_of_the_tables_has_a_severity_and_a_remedy():
    levels = {level.value for level in Severity}
    for table, rows in CHECKS.rows.items():
        for name, row in rows.items():
            assert len(levels & row.keys()) == 1, (table, name)
            assert CONDITION in row or not {'failed', 'warn'} & row.keys(), (table, name)
            assert row.get('remedy') or not {'failed', 'warn'} & row.keys(), (table, name)


def deadline(seconds):
    return QoSProfile(depth=1, deadline=Duration(seconds=seconds))


@pytest.mark.parametrize(
    ('publisher', 'subscriber', 'matches'),
    [
        (LATCHED, LOCKSTEP, True),
        (LOCKSTEP, LATCHED, False),
        (LOCKSTEP, BEST_EFFORT, True),
        (LOCKSTEP, deadline(1), False),
        (deadline(1), deadline(2), True),
    ],
)
def test_every_policy_that_dds_compares_counts(publisher, subscriber, matches):
    assert (qos.qos_conflict(end('/a', publisher), end('/b', subscriber)) == '') is matches


def test_the_stamp_is_read_from_the_bytes_alone():
    from rclpy.serialization import serialize_message

    message = Image()
    message.header.stamp = Time(sec=-3, nanosec=7)
    assert stamp_at(serialize_message(message), CDR_BYTES) == -3 * SECOND_NS + 7


def test_only_a_run_in_realtime_declares_a_rate():
    run = RunInfo(frame_rate=10.0, speed_factor=2.0, pacing=RunInfo.PACING_REALTIME)
    assert declared_rate_hz(run) == 20.0
    run.pacing = RunInfo.PACING_LOCKSTEP
    assert declared_rate_hz(run) is None
    assert declared_rate_hz(None) is None


def test_a_replayed_bag_needs_neither_bridge_nor_recorder_nor_evaluator():
    message = RunInfo(participants=[topics.BRIDGE, 'mapper', topics.RECORDER, topics.EVALUATOR])

    def missing(*nodes):
        findings = check_run_info(message, None, '', nodes)
        return ' '.join(item.detail for item in findings)

    assert topics.RECORDER not in missing(f'/{topics.BAG_PLAYER}', '/mapper')
    assert topics.RECORDER in missing('/mapper')
    assert 'mapper' in missing(f'/{topics.BAG_PLAYER}')
