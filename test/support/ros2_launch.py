"""Runs launch files with the real ros2 command."""

import os
import shutil
import signal
import subprocess
import sys

import pytest
import yaml

pytest.importorskip(
    'launch_ros', reason='launch_ros is not installed; source a ROS 2 installation'
)

SMALL = ('max_frames:=5', 'frame_rate_hz:=1.0', 'image_width:=96', 'image_height:=64')


def write_stack(file, **parts):
    """Write the description of a stack that publishes a cloud; return its file."""
    cloud = {'topic': '/stack/cloud_map', 'type': 'sensor_msgs/msg/PointCloud2'}
    given = {'source': 'https://example.org', 'install': [], 'map': cloud, 'name': file.stem}
    file.write_text(yaml.safe_dump({**given, **parts}))
    return file


def full_run(out, *arguments, domain):
    """Start full_run.launch.py, with its logs beside its results."""
    return ros2_launch('full_run.launch.py', f'out:={out}', *arguments, domain=domain, logs=out)


def ros2_launch(file, *arguments, domain, logs):
    """Start a launch file of this package in a domain."""
    if shutil.which('ros2') is None:
        pytest.skip('the ros2 command is not on PATH; source a ROS 2 installation')
    # launch stops its nodes at SIGINT, and a shell's background job would ignore that signal.
    return subprocess.Popen(
        ['ros2', 'launch', 'osmabench_ros', file, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={
            **os.environ,
            'AMENT_PREFIX_PATH': f'{os.environ.get("AMENT_PREFIX_PATH", "")}:{sys.prefix}',
            'ROS_DOMAIN_ID': str(domain),
            'ROS_LOG_DIR': str(logs / 'log'),
        },
    )


def finished(process, code=None, timeout_s=280.0):
    """Return the output of a launch that ends by itself, with an exit code if one is given."""
    text, _ = process.communicate(timeout=timeout_s)
    assert code in (None, process.returncode), text
    return text


def interrupted(process):
    """Press Ctrl-C, and return the output."""
    process.send_signal(signal.SIGINT)
    return finished(process, timeout_s=60.0)
