"""A condition at a multiple of its speed, as full_run.launch.py takes it."""

from pathlib import Path

import pytest

from osmabench_ros.base.progress import silent
from osmabench_ros.bringup.launching.single_run import condition_at, plan_single_run
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.mappers.mapper import mapper_names
from osmabench_ros.simulation.conditions import list_conditions, load_condition


@pytest.mark.parametrize('name', list_conditions())
def test_a_velocity_changes_the_speed_and_nothing_else(name: str, tmp_path: Path) -> None:
    before, after = load_condition(name), load_condition(condition_at(name, 1.5, tmp_path))
    assert after.name == f'{name}_x1_5'
    assert after.motion.speed_factor == pytest.approx(1.5 * before.motion.speed_factor)
    assert after.motion_at(5.0).linear_m_s == pytest.approx(1.5 * before.motion_at(5.0).linear_m_s)
    unchanged = {'name', 'description', 'motion'}
    assert after.model_dump(exclude=unchanged) == before.model_dump(exclude=unchanged)


def test_the_speed_of_the_condition_itself_needs_no_file(tmp_path: Path) -> None:
    assert condition_at('camera', 1.0, tmp_path) == 'camera'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('velocity', [0.0, -1.0, float('nan'), float('inf')])
def test_what_is_no_velocity_is_refused(velocity: float, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='it must be above 0'):
        condition_at('camera', velocity, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_mapper_that_does_not_exist_is_refused_with_all_there_are(tmp_path: Path) -> None:
    values = {'condition': 'baseline', 'velocity': 1.0, 'mapper': 'orcale', 'variables': {}}
    values |= {'scene': 'apartment', 'scene_name': '', 'seed': 5}
    with pytest.raises(ConfigError, match=r'mapper:=orcale .* mean "oracle"\?') as caught:
        plan_single_run(values, tmp_path, silent)
    for name in (*mapper_names(), *live_method_names()):
        assert name in str(caught.value)
