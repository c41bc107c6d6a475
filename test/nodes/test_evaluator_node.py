"""The evaluator over DDS: the final map by itself, and maps that goals of the action ask for."""

import signal
import threading
from contextlib import contextmanager
from functools import partial

import pytest
from action_msgs.msg import GoalStatus
from nodes.node_stage import openings
from osmabench_ros.action import Evaluate
from osmabench_ros.msg import EvaluationReport, RecordedMap, RunInfo
from rclpy.action import ActionClient
from rclpy.node import Node
from support import SUPPORT
from support.ros_processes import node_arguments, process
from support.waiting import wait_until
from support.world.maps import labelled_map, write_inputs

from osmabench_ros.base import contract as topics
from osmabench_ros.base.files import MARKER, read_json
from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.nodes.evaluator_node import EvaluatorNode
from osmabench_ros.ros.node.diagnostics import Level
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.runs import evaluation
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.suites.suite import make_suite

DONE_S = 40.0


class PatientSuite:
    """Takes as long as the test wants, and reports progress."""

    name = 'patient'

    def __init__(self):
        self.may_end = threading.Event()
        self.runs = 0

    def evaluate(self, context):
        self.runs += 1
        while not self.may_end.wait(0.02):
            context.progress('thinking', 0.5)
        (context.output_directory / 'thoughts.txt').write_text('deep')
        return [MetricRecord('patient', '', 'patience', '', 1.0, n=1)]


class FailingSuite:
    """Never comes to a result."""

    name = 'failing'

    def evaluate(self, _context):
        raise MetricError('the suite does not like this map')


class Goal:
    """A goal of the action, its feedback and its end."""

    def __init__(self, stage, client, **fields):
        self.stage = stage
        self.feedback = []
        sent = client.send_goal_async(
            Evaluate.Goal(**fields),
            feedback_callback=lambda message: self.feedback.append(message.feedback),
        )
        stage.spin_until(sent.done)
        self.handle = sent.result()
        self.accepted = self.handle.accepted
        self._ended = self.handle.get_result_async() if self.accepted else None

    def cancel(self):
        self.stage.spin_until(self.handle.cancel_goal_async().done)

    def end(self):
        """Wait for status and result."""
        self.stage.spin_until(self._ended.done, DONE_S)
        return self._ended.result().status, self._ended.result().result


class Evaluation:
    """An evaluator, and a run that it listens to."""

    def __init__(self, stage, folder):
        self.stage = stage
        self.folder = folder
        self.out = folder / 'out'
        self.reports = stage.listen(EvaluationReport, topics.EVALUATION, latched_profile())
        self.client = ActionClient(stage.peer, Evaluate, topics.EVALUATE)
        stage.spin_until(self.client.server_is_ready)
        stage.spin_until(lambda: stage.node.count_subscribers(topics.EVALUATION) > 0)

    def tell_run(self, run_id=''):
        parts = {'dataset': 'test', 'scene': 'room', 'condition': 'camera'}
        info = RunInfo(run_id=run_id, seed=4, mapper='m', simulator='s', **parts)
        self.stage.speak(RunInfo, topics.RUN_INFO, latched_profile()).publish(info)

    def tell_map(self, stamp_s=77):
        message = RecordedMap(uri=(self.folder / 'map').as_uri(), is_final=True)
        message.header.stamp.sec = stamp_s
        self.stage.speak(RecordedMap, topics.RECORDED_MAP, latched_profile()).publish(message)

    def goal(self, **fields):
        return Goal(self.stage, self.client, **fields)

    def stage_of_work(self):
        return str(self.stage.node.health().values['stage'])


@pytest.fixture
def patient(monkeypatch):
    """Two suites of this test in addition to the installed ones."""
    suite = PatientSuite()
    own = {'patient': suite, 'failing': FailingSuite()}

    def make(name, options=None):
        return own.get(name) or make_suite(name, options)

    monkeypatch.setattr(evaluation, 'make_suite', make)
    return suite


@pytest.fixture
def evaluator(ros_domain, tmp_path):
    write_inputs(tmp_path, labelled_map())
    values = {
        'ground_truth_directory': str(tmp_path / 'ground_truth'),
        'output_directory': str(tmp_path / 'out'),
        'suites': '[{name: exact_questions}]',
        'device': 'cpu',
    }
    user = partial(Evaluation, folder=tmp_path)
    with openings(EvaluatorNode, tmp_path, ros_domain, user, **values) as opening:
        yield opening


