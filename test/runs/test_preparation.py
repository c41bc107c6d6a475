"""The shared folder of a run, by strategy of the trajectory, for a small room."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_scenes import box_object, room_scene

from osmabench_ros.base.files import read_json, sha256_of
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs import preparation
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.plan import plan_runs
from osmabench_ros.runs.run_warnings import run_warnings
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.strategies import Strategy

pytest.importorskip('open3d')
pytestmark = pytest.mark.gl

POINTS = [[-2.0, -1.0], [-2.0, 1.0], [2.0, 1.5]]


def configuration(**trajectory: Any) -> MatrixConfig:
    data = {
        'name': 'room',
        'mappers': [{'name': 'oracle'}],
        'camera': {'width': 64, 'height': 48, 'mounting_height_m': 1.2},
        'trajectory': {'goals': 2, 'frame_rate_hz': 1.0, 'max_frames': 40, **trajectory},
        'suites': [{'name': 'map_geometry'}],
    }
    return parse_config(data, 'test')


@pytest.fixture(autouse=True)
def divided_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every reference leads to a room that a wall with a gap divides."""
    wall = box_object(8, 'wall', (-0.6, -2.0, 0), (-0.5, 1.0, 2.5))
    monkeypatch.setattr(preparation, '_scene', lambda _config: room_scene(extra=(wall,)))
    # What is remembered of this room is nothing for other tests.
    for name in ('_key', '_digest'):
        monkeypatch.setattr(preparation, name, getattr(preparation, name).__wrapped__)


def prepared(root: Path, **trajectory: Any) -> Path:
    config = configuration(**trajectory)
    plan = plan_runs(config, preparation.scene_keys(config), root)[0]
    return preparation.prepare_scene(plan, lambda _text, _fraction: None)


def share(folder: Path) -> float:
    return float(read_json(folder / preparation.COVERAGE_FILE)['share'])


def turns(folder: Path) -> int:
    """Return how often the robot turns once around itself."""
    steps = np.abs(np.diff(RobotPath.read(folder / preparation.PATH_FILE).states[:, 2]))
    return int(np.isclose(steps, 2 * np.pi).sum())


def test_the_robot_follows_its_goals_unless_told_otherwise() -> None:
    assert configuration().trajectory.strategy is Strategy.FOLLOW


def test_the_strategy_decides_the_path_and_coverage_is_recorded(tmp_path: Path) -> None:
    folders = {item: prepared(tmp_path / item, strategy=item) for item in Strategy}
    assert [turns(folders[item]) for item in Strategy] == [0, 2, 2]
    recorded = read_json(folders[Strategy.COVERAGE] / preparation.COVERAGE_FILE)
    assert recorded['strategy'] == 'coverage'
    assert recorded['share'] == pytest.approx(recorded['seen_m2'] / recorded['visible_m2'])
    assert recorded['visible_m2'] < recorded['scene_m2']
    assert share(folders[Strategy.COVERAGE]) > share(folders[Strategy.FOLLOW]) > 0.0


@pytest.mark.parametrize(('frames', 'acts'), [(3, False), (40, True)])
def test_a_condition_that_does_not_act_on_the_path_is_told(
    tmp_path: Path, frames: int, acts: bool
) -> None:
    changes = {'goal_points': POINTS, 'max_frames': frames}
    config = configuration(**changes).model_copy(update={'conditions': ('dynamic',)})
    plan = plan_runs(config, preparation.scene_keys(config), tmp_path)[0]
    preparation.prepare_scene(plan, lambda _text, _fraction: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        told = run_warnings(plan)
    assert [str(item.message) for item in caught] == list(told)
    assert bool(told) != acts
    assert acts or 'condition "dynamic" on scene test/room does not act' in told[0]


def test_a_path_that_is_cut_short_covers_less(tmp_path: Path) -> None:
    whole = prepared(tmp_path / 'whole', strategy='look_around')
    cut = prepared(tmp_path / 'cut', strategy='look_around', max_frames=3)
    assert share(cut) < share(whole)


def test_given_goals_are_visited_and_looked_around_from(tmp_path: Path) -> None:
    folder = prepared(tmp_path, strategy='look_around', goal_points=POINTS)
    states = RobotPath.read(folder / preparation.PATH_FILE).states
    for point in POINTS:
        assert np.linalg.norm(states[:, :2] - point, axis=1).min() < 0.1
    assert turns(folder) == 2


def test_the_shared_folder_is_the_same_every_time(tmp_path: Path) -> None:
    one, two = (prepared(tmp_path / name, strategy='coverage') for name in ('one', 'two'))
    assert sha256_of(one) == sha256_of(two)


def test_the_share_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    config = configuration()
    plan = plan_runs(config, preparation.scene_keys(config), tmp_path)[0]
    folder = preparation.prepare_scene(plan, lambda text, _fraction: told.append(text))
    assert any(f'{share(folder):.0%}' in text for text in told)


@pytest.mark.parametrize(
    ('trajectory', 'named'),
    [
        ({'strategy': 'wander'}, 'trajectory.strategy'),
        ({'strategy': 'coverage', 'goal_points': POINTS}, 'leave out goal_points'),
    ],
)
def test_a_strategy_at_fault_is_named(trajectory: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        configuration(**trajectory)
