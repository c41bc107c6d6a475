"""The report of a measurement on a running stack, from the files of its nodes."""

from dataclasses import replace

import pytest
from support.world.maps import labelled_map
from support.world.runs import matrix_config, small_config
from support.world.scenes import truth_of_room

from osmabench_ros.base.files import claim_folder, write_json
from osmabench_ros.bringup.runner.on_robot import OnRobot, conclude, nodes_on_robot
from osmabench_ros.errors import RunError
from osmabench_ros.maps.storage import write_map
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.report_model import RunReport, Status, join_run
from osmabench_ros.sequences.ground_truth import write_ground_truth

pytestmark = pytest.mark.ros


@pytest.fixture
def settings(tmp_path):
    claim_folder(tmp_path)
    write_map(labelled_map(), tmp_path / 'map')
    return OnRobot(tmp_path, matrix_config(**small_config()), tmp_path / 'truth')


def write_report(folder, *unmet):
    identity = RunIdentity(SceneKey('d', 'kitchen', 0), 'day', 'slam', 'unknown')
    record = MetricRecord('map_geometry', '', 'coverage', value=0.4321, n=7)
    report = RunReport(
        run_id=identity.run_id,
        status=Status.COMPLETE,
        metrics=join_run(identity, [record]),
        failed_requirements=unmet,
    )
    write_json(folder / 'report.json', report.model_dump(mode='json'))


def test_it_ends_with_figures_page_verdict_and_path(settings, capsys):
    write_report(settings.out)
    page = settings.out / 'report.html'
    assert conclude(settings, 0) == f'complete; {page}'
    assert '0.4321' in capsys.readouterr().out
    text = page.read_text()
    for words in ('0.4321', str(settings.ground_truth), 'points in'):
        assert words in text


def test_a_requirement_that_does_not_hold_is_the_verdict(settings, capsys):
    write_report(settings.out, 'map_geometry coverage >= 0.5: 0.4321')
    with pytest.raises(RunError, match=r'failed: map_geometry coverage >= 0\.5.*report\.html'):
        conclude(settings, 4)
    assert '0.4321' in capsys.readouterr().out
    assert 'requirements do not hold' in (settings.out / 'report.html').read_text()


def test_without_ground_truth_it_says_what_was_recorded(settings):
    text = conclude(replace(settings, ground_truth=None), 0)
    assert text.startswith('recorded, not scored: ')
    assert text.endswith(f'; {settings.out / "map"}')
    with pytest.raises(RunError, match='exit code 3'):
        conclude(replace(settings, ground_truth=None), 3)


def test_the_evaluator_of_a_robot_gets_the_text_features(tmp_path):
    config = matrix_config(**small_config(text_features={'clip': str(tmp_path / 'clip.npy')}))
    ground_truth = tmp_path / 'truth'
    write_ground_truth(truth_of_room(), ground_truth)
    specs = nodes_on_robot(OnRobot(tmp_path / 'out', config, ground_truth))
    [evaluator] = [spec for spec in specs if spec.name == 'evaluator']
    assert evaluator.settings.text_features == {'clip': tmp_path / 'clip.npy'}
