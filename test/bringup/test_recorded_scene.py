"""A recorded sequence as a scene of a matrix: played, mapped and scored like the simulated one."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from support.libraries import needs
from support.sizes import few
from support.world.runs import small_config

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.stamped_trajectory import read_tum
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.evaluation import TRUE_TRAJECTORY
from osmabench_ros.runs.generation import generate_sequences
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.simulation.conditions import Condition

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, needs('open3d')]

SUITES = [{'name': 'map_geometry'}, {'name': 'osma_segmentation'}, {'name': 'exact_questions'}]
SIMULATED = small_config(camera={'width': 160, 'height': 120}, suites=SUITES)


def quiet(_text, _fraction):
    pass


@pytest.fixture(scope='module')
def scene(prepared, tmp_path_factory):
    out = tmp_path_factory.mktemp('recording')
    config = parse_config(SIMULATED, 'test')
    [sequence] = generate_sequences(config, ['osma'], out)
    [truth] = prepared.put_into(out / 'truth', SIMULATED).glob('shared/*/ground_truth')
    return {'sequence': str(sequence), 'ground_truth': str(truth), 'seed': 3}


def recorded(scene, **changes):
    return parse_config({**SIMULATED, 'scenes': [scene], **changes}, 'test')


@pytest.mark.full
def test_a_mapper_scores_on_the_recording_as_on_the_simulation(scene, prepared, nodes, tmp_path):
    from osmabench_ros.bringup.runner.matrix_runner import run_matrix

    prepared.put_into(tmp_path / 'live', SIMULATED)
    configs = {'live': parse_config(SIMULATED, 'test'), 'played': recorded(scene)}
    live, played = (
        run_matrix(config, tmp_path / name, nodes=nodes, progress=quiet)
        for name, config in configs.items()
    )
    assert played.passed, played
    [run_id] = [run.run_id for run in played.runs]
    assert run_id == 'apartment.seed_3.baseline.oracle.recorded.3'
    figures = [
        {
            (item.suite, item.mode, item.metric, item.class_name): item.value
            for item in report.runs[0].metrics
            if item.suite in ('map_geometry', 'osma_segmentation') and item.class_name == ''
        }
        for report in (live, played)
    ]
    assert figures[0].keys() == figures[1].keys()
    assert len(figures[0]) > 10
    # They differ only by JPEG and depth of 16 bits.
    for key, value in figures[0].items():
        if value is not None and 0 < value <= 1:
            assert figures[1][key] == pytest.approx(value, abs=0.05), key
    page = (tmp_path / 'played' / 'small' / 'report.html').read_text()
    assert 'cannot read path' not in page


@pytest.mark.parametrize('drifts', few([False, True], True))
def test_the_true_poses_are_those_of_the_sequence_unless_they_drift(scene, tmp_path, drifts):
    preparation = Preparation()
    [plan] = preparation.plans(recorded(scene), tmp_path)
    if drifts:
        drift = Condition.model_validate({'name': 'x', 'effects': [{'kind': 'pose_drift'}]})
        plan = dataclasses.replace(plan, condition=drift)
    plan.directory.mkdir(parents=True)
    preparation.write_true_trajectory(plan)
    file = plan.directory / TRUE_TRAJECTORY
    assert file.exists() is not drifts
    if not drifts:
        lines = np.loadtxt(Path(scene['sequence']) / 'traj.txt').reshape(-1, 4, 4)
        x, y, z = lines[:, :3, 3].T  # Habitat's axes: y is up
        poses = read_tum(file)
        np.testing.assert_allclose(poses.positions, np.stack([x, -z, y], axis=1), atol=1e-6)
        stamps = (Path(scene['sequence']) / 'timestamps.txt').read_text().split()
        assert [str(item) for item in poses.stamps_ns] == stamps


@pytest.mark.parametrize(
    ('changes', 'reported'),
    [
        ({'conditions': ['velocity']}, 'was recorded under one condition, "baseline"'),
        ({'conditions': ['baseline', 'velocity']}, 'write conditions: [baseline]'),
    ],
)
def test_a_sequence_has_one_condition(scene, changes, reported):
    with pytest.raises(ConfigError) as caught:
        Preparation().check_names(recorded(scene, **changes))
    assert reported in str(caught.value)


def test_a_recorded_scene_needs_its_ground_truth_and_nothing_simulated(scene):
    with pytest.raises(ConfigError, match='both sequence and ground_truth'):
        recorded({'sequence': scene['sequence']})
    with pytest.raises(ConfigError, match='leave out reference'):
        recorded({**scene, 'reference': 'apartment'})


def test_what_is_recorded_is_not_rendered_again(scene, tmp_path):
    with pytest.raises(ConfigError, match='recorded already'):
        generate_sequences(recorded(scene), ['osma'], tmp_path)
    assert not list(tmp_path.iterdir())
