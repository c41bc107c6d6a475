from pathlib import Path

import pytest
from support.world.runs import matrix_config

from osmabench_ros.base.files import write_json
from osmabench_ros.errors import RunError
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.matrix_on_disk import open_run
from osmabench_ros.runs.plan import RunPlan, plan_runs


def plans(root: Path, **changes) -> list[RunPlan]:
    several = {
        'scenes': [{'reference': 'apartment', 'seed': 3}, {'reference': 'other', 'seed': 4}],
        'conditions': ['baseline', 'velocity'],
        'mappers': [{'name': 'oracle'}, {'name': 'mine', 'command': ['x'], 'acks': False}],
    }
    config = matrix_config(**{**several, **changes})
    write_json(root / 'manifest.json', {'config': config.model_dump(mode='json')})
    keys = {item: SceneKey('d 1', 's.2', item.seed) for item in config.scenes}
    found = plan_runs(config, keys, root)
    for plan in found:
        (plan.directory / 'map').mkdir(parents=True)
    return found


def test_every_run_is_known_by_its_folder(tmp_path: Path) -> None:
    for plan in plans(tmp_path):
        found = open_run(plan.directory)
        assert found.directory == plan.directory
        assert found.shared_directory == plan.shared_directory
        assert (found.mapper, found.scene, found.config) == (plan.mapper, plan.scene, plan.config)
        assert found.identity.condition == plan.identity.condition
        assert found.identity.speed_factor == plan.identity.speed_factor


def test_a_run_keeps_the_condition_that_it_was_made_under(tmp_path: Path) -> None:
    file = tmp_path / 'dusk.yaml'
    file.write_text('lighting: {exposure: 0.5}')
    plan = plans(tmp_path, conditions=[str(file)])[0]
    reported = {'config': {'condition': plan.condition.model_dump(mode='json')}}
    write_json(plan.directory / 'manifest.json', reported)
    file.unlink()
    assert open_run(plan.directory).condition == plan.condition


def test_a_speed_is_read_from_the_name(tmp_path: Path) -> None:
    found = plans(tmp_path, pacing={'mode': 'realtime', 'speed_factor': 0.5})
    assert open_run(found[0].directory).identity.speed_factor == 0.5


def test_the_folder_of_a_matrix_is_no_run_but_names_them(tmp_path: Path) -> None:
    found = plans(tmp_path)
    with pytest.raises(RunError, match=found[0].identity.run_id):
        open_run(tmp_path)
    with pytest.raises(RunError, match='absent does not exist'):
        open_run(tmp_path / 'absent')


@pytest.mark.parametrize('old', ['velocity', 'oracle', '.3'])
def test_a_renamed_folder_is_refused(tmp_path: Path, old: str) -> None:
    plan = next(item for item in plans(tmp_path) if old in item.directory.name)
    renamed = plan.directory.with_name(
        plan.directory.name.replace(old, '.77' if '.' in old else 'x')
    )
    with pytest.raises(RunError, match='knows no'):
        open_run(renamed)


def test_a_run_without_its_manifest_says_so(tmp_path: Path) -> None:
    plan = plans(tmp_path)[0]
    (tmp_path / 'manifest.json').unlink()
    with pytest.raises(RunError, match=r'manifest\.json'):
        open_run(plan.directory)
