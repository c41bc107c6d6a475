"""Runs of a matrix, one by one and at once."""

import gc
import weakref
from collections import Counter

import pytest
from support.world.runs import matrix_config, plans_of, small_config

from osmabench_ros.base.files import claim_folder, write_json
from osmabench_ros.base.progress import silent
from osmabench_ros.errors import OsmabenchWarning, RunError
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.matrix_on_disk import write_manifest
from osmabench_ros.runs.report_model import RunReport, Status, join_run

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.bringup.runner import dispatch, matrix_runner


class Runs:
    """Makes runs that are nothing but a report, and counts the reports in memory."""

    def __init__(self):
        self.made = []

    def __call__(self, plan, *_arguments):
        found = MetricRecord('map_geometry', '', 'f1', value=0.25, higher_is_better=True)
        broken = plan.scene.seed == 4
        report = RunReport(
            run_id=plan.identity.run_id,
            status=Status.FAILED if broken else Status.COMPLETE,
            error='it broke' if broken else '',
            metrics=() if broken else join_run(plan.identity, [found]),
        )
        if not broken:
            claim_folder(plan.directory)
            write_json(plan.report_file, report.model_dump(mode='json'))
        self.made.append(weakref.ref(report))
        return report

    @property
    def alive(self):
        gc.collect()
        return sum(item() is not None for item in self.made)


def test_no_report_stays_in_memory_until_that_of_all_is_written(tmp_path, monkeypatch):
    runs, plans = Runs(), plan_scenes(tmp_path / 'small', [ORACLE], scenes=4)
    write_manifest(tmp_path / 'small', plans[0].config, plans)
    read, figures = [], []

    def write(_config, _plans, reports, *_rest):
        assert runs.alive == 0
        for report in reports:
            figures.append([record.value for record in report.metrics])
            if report.metrics:
                read.append(weakref.ref(report))
            del report
            assert sum(item() is not None for item in read) <= 1
        raise RunError('the disk is full')

    monkeypatch.setattr(matrix_runner, 'run_one', runs)
    monkeypatch.setattr(matrix_runner.matrix, 'write_matrix_report', write)
    ended = matrix_runner._run_one_by_one(plans, None, None, silent)
    with pytest.raises(RunError, match=r'the disk is full\. Before that: .*seed_4.*: it broke'):
        matrix_runner._write_report(plans[0].config, plans, ended, ())
    assert figures == [[0.25], [], [0.25], [0.25]]


UNPACED = {'name': 'unpaced', 'command': ['true'], 'acks': False}
ORACLE = {'name': 'oracle'}


def plan_scenes(root, mappers, scenes=2, **changes):
    claim_folder(root)
    rooms = [{'reference': 'apartment', 'seed': 3 + number} for number in range(scenes)]
    config = matrix_config(**small_config(scenes=rooms, mappers=mappers, **changes))
    return plans_of(config, root, 'apartment', 'seed_{seed}')


def name_of(task):
    return f'{"prepare" if task.prepares else task.plan.mapper.name} {task.plan.scene.seed}'


class Notes:
    """A back end with tasks of two polls; some fail, by name, for good or for some tries."""

    def __init__(self, slots, tries=1, **failures):
        self.slots, self.tries = slots, tries
        self.failures = {name.replace('_', ' '): result for name, result in failures.items()}
        self.began = []
        self._working = []
        self._seen = set()

    @property
    def full(self):
        return len(self._working) >= self.slots

    def begin(self, task):
        self._working.append(task)
        self.began.append(name_of(task))
        return True

    def poll(self):
        """Yield news of tasks that are new, and the results of the others."""
        for task in list(self._working):
            if task not in self._seen:
                self._seen.add(task)
                yield task, dispatch.Notice(f'mind {name_of(task)}')
                yield task, dispatch.News('at frame 3', 0.5)
                continue
            self._working.remove(task)
            report = RunReport(run_id=task.plan.identity.run_id, status=Status.COMPLETE)
            done = dispatch.Result() if task.prepares else dispatch.Result(report)
            yield task, self.failures.get(name_of(task), done)


def is_ours(warning):
    """Tell our warnings from those that Python gives whenever it collects garbage."""
    return issubclass(warning.category, OsmabenchWarning)


def run(plans, back_end):
    """Return the reports, the warnings, and the texts that were shown."""
    shown = []

    def progress(text, fraction):
        assert 0 <= fraction <= 1
        shown.append(text)

    with pytest.warns(OsmabenchWarning) as warned:
        reports = dispatch.Dispatcher(plans, back_end, progress).run()
    return reports, [str(item.message) for item in warned if is_ours(item)], shown