def test_the_final_map_of_a_run_is_evaluated_by_itself(evaluator):
    run = evaluator()
    run.tell_map()
    run.stage.spin_for(0.3)
    assert run.reports == [], 'the run is not known yet'
    run_id = 'test.room.camera.m.s.4-p5-m6'
    run.tell_run(run_id)
    run.stage.spin_until(lambda: bool(run.reports), DONE_S)
    [report] = run.reports
    assert (report.run_id, report.passed, report.error) == (run_id, True, '')
    assert report.header.stamp.sec == 77
    assert report.report_uri == (run.out / 'report.json').as_uri()
    written = read_json(run.out / 'report.json')
    assert len(written['metrics']) == len(report.metrics) > 0
    seeds = [written['metrics'][0][name] for name in ('seed', 'path_seed', 'method_seed')]
    assert seeds == [4, 5, 6]
    assert run.stage.node.exit_code is None
    run.tell_run(run_id)
    run.stage.spin_for(0.5)
    assert len(run.reports) == 1, 'once is enough'


NAMED = {'use_run_info': False}


def test_without_a_run_map_and_plan_name_it(evaluator):
    run = evaluator(plan=NAMED | {'mapper': 'real_stack', 'seed': 6}, exit_when_done=True)
    run.tell_map()
    assert run.stage.wait_for_end(DONE_S) == 0
    run.stage.spin_until(lambda: bool(run.reports))
    assert run.reports[0].run_id == 'test.room.baseline.real_stack.unknown.6'


def test_the_verdict_is_that_of_the_last_map_though_it_came_during_an_evaluation(
    evaluator, patient
):
    run = evaluator(suites='[{name: patient}]', plan=NAMED, exit_when_done=True)
    run.tell_map(77)
    run.stage.spin_until(lambda: patient.runs == 1, DONE_S)
    run.tell_map(78)  # of the run after a reset
    run.stage.spin_until(lambda: run.stage.node.recorded.header.stamp.sec == 78)
    patient.may_end.set()
    run.stage.wait_for_end(DONE_S)
    run.stage.spin_until(lambda: len(run.reports) == 2)
    assert patient.runs == 2
    assert [report.header.stamp.sec for report in run.reports] == [77, 78]


def test_a_threshold_that_does_not_hold_is_the_exit_code(evaluator, capsys):
    requirements = '[{suite: exact_questions, metric: accuracy, at_least: 1.5}]'
    run = evaluator(plan=NAMED, exit_when_done=True, requirements=requirements)
    run.tell_map()
    assert run.stage.wait_for_end(DONE_S) == 4
    assert 'accuracy >= 1.5' in capsys.readouterr().err


def test_an_evaluation_that_fails_ends_the_node_and_tells_all(evaluator, patient, capsys):
    run = evaluator(plan=NAMED, suites='[{name: failing}]')
    run.tell_map()
    assert run.stage.wait_for_end(DONE_S) == 1
    assert 'does not like this map' in capsys.readouterr().err
    run.stage.spin_until(lambda: bool(run.reports))
    assert 'does not like this map' in run.reports[0].error
    assert [item.name for item in run.out.iterdir()] == [MARKER]


def test_a_goal_gets_feedback_and_a_report_of_its_own(evaluator, patient):
    run = evaluator()
    run.tell_run()
    run.tell_map()
    run.stage.spin_until(lambda: run.stage.node.recorded is not None)
    goal = run.goal(suites=['patient'])
    assert goal.accepted
    run.stage.spin_until(lambda: 'patient: thinking' in [item.stage for item in goal.feedback])
    assert run.stage_of_work() == 'patient: thinking'
    assert run.stage.node.health().values['fraction'] == 0.5
    patient.may_end.set()
    status, result = goal.end()
    assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, Evaluate.Result.ERROR_NONE)
    [item] = result.report.metrics
    assert (item.suite, item.metric, item.value) == ('patient', 'patience', 1.0)
    assert result.report.run_id == 'test.room.camera.m.s.4'
    assert result.report.header.stamp.sec == 77
    assert result.report.report_uri == (run.out / 'evaluations/0001/report.json').as_uri()
    assert (run.out / 'evaluations/0001/vqa/thoughts.txt').read_text() == 'deep'
    fractions = [item.fraction for item in goal.feedback]
    assert fractions == sorted(fractions)
    of_run = read_json(run.out / 'report.json')['metrics']
    assert {item['suite'] for item in of_run} == {'exact_questions'}


