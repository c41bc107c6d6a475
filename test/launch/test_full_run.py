"""full_run.launch.py under the real ros2 launch; skipped where launch is not installed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    'launch_ros', reason='launch_ros is not installed; source a ROS 2 installation'
)

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(300)]

SMALL = ('max_frames:=5', 'frame_rate_hz:=1.0', 'image_width:=96', 'image_height:=64')


def ros2_launch(out: Path, *arguments: str, domain: int) -> subprocess.Popen:
    if shutil.which('ros2') is None:
        pytest.skip('the ros2 command is not on PATH; source a ROS 2 installation')
    # launch stops its nodes at SIGINT, and a shell's background job would ignore that signal.
    return subprocess.Popen(
        ['ros2', 'launch', 'osmabench_ros', 'full_run.launch.py', f'out:={out}', *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={
            **os.environ,
            'AMENT_PREFIX_PATH': f'{os.environ.get("AMENT_PREFIX_PATH", "")}:{sys.prefix}',
            'ROS_DOMAIN_ID': str(domain),
            'ROS_LOG_DIR': str(out / 'log'),
        },
    )


def finished(process: subprocess.Popen) -> str:
    text, _ = process.communicate(timeout=280)
    return text


def test_a_full_run_ends_with_a_report_and_zero(tmp_path: Path, ros_domain: int) -> None:
    process = ros2_launch(tmp_path, *SMALL, 'condition:=camera', domain=ros_domain)
    text = finished(process)
    assert process.returncode == 0, text
    [report] = tmp_path.glob('*/report.json')
    assert json.loads(report.read_text())['passed'] is True
    assert report.with_suffix('.html').exists()


def test_a_node_that_dies_ends_the_launch_with_its_name(tmp_path: Path, ros_domain: int) -> None:
    process = ros2_launch(tmp_path, *SMALL, 'max_frames:=60', domain=ros_domain)
    mapper = wait_for_node('mapper_node', process)
    os.kill(mapper, signal.SIGKILL)
    text = finished(process)
    assert process.returncode != 0, text
    assert 'node "mapper" ended before the run' in text
    assert not list(tmp_path.glob('*/report.json'))


def test_an_unknown_condition_is_refused_with_the_choices(tmp_path: Path, ros_domain: int) -> None:
    process = ros2_launch(tmp_path, 'condition:=camra', domain=ros_domain)
    text = finished(process)
    assert process.returncode != 0
    assert 'camra' in text
    assert 'baseline' in text


def wait_for_node(program: str, process: subprocess.Popen) -> int:
    """Return the pid of a node once the bridge is ready to publish."""
    pid = 0
    for line in process.stdout:
        if f'[{program}-' in line and 'started with pid' in line:
            pid = int(line.rsplit('[', 1)[1].split(']')[0])
        if 'frames from' in line:
            return pid
    raise AssertionError('the run did not start')
