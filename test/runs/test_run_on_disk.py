import pytest
from support.world.runs import matrix_config

from osmabench_ros.base.files import write_json
from osmabench_ros.errors import RunError
from osmabench_ros.runs.config import PacingConfig
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.matrix_on_disk import open_run, write_manifest
from osmabench_ros.runs.plan import plan_runs


def plans(root, *, sweep=False, **changes):
    several = {
        'scenes': [{'reference': 'apartment', 'seed': 3}, {'reference': 'other', 'seed': 3}],
        'conditions': ['baseline', 'velocity'],
        'mappers': [{'name': 'oracle'}, {'name': 'mine', 'command': ['x'], 'acks': False}],
    }
    config = matrix_config(**{**several, **changes})
    keys = {
        item: SceneKey(item.reference, 's.2', item.seed, item.path_seed)
        for item in config.seeded_scenes
    }
    found = plan_runs(config, keys, root)
    write_manifest(root, config, found, sweep=sweep)
    for plan in found:
        (plan.directory / 'map').mkdir(parents=True)
    return found


@pytest.mark.parametrize('seeds', [{}, {'path': [4, 5], 'method': [6, 7]}])
def test_every_run_is_known_by_its_folder(tmp_path, seeds):
    """Also of two scenes with one seed."""
    for plan in plans(tmp_path, seeds=seeds):
        assert open_run(plan.directory) == plan


def test_a_run_keeps_the_condition_that_it_was_made_under(tmp_path):
    file = tmp_path / 'dusk.yaml'
    file.write_text('lighting: {exposure: 0.5}')
    plan = plans(tmp_path, conditions=[str(file)])[0]
    file.unlink()
    assert open_run(plan.directory).condition == plan.condition


def test_a_run_of_a_sweep_has_its_own_speed(tmp_path):
    at_one = plans(tmp_path, pacing={'mode': 'realtime'}, sweep=True)[0]
    pacing = PacingConfig(mode='realtime', speed_factor=0.5)
    config = at_one.config.model_copy(update={'pacing': pacing})
    slow = at_one.directory.with_name(at_one.directory.name.replace('.x1', '.x0-5'))
    write_json(slow / 'manifest.json', {'config': {'pacing': pacing.model_dump(mode='json')}})
    found = open_run(slow)
    assert found.identity.speed_factor == 0.5
    assert found.config == config


def test_the_folder_of_a_matrix_is_not_a_run_but_names_them(tmp_path):
    found = plans(tmp_path)
    with pytest.raises(RunError, match=found[0].identity.run_id):
        open_run(tmp_path)
    with pytest.raises(RunError, match='absent does not exist'):
        open_run(tmp_path / 'absent')


@pytest.mark.parametrize('old', ['velocity', 'oracle', '.3'])
def test_a_renamed_folder_is_refused(tmp_path, old):
    plan = next(item for item in plans(tmp_path) if old in item.directory.name)
    new = plan.directory.name.replace(old, '.77' if '.' in old else 'x')
    with pytest.raises(RunError, match=f'has no run "{new}"'):
        open_run(plan.directory.rename(plan.directory.with_name(new)))


def test_a_run_without_the_manifest_of_its_matrix_says_so(tmp_path):
    plan = plans(tmp_path)[0]
    (tmp_path / 'manifest.json').unlink()
    with pytest.raises(RunError, match=r'manifest\.json'):
        open_run(plan.directory)