def test_a_goal_may_name_any_map_and_takes_the_configured_suites(evaluator):
    run = evaluator(requirements='[{suite: map_geometry, metric: nothing, at_least: 0}]')
    status, result = run.goal(map_uri=(run.folder / 'map').as_uri()).end()
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert {item.suite for item in result.report.metrics} == {'exact_questions'}
    assert result.report.run_id == 'test.room.baseline.faultless.unknown.0'
    assert result.report.header.stamp.sec == 0
    assert not result.report.passed
    _, other = run.goal(map_uri=(run.folder / 'map').as_uri(), suites=['exact_questions']).end()
    assert other.report.passed, 'requirements of suites that the goal left out do not count'
    assert other.report.report_uri.endswith('evaluations/0002/report.json')


def test_a_cancelled_goal_leaves_nothing_and_the_next_one_works(evaluator, patient):
    run = evaluator(suites='[{name: patient}]')
    goal = run.goal(map_uri=(run.folder / 'map').as_uri())
    run.stage.spin_until(lambda: patient.runs == 1)
    goal.cancel()
    status, result = goal.end()
    assert status == GoalStatus.STATUS_CANCELED
    assert result.error_code == Evaluate.Result.ERROR_CANCELLED
    assert 'was cancelled at "patient' in result.error_msg
    assert {path.name for path in run.out.rglob('*') if path.is_file()} <= {MARKER}
    patient.may_end.set()
    status, _ = run.goal(map_uri=(run.folder / 'map').as_uri()).end()
    assert status == GoalStatus.STATUS_SUCCEEDED


def test_goals_wait_for_their_turn_and_can_be_cancelled_meanwhile(evaluator, patient):
    run = evaluator(plan=NAMED, suites='[{name: patient}]', exit_when_done=True)
    run.tell_map()
    run.stage.spin_until(lambda: patient.runs == 1)
    second, third = run.goal(), run.goal()
    run.stage.spin_until(lambda: bool(second.feedback))
    assert second.feedback[0].stage == 'waiting for another evaluation'
    assert run.stage.node.health().values['queued'] == 2
    third.cancel()
    status, result = third.end()
    assert status == GoalStatus.STATUS_CANCELED
    assert 'before it began' in result.error_msg
    assert patient.runs == 1
    patient.may_end.set()
    assert second.end()[0] == GoalStatus.STATUS_SUCCEEDED
    run.stage.spin_until(lambda: run.stage.node.exit_code == 0)
    assert patient.runs == 2
    assert len(run.reports) == 1, 'the report of the run is that of its own evaluation'


@pytest.mark.parametrize(
    ('fields', 'code', 'words'),
    [
        ({}, Evaluate.Result.ERROR_NO_MAP, 'no map was recorded yet'),
        ({'map_uri': 'file:///nowhere/at/all'}, Evaluate.Result.ERROR_NO_MAP, 'there is no map'),
        ({'map_uri': 'http://a/map'}, Evaluate.Result.ERROR_BAD_GOAL, 'must be a file:// address'),
        ({'map_uri': 'file:///a%00b'}, Evaluate.Result.ERROR_BAD_GOAL, 'is not a path'),
        ({'map_uri': 'file:///proc/self/mem'}, Evaluate.Result.ERROR_NO_MAP, 'there is no map'),
        ({'map_uri': 'MAP', 'suites': ['s' * 10**6]}, Evaluate.Result.ERROR_BAD_GOAL,
         'there is no suite'),
        ({'map_uri': 'MAP', 'suites': ['map_geometri']}, Evaluate.Result.ERROR_BAD_GOAL,
         'Did you mean "map_geometry"?'),
        ({'map_uri': 'MAP', 'suites': ['failing']}, Evaluate.Result.ERROR_FAILED,
         'does not like this map'),
        ({'map_uri': 'TRUTH'}, Evaluate.Result.ERROR_FAILED, 'map.json'),
    ],
)  # fmt: skip
def test_a_goal_that_cannot_be_done_is_aborted_with_the_reason(
    fields, code, words, evaluator, patient
):
    run = evaluator()
    places = {'MAP': run.folder / 'map', 'TRUTH': run.folder / 'ground_truth'}
    if (uri := fields.get('map_uri')) in places:
        fields = {**fields, 'map_uri': places[uri].as_uri()}
    status, result = run.goal(**fields).end()
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, code)
    assert words in result.error_msg
    assert run.stage.node.exit_code is None
    if code == Evaluate.Result.ERROR_FAILED:
        assert run.stage.node.health().level is Level.WARN


