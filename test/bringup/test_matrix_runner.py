"""The data of finished runs that the runner keeps for the report of all."""

import gc
import weakref

import pytest
from support.world.runs import small_config

from osmabench_ros.base.files import claim_folder, write_json
from osmabench_ros.base.progress import silent
from osmabench_ros.errors import RunError
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import plan_runs
from osmabench_ros.runs.report_model import RunReport, Status, join_run

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.bringup.runner import matrix_runner


def planned(root, scenes):
    claim_folder(root)
    given = [{'reference': 'apartment', 'seed': seed} for seed in range(scenes)]
    config = parse_config(small_config(scenes=given), 'test')
    keys = {item: SceneKey('apartment', f'seed_{item.seed}', item.seed) for item in config.scenes}
    return plan_runs(config, keys, root)


class Runs:
    """Makes runs that are nothing but a report, and counts the reports in memory."""

    def __init__(self):
        self.made = []

    def __call__(self, plan, *_arguments):
        found = MetricRecord('map_geometry', '', 'f1', value=0.25, higher_is_better=True)
        broken = plan.scene.seed == 1
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
    runs, plans = Runs(), planned(tmp_path / 'small', 4)
    read = []
    figures = []

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
    with pytest.raises(RunError, match=r'the disk is full\. Before that: .*seed_1.*: it broke'):
        matrix_runner._write_report(plans[0].config, plans, ended, ())
    assert figures == [[0.25], [], [0.25], [0.25]]
