"""`osmabench doctor --stack` against stacks that really run."""

import json
import struct
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support.ros_processes import context_in, node_arguments, process
from typer.testing import CliRunner

pytestmark = [pytest.mark.ros, pytest.mark.slow]
pytest.importorskip('rclpy')

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from osmabench_ros.msg import LabelInfo, SemanticMap
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from support.waiting import wait_until

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup import examination, stack_observation
from osmabench_ros.bringup.examination import examine_stack, names_of_robot
from osmabench_ros.bringup.preflight import Severity
from osmabench_ros.cli.main import app
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.ros.messages.images import camera_info_message, image_to_message
from osmabench_ros.ros.messages.message_definitions import interface_class
from osmabench_ros.ros.qos import frame_profile, latched_profile

PINHOLE = Intrinsics(64, 48, 32.0, 32.0, 32.0, 24.0)
PERIOD_S = 0.05


class Robot(Node):
    """A third-party camera driver, with its own names, stamps and faults."""

    def __init__(self, context, *, faulty):
        super().__init__('driver', context=context, namespace='/robot')
        self.faulty = faulty
        profile = frame_profile(lockstep=False)
        weak = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.color = self.create_publisher(Image, 'rgb', weak if faulty else profile)
        self.depth = self.create_publisher(Image, 'camera/depth/image_rect', profile)
        self.info = self.create_publisher(CameraInfo, 'camera/color/camera_info', profile)
        # A pose of the wrong type, and labels that late joiners miss.
        kind = CameraInfo if faulty else PoseStamped
        self.pose = self.create_publisher(kind, topics.CAMERA_POSE, profile)
        if faulty:
            self.create_publisher(LabelInfo, topics.LABEL_INFO, profile)
            self.create_subscription(Image, 'rgb', lambda _message: None, profile)

    def publish(self):
        now_ns = time.time_ns()
        stamp = Time(sec=now_ns // 10**9, nanosec=now_ns % 10**9)
        late = Time(sec=stamp.sec, nanosec=(stamp.nanosec + 3_000_000) % 10**9)
        scale = 1000.0 if self.faulty else 1.0
        depth = np.full((48, 64), 2.0 * scale, np.float32)
        color, frame = np.zeros((48, 64, 3), np.uint8), 'camera_optical'
        self.color.publish(image_to_message(color, 'rgb8', stamp, frame))
        of_depth = late if self.faulty else stamp
        self.depth.publish(image_to_message(depth, '32FC1', of_depth, frame))
        info = camera_info_message(PINHOLE, stamp, 'camera_optical')
        if self.faulty:
            info.k = [0.0] * 9
        self.info.publish(info)
        if not self.faulty:
            pose = PoseStamped()
            pose.header.stamp, pose.header.frame_id = stamp, 'world'
            self.pose.publish(pose)


@contextmanager
def running(domain, *, faulty):
    """Publish 20 frames per second until the block ends."""
    with context_in(domain) as context:
        robot, over = Robot(context, faulty=faulty), threading.Event()

        def work():
            while not over.wait(PERIOD_S):
                robot.publish()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            robot.destroy_node()


ROBOT_NAMES = examination.StackNames('robot', {topics.COLOR: 'rgb'})


def test_a_good_foreign_stack_passes(ros_domain):
    with running(ros_domain, faulty=False):
        findings = examine_stack(ROBOT_NAMES, seconds=1.5, domain=ros_domain)
    assert [item for item in findings if item.level in (Severity.FAILED, Severity.WARN)] == []
    color = [item.detail for item in findings if item.part == topics.COLOR]
    assert any('from /robot/driver' in text for text in color)
    assert any(text.endswith('messages') and 'Hz' in text for text in color)
    assert any('rgb8, 64 x 48' in text for text in color)


def test_everything_that_is_wrong_is_named_at_once(ros_domain):
    with running(ros_domain, faulty=True):
        findings = examine_stack(ROBOT_NAMES, seconds=1.5, domain=ros_domain)
    failed = {(item.part, item.detail) for item in findings if item.level is Severity.FAILED}
    for part, words in (
        (topics.COLOR, 'QoS: /robot/driver publishes best effort'),
        (topics.DEPTH, 'millimetres in 32FC1'),
        (topics.DEPTH, 'the nearest is'),
        (topics.COLOR_INFO, 'not calibrated'),
        (topics.CAMERA_POSE, 'publishes sensor_msgs/msg/CameraInfo'),
    ):
        assert any(part == p and words in detail for p, detail in failed), (part, words, failed)
    assert any(i.part == topics.LABEL_INFO and i.level is Severity.WARN for i in findings)
    assert all(item.remedy for item in findings if item.level is Severity.FAILED)


def test_a_message_that_lies_about_its_size_is_told(ros_domain):
    with running(ros_domain, faulty=False), context_in(ros_domain) as context:
        liar = Node('liar', context=context, namespace='/robot')
        publisher = liar.create_publisher(LabelInfo, topics.LABEL_INFO, latched_profile())
        lie = serialize_message(LabelInfo())[:-4] + struct.pack('<I', 2**31)
        publisher.publish(lie)
        findings = examine_stack(ROBOT_NAMES, seconds=0.5, domain=ros_domain)
        liar.destroy_node()
    wanted = topics.LABEL_INFO, Severity.FAILED
    [reported] = [item for item in findings if (item.part, item.level) == wanted]
    assert 'bytes are not a LabelInfo' in reported.detail


def test_the_command_fails_in_json_where_nothing_runs(ros_domain, monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(ros_domain))
    monkeypatch.setattr(stack_observation, 'PATIENCE_S', 0.0)
    result = CliRunner().invoke(app, ['doctor', '--stack', '--seconds', '0.5', '--json'])
    assert result.exit_code != 0
    [only] = json.loads(result.stdout)
    assert (only['part'], only['level']) == ('stack', 'failed')
    assert 'ROS_DOMAIN_ID' in only['remedy']


def test_silence_is_not_ok_and_who_comes_later_is_heard_whatever_its_qos(ros_domain):
    late = []

    def come(text, _fraction):
        if text == 'listening' and not late:
            late.append(mapper.create_publisher(SemanticMap, topics.SEMANTIC_MAP, 1))
        for publisher in late:
            publisher.publish(SemanticMap())

    with running(ros_domain, faulty=False), context_in(ros_domain) as context:
        mapper = Node('mapper', context=context, namespace='/robot')
        for kind, topic in ((SemanticMap, topics.SEMANTIC_MAP), (LabelInfo, topics.LABEL_INFO)):
            mapper.create_publisher(kind, topic, latched_profile())
        findings = examine_stack(ROBOT_NAMES, seconds=1.0, domain=ros_domain, progress=come)
    said = {(item.part, item.level): item.detail for item in findings}
    assert '/robot/mapper publishes volatile' in said[topics.SEMANTIC_MAP, Severity.WARN]
    assert 'frame_id is ""' in said[topics.SEMANTIC_MAP, Severity.FAILED]
    [(key, silence)] = [item for item in said.items() if item[0][0] == topics.LABEL_INFO]
    assert key[1] is Severity.WARN
    assert '/robot/mapper publishes, but no message came' in silence


@pytest.mark.gl
@pytest.mark.full
def test_the_bridge_itself_keeps_the_contract(ros_domain, tmp_path):
    values = {
        'image_width': 160, 'image_height': 120, 'goals': 3, 'seed': 3, 'frame_rate_hz': 10.0,
        'pacing': 'realtime', 'speed_factor': 0.5,
    }  # fmt: skip
    log, arguments = tmp_path / 'log', node_arguments('simulator_bridge_node', values)
    with process(ros_domain, *arguments, stderr=log.open('w')):
        wait_until(lambda: 'frames from' in log.read_text(), state=log.read_text)
        findings = examine_stack(examination.StackNames(), seconds=5.0, domain=ros_domain)
    bad = [item for item in findings if item.level in (Severity.FAILED, Severity.WARN)]
    # A busy machine may be slower than declared; nothing else may be said.
    assert [item for item in bad if 'Hz' not in item.detail] == []
    text = ' '.join(item.detail for item in findings)
    if interface_class('tf2_msgs/msg/TFMessage'):
        assert 'world → base_link → camera_link → camera_color_optical_frame' in text
    for words in ('declared 5 Hz', 'goes forward', 'all named', 'realtime', '100% of the stamps'):
        assert words in text, text


def test_a_robot_file_names_topics_and_the_map(tmp_path, ros_domain):
    file = tmp_path / 'robot.yaml'
    file.write_text(
        f'name: mine\ntopics: {{{topics.COLOR}: rgb}}\n'
        'map: {topic: /cloud_map, type: sensor_msgs/msg/PointCloud2}\n'
    )
    names = names_of_robot(file)
    assert names.remappings == {topics.COLOR: 'rgb'}
    stack = examination.StackNames('robot', names.remappings, names.extra_topics)
    with running(ros_domain, faulty=False), context_in(ros_domain) as context:
        node = Node('rtabmap', context=context)
        node.create_publisher(PointCloud2, '/cloud_map', 1)
        findings = examine_stack(stack, seconds=0.5, domain=ros_domain)
    assert any(i.part == '/cloud_map' and 'no map came yet' in i.detail for i in findings)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('topics: {camera/rgb: x}', 'is not a topic of the contract'),
        ('- 1', 'must be a mapping'),
        ('topics: [', 'is not YAML'),
        ('map: {topic: /map}', r'robot.yaml: map.type is "", and not of the form'),
    ],
)
def test_a_robot_file_that_is_wrong_is_refused(text, words, tmp_path):
    file = tmp_path / 'robot.yaml'
    file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        names_of_robot(file)


@pytest.mark.parametrize('name', ['rtabmap', 'hydra', 'nvblox'])
def test_the_bundled_robot_files_can_be_read(name):
    names = names_of_robot(Path(name))
    assert all(text.count('/') == 2 for text in names.extra_topics.values())


@pytest.mark.parametrize('remap', ['camera/color/image_raw', 'nonsense:=/x'])
def test_a_remap_that_is_wrong_is_refused(remap):
    result = CliRunner().invoke(app, ['doctor', '--stack', '--remap', remap])
    assert isinstance(result.exception, ConfigError)