def test_an_inactive_evaluator_takes_no_goal_and_a_cleaned_up_one_answers(evaluator, patient):
    run = evaluator(suites='[{name: patient}]')
    goal = run.goal(map_uri=(run.folder / 'map').as_uri())
    run.stage.spin_until(lambda: patient.runs == 1)
    run.stage.node.trigger_deactivate()
    assert not run.goal(map_uri=(run.folder / 'map').as_uri()).accepted
    run.stage.node.trigger_cleanup()
    status, result = goal.end()
    assert status == GoalStatus.STATUS_ABORTED
    assert result.error_code == Evaluate.Result.ERROR_CANCELLED
    patient.may_end.set()
    run.stage.bring_up()
    run.tell_run()
    run.tell_map()
    run.stage.spin_until(lambda: bool(run.reports), DONE_S)
    assert run.reports[0].metrics[0].metric == 'patience'


PROGRAM = SUPPORT / 'hanging_evaluator.py'


@contextmanager
def started(kind, folder, domain, context):
    """Start an evaluator on a map, and yield it once its suite is at work."""
    write_inputs(folder, labelled_map())
    values = {
        'ground_truth_directory': str(folder / 'ground_truth'),
        'output_directory': str(folder / 'out'),
        'suites': '[{name: hanging}]',
        'plan_file': str(folder / 'plan.json'),
    }
    (folder / 'plan.json').write_text('{"use_run_info": false}')
    _, _, *arguments = node_arguments('evaluator_node', values)
    with process(domain, str(PROGRAM), kind, *arguments) as running:
        node = Node('recorder', context=context)
        publisher = node.create_publisher(RecordedMap, topics.RECORDED_MAP, latched_profile())
        publisher.publish(RecordedMap(uri=(folder / 'map').as_uri(), is_final=True))
        wait_until(lambda: list(folder.glob('out/.*/vqa/begun.txt')))
        yield running


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_evaluation_ends_and_leaves_nothing(
    number, tmp_path, ros_domain, ros_context
):
    with started('patient', tmp_path, ros_domain, ros_context) as running:
        running.send_signal(number)
        _, reported = running.communicate(timeout=180)
    assert running.returncode == 130, reported
    assert [path.name for path in (tmp_path / 'out').iterdir()] == [MARKER]


def test_a_suite_that_hears_nothing_does_not_keep_the_process(tmp_path, ros_domain, ros_context):
    with started('deaf', tmp_path, ros_domain, ros_context) as running:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=180)
    assert running.returncode != 0
    assert not (tmp_path / 'out' / evaluation.REPORT).exists()


def test_after_a_kill_the_next_evaluation_is_whole(tmp_path, ros_domain, ros_context):
    with started('patient', tmp_path, ros_domain, ros_context) as running:
        running.kill()
    assert not (tmp_path / 'out' / evaluation.REPORT).exists()
    folders = (tmp_path / name for name in ('map', 'ground_truth', 'out'))
    inputs = evaluation.EvaluationInputs(evaluation.identify_unnamed_run(), *folders, device='cpu')
    evaluation.evaluate_map(inputs, [SuiteConfig(name='exact_questions')])
    left = {path.name for path in (tmp_path / 'out').rglob('*')}
    assert left == {
        MARKER, evaluation.REPORT, 'vqa', 'questions.jsonl', 'answers.jsonl', 'verdicts.jsonl',
        'answering.json', 'judging.json',
    }  # fmt: skip
