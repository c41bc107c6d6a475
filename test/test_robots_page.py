"""The commands of docs/robots.md, taken from the page itself, work as it says."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec

import pytest
import yaml
from support import SUPPORT, TESTS
from support.ros_processes import listening, process
from support.waiting import read_until
from support.world import recorded_room as room
from support.world.bags import odometry
from support.world.maps import cloud as true_cloud
from support.world.maps import labelled_map, write_scan
from support.world.runs import small_config

from osmabench_ros.bringup.isolation import make_isolated_environment

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = TESTS.parent / 'docs' / 'robots.md'
MARK = 'last ran'
SMALL = 'image_width:=96 image_height:=64 frame_rate_hz:=2.0 goals:=2 speed_factor:=0.5'
needs_ros2 = pytest.mark.skipif(
    shutil.which('ros2') is None or find_spec('rosidl_runtime_py') is None,
    reason='ros2 launch or ros2 service is not installed; source a ROS 2 installation',
)


def commands():
    """Return the commands of the page, in blocks and in the text; a mark stays with its own."""
    text = re.sub(r'\\\n\s*', '', PAGE.read_text('utf-8'))
    found = re.findall(r'^ {4}(\S.*)$', text, re.MULTILINE)
    # In the text a name such as `osmabench run` is not there to be typed.
    found += [item for item in re.findall(r'`([^`\n]+)`', text) if item.count(' ') > 1]
    starts = ('osmabench ', 'ros2 ', 'export ')
    reported = [item for item in found if item.startswith(starts)]
    return [item if MARK in item else item.split(' #')[0].strip() for item in reported]


TAKEN = []


class Command:
    """The one command of the page that begins like this, for tests to run."""

    def __init__(self, start):
        self.start = start
        TAKEN.append(start)

    def text(self, domain):
        """Return it only for this machine, in a domain of the test."""
        [found] = {item for item in commands() if item.startswith(self.start)}
        assert MARK not in found
        return found.replace('SUBNET', 'LOCALHOST').replace('DOMAIN_ID=7', f'DOMAIN_ID={domain}')

    @contextmanager
    def started(self, folder, domain, more=''):
        """Yield the command while it runs; what still does at the end gets Ctrl-C."""
        environment = {**make_isolated_environment(domain), 'ROS_LOG_DIR': str(folder / 'log')}
        prefix = f'{environment.get("AMENT_PREFIX_PATH", "")}:{sys.prefix}'
        running = subprocess.Popen(
            ['bash', '-c', f'{self.text(domain)} {more}'],
            cwd=folder,
            env={**environment, 'AMENT_PREFIX_PATH': prefix},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield running
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGINT)
            running.communicate(timeout=60)

    def run(self, folder, domain=0, more=''):
        """Return its output; it ends by itself, and well."""
        with self.started(folder, domain, more) as running:
            output, _ = running.communicate(timeout=300)
        assert running.returncode == 0, f'{self.start}\n{output}'
        return output


EXPORT = Command('export ROS_DOMAIN_ID')
DOCTOR, RECORD = Command('osmabench doctor'), Command('osmabench bag record')
IMPORT, TRUTH = Command('osmabench scene import'), Command('osmabench scene ground-truth')
SCAN = Command('osmabench bag evaluate kitchen_1 --reference scan.ply')
POSES = Command('osmabench bag evaluate kitchen_1 --pose-topic')
SWEEP, SWEEP_HELP = Command('osmabench run my.yaml --speeds auto'), Command('osmabench run --help')
RECORD_LAUNCH = Command('ros2 launch osmabench_ros record')
ON_ROBOT = Command('ros2 launch osmabench_ros on_robot')
BRIDGE = Command('ros2 launch osmabench_ros bridge')
FINISH = Command('ros2 service call /finish_map')
SERVICES = [
    Command(f'ros2 service call /{name}')
    for name in ('pause_run', 'step_run', 'start_run', 'reset_run')
]
GOAL, ECHO = Command('ros2 action send_goal'), Command('ros2 topic echo')


def test_every_command_of_the_page_is_run_here_or_says_when_it_last_ran():
    unmarked = [item for item in commands() if MARK not in item]
    assert len(unmarked) >= len(TAKEN)
    for command in unmarked:
        assert len([start for start in TAKEN if command.startswith(start)]) == 1, command


def test_a_running_camera_is_examined_and_recorded(tmp_path, ros_domain):
    from osmabench_ros.sequences.bags.bag import open_bag

    camera = TESTS.parent / 'benchmarks' / 'faulty_stacks.py'
    with process(ros_domain, str(camera), f'none={ros_domain}') as running:
        read_until(running, 'none')
        reported = EXPORT.run(tmp_path, ros_domain, f'&& {DOCTOR.text(ros_domain)} --json')
        RECORD.run(tmp_path, ros_domain, '--duration 8')
        running.terminate()
        running.wait(60)
    levels = {(item['part'], item['level']) for item in json.loads(reported)}
    assert ('camera/depth/image_rect', 'ok') in levels
    assert ('/rtabmap/cloud_map', 'absent') in levels
    with open_bag(tmp_path / 'kitchen_2') as bag:
        assert any(item.topic == '/camera/color/image_raw' for item in bag.connections)


def test_a_bag_is_scored_by_a_scan_and_by_motion_capture(tmp_path):
    own = [
        ('/odom', stamp, odometry(pose, stamp, 'odom', 'base'))
        for stamp, pose in room.true_poses()
    ]
    room.write_room(tmp_path / 'kitchen_1', room.cloud(labelled_map()), room.labels(), *own)
    write_scan(tmp_path / 'scan.ply', true_cloud().points)
    room.write_true_poses(tmp_path / 'poses.tum')
    assert 'map_geometry' in SCAN.run(tmp_path, more='--suite map_geometry --out scan')
    assert 'ape_translation_rmse_m' in POSES.run(tmp_path, more='--suite map_geometry --out poses')


@pytest.mark.full
def test_a_sweep_finds_a_speed(tmp_path):
    config = small_config(sweep={'speeds': [1.0]})
    (tmp_path / 'my.yaml').write_text(yaml.safe_dump(config))
    assert 'fastest speed' in SWEEP.run(tmp_path)
    assert '--speeds' in SWEEP_HELP.run(tmp_path)


@pytest.fixture(scope='module')
def kitchen(tmp_path_factory):
    """A folder where the ground truth was made as the page says."""
    tmp_path = tmp_path_factory.mktemp('kitchen')
    IMPORT.run(tmp_path)
    config = small_config(
        name='kitchen',
        scenes=[{'reference': 'kitchen'}],
        camera={'width': 96, 'height': 64},
        trajectory={'goals': 2, 'frame_rate_hz': 2.0, 'max_frames': 20},
    )
    (tmp_path / 'kitchen.yaml').write_text(yaml.safe_dump(config))
    printed = TRUTH.run(tmp_path).split()[-1]
    assert f'ground_truth:={printed}' in ON_ROBOT.text(0)
    assert f'`{printed}`' in PAGE.read_text('utf-8')
    return tmp_path


@pytest.mark.full
def test_the_ground_truth_is_made_where_the_page_looks_for_it(kitchen):
    assert (kitchen / ON_ROBOT.text(0).split('ground_truth:=')[1].split()[0]).is_dir()


@pytest.mark.full
@needs_ros2
def test_a_stack_is_recorded_controlled_and_scored(kitchen, ros_domain):
    stack = [str(SUPPORT / 'cloud_stack.py'), '--ros-args', '-r', '__node:=rtabmap']
    remapped = ['-r', '/stack/cloud_map:=/rtabmap/cloud_map']
    config = 'config:=single_run record:=false'
    with (
        process(ros_domain, *stack, *remapped),
        RECORD_LAUNCH.started(kitchen, ros_domain),
        ON_ROBOT.started(kitchen, ros_domain, config) as measuring,
        listening(ros_domain, '/clock') as frames,
        BRIDGE.started(kitchen, ros_domain, SMALL),
    ):
        frames.wait('/clock', 1)
        for service in SERVICES:
            reported = service.run(kitchen, ros_domain)
            assert 'error_code=0' in reported, reported
        # After the reset it has begun again.
        frames.wait('/clock', 12)
        with GOAL.started(kitchen, ros_domain) as goal:
            read_until(goal, 'no map was recorded yet')
        with ECHO.started(kitchen, ros_domain, '--no-daemon') as echo:
            read_until(echo, 'level')
        assert 'error_code=0' in FINISH.run(kitchen, ros_domain)
        output, _ = measuring.communicate(timeout=200)
        assert measuring.returncode == 0, output
    assert json.loads((kitchen / 'kitchen_3' / 'report.json').read_text())['metrics']
    assert list((kitchen / 'kitchen_1').glob('*.mcap'))