def test_reports_come_in_the_order_of_the_plans_and_each_scene_is_prepared_once(tmp_path):
    plans = plan_scenes(tmp_path, [UNPACED, ORACLE, {'name': 'appearance'}])
    back_end = Notes(3)
    reports, warned, shown = run(plans, back_end)
    assert [item.run_id for item in reports] == [plan.identity.run_id for plan in plans]
    runs = [f'{plan.mapper.name} {plan.scene.seed}' for plan in plans]
    assert Counter(back_end.began) == Counter(['prepare 3', 'prepare 4', *runs])
    for plan in plans:
        names = (f'{name} {plan.scene.seed}' for name in ('prepare', plan.mapper.name))
        prepared, began = map(back_end.began.index, names)
        assert prepared < began
    assert {f'mind {name}' for name in back_end.began} == set(warned)
    assert any('[scene] apartment.seed_4.4: at frame 3' in text for text in shown)
    assert any(f'[2/6] {plans[1].identity.run_id}: at frame 3' in text for text in shown)


@pytest.mark.parametrize(
    ('tries', 'again', 'error'),
    [(1, True, 'killed'), (3, False, 'killed'), (3, True, 'given up after 3 tries; the last: ')],
)
def test_a_task_is_tried_again_elsewhere_only_if_the_place_was_the_cause(
    tmp_path, tries, again, error
):
    plans = plan_scenes(tmp_path, [ORACLE, {'name': 'appearance'}])
    back_end = Notes(2, tries, oracle_3=dispatch.Result(error='killed', again=again))
    reports, warned, _ = run(plans, back_end)
    assert [bool(item.error) for item in reports] == [True, False, False, False]
    assert reports[0].error.startswith(error)
    assert back_end.began.count('oracle 3') == (tries if again else 1)
    label = f'[1/4] {plans[0].identity.run_id} is tried again'
    told = [text for text in warned if 'tried again' in text]
    assert told == [f'{label}, {n} of {tries}: killed' for n in range(2, tries + 1) if again]


def test_a_scene_that_cannot_be_prepared_fails_its_runs_and_no_other(tmp_path):
    plans = plan_scenes(tmp_path, [ORACLE, {'name': 'appearance'}])
    reports, _, _ = run(plans, Notes(2, prepare_3=dispatch.Result(error='no path')))
    assert [item.status for item in reports] == [Status.FAILED] * 2 + [Status.COMPLETE] * 2
    assert [item.error for item in reports] == ['no path', 'no path', '', '']
    assert (plans[0].directory / 'failure.json').exists()


def test_of_many_runs_under_way_the_first_have_a_line(tmp_path):
    plans = plan_scenes(tmp_path, [ORACLE], scenes=dispatch.MAX_SHOWN + 3)
    _, _, shown = run(plans, Notes(len(plans)))
    assert max(text.count('\n') for text in shown) == dispatch.MAX_SHOWN
    assert any(text.endswith('more under way') for text in shown)


def order(plans, slots):
    return [name_of(task) for task in dispatch.line_up(plans, slots)]


def test_scenes_are_prepared_ahead_and_realtime_runs_come_last(tmp_path):
    plans = plan_scenes(tmp_path, [UNPACED, ORACLE], scenes=3)
    assert order(plans, 2) == [
        'prepare 3', 'prepare 4', 'oracle 3', 'prepare 5', 'oracle 4', 'oracle 5',
        'unpaced 3', 'unpaced 4', 'unpaced 5',
    ]  # fmt: skip
    assert order(plans, 9)[:3] == ['prepare 3', 'prepare 4', 'prepare 5']
    plans = plan_scenes(tmp_path, [UNPACED, ORACLE], scenes=3, pacing={'side_by_side': True})
    found = [item for item in order(plans, 1) if 'prepare' not in item]
    assert found == [f'{plan.mapper.name} {plan.scene.seed}' for plan in plans]


def test_a_scene_is_not_prepared_again_if_its_runs_are_done(tmp_path):
    plans = plan_scenes(tmp_path, [UNPACED, ORACLE], scenes=3)
    plans[0].shared_directory.mkdir(parents=True)
    for plan in plans[2:4]:
        plan.directory.mkdir(parents=True)
        plan.report_file.write_text('{}')
    assert [item for item in order(plans, 2) if 'prepare' in item] == ['prepare 5']
    plans[3].report_file.unlink()
    assert [item for item in order(plans, 2) if 'prepare' in item] == ['prepare 4', 'prepare 5']
