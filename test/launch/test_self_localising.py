"""One drive through a stack that localises itself, measured in four ways under ros2 launch."""

import json
import os
import subprocess
import sys

import pytest
import yaml
from support import SUPPORT
from support.ros2_launch import finished, interrupted, ros2_launch, write_stack
from support.waiting import read_until

pytest.importorskip('tf2_ros', reason='tf2_ros is not installed; source a ROS 2 installation')

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(400)]

STACK = SUPPORT / 'localising_stack.py'
MAP_TOPIC = '/slam/cloud_map'
EDGES = ['map->odom', 'odom->base_link']
IMAGE = ('image_width:=96', 'image_height:=64', 'frame_rate_hz:=2.0', 'speed_factor:=2.0')
SUITES = ('osma_segmentation', 'map_geometry')


def figures(report):
    """Return the figures of the map in a report of a run, a matrix or a bag."""
    made = json.loads(report.read_text())
    records = made['metrics'] if 'metrics' in made else made['runs'][0]['metrics']
    return {
        (item['suite'], item['mode'] or '', item['metric'], item['class_name']): item['value']
        for item in records
        if item['suite'] in SUITES
    }


def osmabench(*words, cwd):
    done = subprocess.run(
        [sys.executable, '-m', 'osmabench_ros.cli', *words],
        cwd=cwd, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope='module')
def stack_file(tmp_path_factory):
    return write_stack(
        tmp_path_factory.mktemp('stack') / 'slam.yaml',
        program={'command': [sys.executable, str(STACK)]},
        map={'topic': MAP_TOPIC, 'type': 'sensor_msgs/msg/PointCloud2'},
        participants=['localising_stack'],
        transforms=EDGES,
    )


@pytest.fixture(scope='module')
def run(tmp_path_factory, stack_file):
    """The folder of `osmabench run`, of the drive that full_run makes of the same words."""
    folder = tmp_path_factory.mktemp('run')
    config = {
        'name': 'slam',
        'scenes': [{'reference': 'apartment', 'seed': 5}],
        'mappers': [{'name': 'slam', 'stack': str(stack_file)}],
        'camera': {'width': 96, 'height': 64},
        'trajectory': {'goals': 8, 'frame_rate_hz': 2.0, 'max_frames': 10},
        'pacing': {'mode': 'realtime', 'speed_factor': 2.0},
        'recording': {'enabled': True},
        'suites': [{'name': name} for name in SUITES],
    }
    (folder / 'slam.yaml').write_text(yaml.safe_dump(config))
    osmabench('run', 'slam.yaml', '--out', 'runs', cwd=folder)
    return folder / 'runs' / 'slam'


@pytest.fixture(scope='module')
def shared(run):
    """Path and ground truth of that drive."""
    return next((run / 'shared').iterdir())


@pytest.fixture(scope='module')
def robot(tmp_path_factory, shared, stack_file):
    """What on_robot left and said beside a bridge and a stack that know nothing of it."""
    from osmabench_ros.bringup.isolation import private_domain

    folder = tmp_path_factory.mktemp('robot')
    with private_domain() as domain:
        measuring = ros2_launch(
            'on_robot.launch.py', f'out:={folder / "out"}', f'stack:={stack_file}',
            f'ground_truth:={shared / "ground_truth"}', 'mapper:=slam',
            domain=domain, logs=folder,
        )  # fmt: skip
        read_until(measuring, 'recording to')
        mapping = subprocess.Popen(
            [sys.executable, str(STACK)], env={**os.environ, 'ROS_DOMAIN_ID': str(domain)}
        )
        simulating = ros2_launch(
            'bridge.launch.py', *IMAGE, f'path_file:={shared / "path.json"}',
            f'transforms:={",".join(EDGES)}',
            'participants:=mapper,map_recorder,bag_recorder,localising_stack',
            domain=domain, logs=folder,
        )  # fmt: skip
        try:
            text = finished(measuring)
        finally:
            mapping.terminate()
            mapping.wait(60)
            interrupted(simulating)
    return measuring, folder / 'out', text


def test_the_stack_is_scored_where_it_drove(run):
    known = figures(run / 'report.json')
    # Its labels are ours, and its map begins at the first pose, which is not the world.
    assert known['osma_segmentation', 'strict', 'accuracy', ''] > 0.95
    assert known['map_geometry', '', 'coverage', ''] > 0.1


def test_full_run_gives_the_same_figures(run, stack_file, tmp_path, ros_domain):
    undeclared = {**yaml.safe_load(stack_file.read_text()), 'transforms': []}
    own_file = tmp_path / 'slam.yaml'
    own_file.write_text(yaml.safe_dump(undeclared))
    process = ros2_launch(
        'full_run.launch.py', f'mapper:={own_file}', f'transforms:={",".join(EDGES)}',
        'pacing:=realtime', 'max_frames:=10', *IMAGE, f'out:={tmp_path / "out"}',
        domain=ros_domain, logs=tmp_path,
    )  # fmt: skip
    finished(process, 0)
    [report] = tmp_path.glob('out/*/report.json')
    assert figures(report) == figures(run / 'report.json')


def test_on_robot_gives_the_same_figures_and_says_them(run, robot):
    process, out, text = robot
    assert process.returncode == 0, text
    assert figures(out / 'report.json') == figures(run / 'report.json')
    accuracy = figures(out / 'report.json')['osma_segmentation', 'strict', 'accuracy', '']
    assert 'osma_segmentation' in text
    assert f'{accuracy:.4g}' in text
    assert f'complete; {out / "report.html"}' in text
    assert (out / 'report.html').stat().st_size > 0


def test_the_bags_hold_what_the_stack_published(run, robot, shared, tmp_path):
    for name, bag in (('robot', robot[1] / 'bag'), ('run', next(run.glob('*/bag')))):
        for topic in (MAP_TOPIC, ''):
            out = tmp_path / f'{name}{topic.replace("/", "_")}'
            osmabench(
                'bag', 'evaluate', str(bag), '--map-topic', topic,
                '--ground-truth', str(shared / 'ground_truth'), '--out', str(out), cwd=tmp_path,
            )  # fmt: skip
            assert figures(out / 'report.json') == figures(run / 'report.json')


LOST = """
import rclpy
from sensor_msgs.msg import PointCloud2
rclpy.init()
node = rclpy.create_node('lost_stack')
publisher = node.create_publisher(PointCloud2, '/cloud', 1)
message = PointCloud2(height=1)
message.header.frame_id = 'map'
node.create_timer(0.2, lambda: publisher.publish(message))
rclpy.spin(node)
"""


def test_on_robot_says_while_the_robot_drives_that_its_map_is_nowhere(tmp_path, ros_domain):
    measuring = ros2_launch(
        'on_robot.launch.py', f'out:={tmp_path / "out"}', 'map_topic:=/cloud', 'record:=false',
        domain=ros_domain, logs=tmp_path,
    )  # fmt: skip
    read_until(measuring, 'process started')
    mapping = subprocess.Popen(
        [sys.executable, '-c', LOST], env={**os.environ, 'ROS_DOMAIN_ID': str(ros_domain)}
    )
    said = read_until(measuring, 'without it the map is not scored').splitlines()[-1]
    assert 'topic "/cloud" is in frame "map", and TF does not say where that is' in said
    interrupted(measuring)
    mapping.terminate()
    mapping.wait(60)
