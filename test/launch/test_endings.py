"""How launch files end before their time: Ctrl-C, and a part that is not installed."""

import os
import signal
import time

import psutil
import pytest
from support.ros2_launch import SMALL, finished, full_run, write_stack
from support.waiting import read_until, wait_until

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(300)]

LONG = (*SMALL, 'max_frames:=60')
INTERRUPTED = 'interrupted before the end of the run'


def family(process):
    return psutil.Process(process.pid).children(recursive=True)


def all_gone(processes, timeout_s=20.0):
    return not psutil.wait_procs(processes, timeout=timeout_s)[1]


def press_ctrl_c(process):
    """As a terminal does: the whole group hears it, and an impatient user presses twice."""
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    return finished(process, 1, 60.0)


def test_ctrl_c_while_the_scene_is_prepared_starts_no_node(tmp_path, ros_domain):
    process = full_run(tmp_path, *LONG, domain=ros_domain)
    read_until(process, 'casting rays')

    # Again and again, so that one comes while Python ends.
    def interrupt():
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)

    wait_until(lambda: process.poll() is not None, 60.0, step=interrupt)
    text = finished(process, 1, 60.0)
    assert INTERRUPTED in text
    assert 'process started' not in text


@pytest.mark.parametrize('stage', ['frames from', 'evaluating: starting'])
def test_ctrl_c_ends_all_nodes_quietly_and_the_launch_with_an_error(tmp_path, ros_domain, stage):
    process = full_run(tmp_path, *LONG, domain=ros_domain)
    read_until(process, stage)
    nodes = family(process)
    assert len(nodes) >= 4
    text = press_ctrl_c(process)
    assert INTERRUPTED in text
    assert 'Traceback' not in text
    died = [line for line in text.splitlines() if 'process has died' in line]
    # It alone owes a result: its exit code is the verdict.
    assert [line for line in died if '[evaluator_node-' not in line] == [], text
    assert all_gone(nodes)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGKILL])
def test_no_node_outlives_a_launch_that_is_killed(tmp_path, ros_domain, number):
    process = full_run(tmp_path, *LONG, domain=ros_domain)
    read_until(process, 'frames from')
    nodes = family(process)
    assert len(nodes) >= 4
    process.send_signal(number)
    finished(process, -number, 60.0)
    assert all_gone(nodes)


def test_a_node_that_cannot_be_started_leaves_no_other_behind(tmp_path, ros_domain):
    nodes = [
        {'executable': 'map_viewer_node', 'name': 'there', 'arguments': [str(tmp_path)]},
        {'executable': 'not_there', 'name': 'absent'},
    ]
    nodes = [{'package': 'osmabench_ros', **node} for node in nodes]
    stack = write_stack(tmp_path / 'half.yaml', nodes=nodes, participants=['there'])
    process = full_run(tmp_path / 'out', f'mapper:={stack}', *LONG, domain=ros_domain)
    text = finished(process, 1)
    assert "'not_there' not found" in text
    found = [' '.join(item.info['cmdline'] or []) for item in psutil.process_iter(['cmdline'])]
    assert [line for line in found if str(tmp_path) in line] == []
