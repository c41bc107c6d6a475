"""The dispatcher, with a back end that only notes its tasks."""

from collections import Counter

import pytest
from support.world.runs import small_config

from osmabench_ros.base.files import claim_folder
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import plan_runs
from osmabench_ros.runs.report_model import RunReport, Status

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.bringup.runner import dispatch

UNPACED = {'name': 'unpaced', 'command': ['true'], 'acks': False}
ORACLE = {'name': 'oracle'}


def plan_scenes(root, mappers, scenes=2, **changes):
    claim_folder(root)
    rooms = [{'reference': 'apartment', 'seed': 3 + number} for number in range(scenes)]
    config = parse_config(small_config(scenes=rooms, mappers=mappers, **changes), 'test')
    keys = {item: SceneKey('apartment', f'seed_{item.seed}', item.seed) for item in config.scenes}
    return plan_runs(config, keys, root)


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
