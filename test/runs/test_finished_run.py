"""A finished run stays so as long as no input of its metrics has changed."""

import os
import re
import shutil

import pytest
from support.world.maps import ground_truth, labelled_map
from support.world.runs import matrix_config

from osmabench_ros.base.files import claim_folder, write_json, write_text
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import RunError
from osmabench_ros.maps.storage import write_map
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluate.evaluation import EvaluationInputs, evaluate_run
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import plan_runs
from osmabench_ros.runs.report_model import RunReport, without_classes
from osmabench_ros.runs.run_manifest import FIGURES, finish_run, has_figures, read_finished
from osmabench_ros.sequences.ground_truth import write_ground_truth

RUN = 'd.s.baseline.oracle.opengl.3'


def append(path):
    with path.open('ab') as file:
        file.write(b' ')


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


CHANGES = {
    'report': (f'{RUN}/report.json', append, 'report.json'),
    'no report': (f'{RUN}/report.json', remove, 'report.json'),
    'growth': (f'{RUN}/growth.json', append, 'growth.json'),
    'map': (f'{RUN}/map/cloud.ply', append, f'{RUN}/map'),
    'part of a map': (f'{RUN}/map/cloud.ply', remove, f'{RUN}/map'),
    'no map': (f'{RUN}/map', remove, f'{RUN}/map'),
    'truth': ('shared/d.s.3/ground_truth/surface_points.npy', append, 'd.s.3/ground_truth'),
    'questions': ('shared/d.s.3/questions.jsonl', append, 'd.s.3/questions.jsonl'),
}


@pytest.fixture
def done(tmp_path):
    """A run as the runner leaves it."""
    config = matrix_config(scenes=[{'reference': 'apartment', 'seed': 3}])
    [plan] = plan_runs(config, {config.scenes[0]: SceneKey('d', 's', 3)}, tmp_path / 'small')
    claim_folder(plan.root)
    shared = plan.shared_directory
    write_ground_truth(ground_truth(), shared / 'ground_truth')
    write_text(shared / 'questions.jsonl', '')
    write_json(plan.directory / 'manifest.json', {'run_id': RUN})
    write_map(labelled_map(), plan.map_directory)
    evaluate_run(
        EvaluationInputs(
            plan.identity,
            plan.map_directory,
            shared / 'ground_truth',
            plan.directory,
            shared / 'questions.jsonl',
        ),
        [SuiteConfig(name='osma_segmentation')],
    )
    write_text(plan.directory / 'growth.json', '{}')
    finish_run(plan)
    return plan


def test_what_is_as_it_was_counts(done):
    before = {path: path.read_bytes() for path in done.root.rglob('*') if path.is_file()}
    assert read_finished(done).run_id == RUN
    finish_run(done)
    assert {path: path.read_bytes() for path in done.root.rglob('*') if path.is_file()} == before


@pytest.mark.parametrize('change', CHANGES)
def test_what_has_changed_is_named_and_counts_no_more(change, done):
    file, alter, named = CHANGES[change]
    alter(done.root / file)
    words = f'run {RUN} is done, but has changed since: .*{re.escape(named)}; restore .* --fresh'
    with pytest.raises(RunError, match=words):
        read_finished(done)


def test_a_report_of_something_else_is_told(done):
    write_json(done.directory / 'manifest.json', {})
    write_json(done.report_file, {'run_id': RUN})
    with pytest.raises(
        RunError, match=r'report.json is malformed: .*: Field required; restore it'
    ):
        read_finished(done)


def test_the_figures_of_no_single_class_lie_beside_the_report(done):
    whole = read_model(RunReport, done.report_file)
    assert has_figures(done.directory)
    noted = read_model(RunReport, done.directory / FIGURES)
    assert noted == without_classes(whole)
    of_classes = [item for item in whole.metrics if item.class_name]
    assert of_classes
    assert len(noted.metrics) == len(whole.metrics) - len(of_classes) > 0


def test_figures_of_an_earlier_report_count_no_more(done):
    noted = (done.directory / FIGURES).stat().st_mtime_ns
    os.utime(done.report_file, ns=(noted + 1, noted + 1))
    assert not has_figures(done.directory)
    finish_run(done)
    assert has_figures(done.directory)
