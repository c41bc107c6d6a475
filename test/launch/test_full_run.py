"""full_run.launch.py under the real ros2 launch; skipped where launch is not installed."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from support import SUPPORT
from support.ros2_launch import SMALL, finished, full_run, write_stack
from support.waiting import read_until

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(300)]

CLOUD_STACK = SUPPORT / 'cloud_stack.py'


def test_a_full_run_ends_with_a_report_and_zero(tmp_path, ros_domain):
    faster = tmp_path / 'faster.yaml'
    faster.write_text('motion: {speed_factor: 2.0}')
    process = full_run(tmp_path, *SMALL, f'condition:={faster}', domain=ros_domain)
    finished(process, 0)
    [report] = tmp_path.glob('*/report.json')
    made = json.loads(report.read_text())
    assert made['passed'] is True
    [condition] = {item['condition'] for item in made['runs'][0]['metrics']}
    assert Path(condition).stem == 'faster'
    assert report.with_suffix('.html').exists()


def run_stack(out, how, *arguments, domain):
    """Return exit code, output and report of a run of a stack in a file."""
    program = {'command': [sys.executable, str(CLOUD_STACK), how]}
    stack = write_stack(out.with_name('cloud.yaml'), program=program, participants=['cloud_stack'])
    process = full_run(out, *SMALL, f'mapper:={stack}', *arguments, domain=domain)
    text = finished(process)
    [report] = out.glob('*/report.json')
    return process.returncode, text, json.loads(report.read_text())


def test_a_foreign_stack_is_started_and_scored(tmp_path, ros_domain):
    code, text, report = run_stack(tmp_path / 'out', 'sleep:0', domain=ros_domain)
    assert code == 0, text
    assert {record['mapper'] for record in report['runs'][0]['metrics']} == {'cloud'}
    assert 'runs of mapper "cloud" are realtime' in ' '.join(report['warnings'])


def test_a_stack_that_is_cut_off_fails_the_launch(tmp_path, ros_domain):
    code, text, report = run_stack(
        tmp_path / 'out', 'sleep:3', 'settling:={settle_timeout_s: 4}', domain=ros_domain
    )
    assert code != 0, text
    assert 'is partial; give its mapper more time' in text
    assert report['passed'] is False
    assert report['runs'][0]['map_complete'] is False


def test_a_node_that_dies_ends_the_launch_with_its_name(tmp_path, ros_domain):
    process = full_run(tmp_path, *SMALL, 'max_frames:=60', domain=ros_domain)
    mapper = wait_for_node('mapper_node', process)
    os.kill(mapper, signal.SIGKILL)
    text = finished(process)
    assert process.returncode != 0, text
    assert 'node "mapper" ended before the run' in text
    assert not list(tmp_path.glob('*/report.json'))


@pytest.mark.parametrize(
    ('argument', 'near'),
    [
        ('condition:=camra', 'baseline'),
        ('conditon:=dynamic', 'Did you mean "condition"?'),
        ('mapper:=orcale', 'Did you mean "oracle"?'),
    ],
)
def test_what_does_not_exist_is_refused_with_the_choices(argument, near, tmp_path, ros_domain):
    process = full_run(tmp_path, argument, domain=ros_domain)
    text = finished(process, 1)
    assert argument.split(':=')[1] in text
    assert near in text
    assert 'process started' not in text


def wait_for_node(program, process):
    """Return the pid of a node once the bridge is ready to publish."""
    lines = read_until(process, 'frames from').splitlines()
    [line] = [line for line in lines if f'[{program}-' in line and 'started with pid' in line]
    return int(line.rsplit('[', 1)[1].split(']')[0])
