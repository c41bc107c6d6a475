"""Shared memory that a killed process leaves."""

import os
import signal
import sys
from pathlib import Path

import pytest
from support.waiting import wait_until

from osmabench_ros.bringup.runner import node_processes
from osmabench_ros.bringup.runner.node_processes import ManagedProcess
from osmabench_ros.bringup.spec.isolation import FOLDER, SEGMENT_LOCK, make_isolated_environment

pytestmark = pytest.mark.ros

NODE = """
import rclpy
rclpy.init()
node = rclpy.create_node('holder')
print('ready', flush=True)
rclpy.spin(node)
"""


def started(name, folder, domain):
    log = folder / f'{name}.log'
    process = ManagedProcess(
        name, [sys.executable, '-c', NODE], log, make_isolated_environment(domain)
    )
    wait_until(lambda: 'ready' in log.read_text() or process.poll() is not None)
    assert process.poll() is None
    return process


def segments_of(process):
    links = [link.readlink() for link in Path(f'/proc/{process.pid}/fd').iterdir()]
    locks = [link for link in links if SEGMENT_LOCK.fullmatch(link.name)]
    return [*locks, *(FOLDER / lock.name.removesuffix('_el') for lock in locks)]


def test_a_killed_process_leaves_no_segment_and_others_keep_theirs(
    ros_domain, tmp_path, monkeypatch
):
    monkeypatch.setattr(node_processes, 'SEGMENTS_PERIOD_S', 0.0)
    killed, alive = (started(name, tmp_path, ros_domain) for name in ('killed', 'alive'))
    lost, kept = segments_of(killed), segments_of(alive)
    assert lost
    assert kept
    killed.poll()
    os.kill(killed.pid, signal.SIGKILL)
    wait_until(lambda: killed.poll() is not None)
    assert all(path.exists() for path in lost)
    killed.stop()
    assert not any(path.exists() for path in lost)
    assert all(path.exists() for path in kept)
    alive.stop()
