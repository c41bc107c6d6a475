"""The recorder as a process on a disk that fills up."""

import subprocess
import sys
import time

import numpy as np
from rclpy.node import Node
from support.fault_runs import own_mounts
from support.waiting import wait_until

from osmabench_ros.bringup.isolation import make_isolated_environment
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.ros.messages.map_messages import MapPublisher

NODE = 'osmabench_ros.nodes.map_recorder_node'
IN_A_SMALL_DISK = (
    'mount -t tmpfs -o size=64k tmpfs "$0" && "$@"; code=$?; '
    'echo left: $(ls -A "$0") >&2; exit $code'
)


def test_a_full_disk_is_told_and_holds_nothing_half_written(tmp_path, ros_domain, ros_context):
    process = subprocess.Popen(
        [*own_mounts(), 'sh', '-c', IN_A_SMALL_DISK, str(tmp_path), sys.executable, '-m', NODE,
         '--ros-args', '-p', 'autostart:=true', '-p', f'map_directory:={tmp_path}/map'],
        env=dict(make_isolated_environment(ros_domain)), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    node = Node('mapper', context=ros_context)
    publisher = MapPublisher(node, 'mapper')
    wait_until(lambda: process.poll() or publisher.chunks.get_subscription_count())
    assert process.poll() is None, process.stderr.read()
    # The recorder may match a moment later than this side does, and would miss the chunk.
    time.sleep(0.5)
    points = np.arange(3 * 20_000, dtype=np.float32).reshape(-1, 3)
    big = SemanticMap(MapHeader(Provenance('big')), dense=DenseMap(points))
    publisher.publish(big, is_final=True)
    _, reported = process.communicate(timeout=180)
    assert process.returncode == 1, reported
    assert f'cannot write {tmp_path}/map: No space left on device; free disk space' in reported
    assert reported.splitlines()[-1] == 'left:'
    assert 'Traceback' not in reported
