"""Stacks that publish their own kind of map take part in a run: as a command, by a file."""

import importlib.util
import json
import re
import shutil
import sys

import pytest
import yaml
from support import SUPPORT
from support.figures import figure_of
from support.world.runs import run_small, small_config

from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

STACK = SUPPORT / 'cloud_stack.py'
TOPIC = '/stack/cloud_map'
FRAMES = small_config()['trajectory']['max_frames']
CHANGES = {
    'camera': {'width': 160, 'height': 120},
    'pacing': {'speed_factor': 2.0, 'match_timeout_s': 60.0},
    'suites': [{'name': 'osma_segmentation'}, {'name': 'map_geometry'}],
}


@pytest.fixture
def run(prepared, nodes, tmp_path):
    def run(mapper, *, ready=True, **changes):
        data = small_config(mappers=[mapper], **{**CHANGES, **changes})
        return run_small(data, tmp_path, prepared=prepared if ready else None, nodes=nodes)

    return run


def cloud_stack(how='', **settings):
    command = [sys.executable, str(STACK), *filter(None, [how])]
    return {'name': 'cloud', 'command': command, 'map_topic': TOPIC, **settings}


def check(report):
    assert report.passed, report
    # The stack copies the labels of our images: nearly all that it mapped is right.
    assert figure_of(report.runs[0].metrics, 'accuracy', mode='strict') > 0.9
    assert report.runs[0].metrics[0].mapper == 'cloud'


@pytest.mark.full
def test_a_command_with_a_map_topic_is_scored(run, tmp_path):
    suites = [*CHANGES['suites'], {'name': 'exact_questions'}]
    report = run(cloud_stack(), suites=suites)
    check(report)
    # A cloud has no nodes, from which questions are answered.
    asked = [item for item in report.runs[0].metrics if item.suite == 'exact_questions']
    assert {item.applicable for item in asked if item.metric.startswith('accuracy')} == {False}
    assert '"verdict": "not applicable"' in (tmp_path / 'small' / 'report.html').read_text()
    # The configuration says lockstep, as it does by default.
    realtime = 'runs of mapper "cloud" are realtime, since it acknowledges no'
    assert [text for text in report.warnings if text.startswith(realtime)]
    assert list((tmp_path / 'small').glob('*/logs/method.log'))


@pytest.mark.full
def test_a_node_that_never_acknowledges_is_told_of_the_key(run):
    silent = {key: value for key, value in cloud_stack().items() if key != 'map_topic'}
    report = run(silent, pacing={'match_timeout_s': 10.0})
    assert '"mapper" does not publish frame_ack' in report.runs[0].error
    assert 'acks: false' in report.runs[0].error


def test_a_stack_from_a_file_is_launched_and_scored(run, tmp_path):
    if importlib.util.find_spec('launch_ros') is None or shutil.which('ros2') is None:
        pytest.skip('ros2 launch is not installed; source a ROS 2 installation')
    file = tmp_path / 'cloud.yaml'
    stack = {
        'name': 'cloud',
        'source': 'https://example.org',
        'install': [],
        'variables': {'script': 'where the program is'},
        'program': {'command': [sys.executable, '${script}']},
        'map': {'topic': TOPIC, 'type': 'sensor_msgs/msg/PointCloud2'},
        'participants': ['cloud_stack'],
    }
    file.write_text(yaml.safe_dump(stack))
    mapper = {'name': 'cloud', 'stack': str(file), 'variables': {'script': str(STACK)}}
    check(run(mapper))
    assert (next((tmp_path / 'small').glob('*/stack')) / 'label_space.yaml').exists()


def test_a_missing_variable_is_told_before_anything_starts(run, tmp_path):
    from osmabench_ros.errors import ConfigError

    with pytest.raises(ConfigError, match='dualmap needs the variable "python"'):
        run({'name': 'dualmap', 'stack': 'dualmap'}, ready=False)
    assert list(tmp_path.iterdir()) == []


def result(out, name):
    return json.loads(next((out / 'small').glob(f'*/{name}')).read_text())


def mapped(out):
    """Return the mapped frames of the method; None if it missed the first, as it may."""
    participants = result(out, 'timings.json')['participants']
    return next(item['mapped'] for item in participants if item['name'] == 'method')


@pytest.mark.full
@pytest.mark.alone
def test_a_slow_stack_is_waited_for_until_the_last_frame_is_in_its_map(run, tmp_path):
    report = run(cloud_stack('sleep:2', settle_s=0.3))
    check(report)
    last_s = (FRAMES - 1) / small_config()['trajectory']['frame_rate_hz']
    header = result(tmp_path, 'map/map.json')['header']
    assert header['stamp_ns'] == FIRST_STAMP_NS + last_s * 1e9
    assert report.runs[0].map_complete
    assert mapped(tmp_path) in (FRAMES, None)


@pytest.mark.full
def test_a_map_that_is_cut_off_is_partial_and_fails_the_run(run, tmp_path, capsys):
    from osmabench_ros.reports.terminal import print_report

    report = run(cloud_stack('sleep:2', settle_timeout_s=3))
    assert not report.passed
    [fault] = report.failed_requirements
    assert 'is partial; give its mapper more time (settle_timeout_s' in fault
    assert report.runs[0].failed_requirements == (fault,)
    [remark] = report.runs[0].remarks
    assert remark.startswith('the map is partial: cut off 3 s after the last frame')
    count = int(re.search(f'([0-9]) of {FRAMES} frames', remark)[1])
    assert 0 < count < FRAMES
    assert mapped(tmp_path) in (count, None)
    assert 'Partial map.' in (tmp_path / 'small' / 'report.html').read_text()
    print_report(report, tmp_path / 'small')
    shown = capsys.readouterr().out
    assert 'cloud (partial)' in shown
    assert remark in shown
