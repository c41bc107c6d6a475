"""The evaluator as a process: files after a signal in the middle of an evaluation."""

import signal
import subprocess
import sys

import pytest
import yaml
from support.world.maps import labelled_map, write_inputs

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.msg import RecordedMap
from rclpy.node import Node
from support import SUPPORT
from support.waiting import wait_until

from osmabench_ros.base import contract as topics
from osmabench_ros.base.files import MARKER
from osmabench_ros.bringup.spec.isolation import make_isolated_environment
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluate.evaluation import REPORT, EvaluationInputs
from osmabench_ros.runs.evaluate.map_evaluation import evaluate_map, identify_unnamed_run

PROGRAM = SUPPORT / 'hanging_evaluator.py'


def started(kind, folder, domain, context):
    """Start an evaluator on a map and wait until its suite is at work."""
    write_inputs(folder, labelled_map())
    values = {
        'ground_truth_directory': str(folder / 'ground_truth'),
        'output_directory': str(folder / 'out'),
        'suites': '[{name: hanging}]',
        'plan_file': str(folder / 'plan.json'),
        'autostart': True,
    }
    (folder / 'plan.json').write_text('{"use_run_info": false}')
    file = folder / 'parameters.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), kind, '--ros-args', '--params-file', str(file)],
        env=dict(make_isolated_environment(domain)),
        stderr=subprocess.PIPE,
        text=True,
    )
    node = Node('recorder', context=context)
    publisher = node.create_publisher(RecordedMap, topics.RECORDED_MAP, latched_profile())
    publisher.publish(RecordedMap(uri=(folder / 'map').as_uri(), is_final=True))
    try:
        wait_until(lambda: list(folder.glob('out/.*/vqa/begun.txt')))
    except AssertionError:
        process.kill()
        raise
    return process


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_evaluation_ends_and_leaves_nothing(
    number, tmp_path, ros_domain, ros_context
):
    process = started('patient', tmp_path, ros_domain, ros_context)
    process.send_signal(number)
    _, reported = process.communicate(timeout=180)
    assert process.returncode == 130, reported
    assert [path.name for path in (tmp_path / 'out').iterdir()] == [MARKER]


def test_a_suite_that_hears_nothing_does_not_keep_the_process(tmp_path, ros_domain, ros_context):
    process = started('deaf', tmp_path, ros_domain, ros_context)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=180)
    assert process.returncode != 0
    assert not (tmp_path / 'out' / REPORT).exists()


def test_after_a_kill_the_next_evaluation_is_whole(tmp_path, ros_domain, ros_context):
    process = started('patient', tmp_path, ros_domain, ros_context)
    process.kill()
    process.communicate(timeout=180)
    assert not (tmp_path / 'out' / REPORT).exists()
    folders = (tmp_path / name for name in ('map', 'ground_truth', 'out'))
    inputs = EvaluationInputs(identify_unnamed_run(), *folders, device='cpu')
    evaluate_map(inputs, [SuiteConfig(name='exact_questions')])
    left = {path.name for path in (tmp_path / 'out').rglob('*')}
    assert left == {
        MARKER, REPORT, 'vqa', 'questions.jsonl', 'answers.jsonl', 'verdicts.jsonl',
        'answering.json', 'judging.json',
    }  # fmt: skip
