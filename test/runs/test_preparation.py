"""The shared folder of a run, by strategy of the trajectory, for a small room."""

import dataclasses
import warnings

import numpy as np
import pytest
from support.libraries import needs
from support.world.runs import matrix_config
from support.world.scenes import divided_room

from osmabench_ros.base.files import read_json, sha256_of
from osmabench_ros.base.progress import silent
from osmabench_ros.errors import ConfigError, OsmabenchWarning, SimulationError
from osmabench_ros.geometry.stamped_trajectory import read_tum
from osmabench_ros.runs.evaluation import TRUE_TRAJECTORY
from osmabench_ros.runs.plan import PATH_FILE
from osmabench_ros.runs.preparation import COVERAGE_FILE, Preparation, run_warnings
from osmabench_ros.sequences.ground_truth import read_ground_truth
from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.strategies import Strategy

pytestmark = [pytest.mark.gl, needs('open3d')]

POINTS = [[-2.0, -1.0], [-2.0, 1.0], [2.0, 1.5]]


def configuration(conditions=('baseline',), **trajectory):
    return matrix_config(
        conditions=conditions,
        camera={'width': 64, 'height': 48, 'mounting_height_m': 1.2},
        trajectory={'goals': 2, 'frame_rate_hz': 1.0, 'max_frames': 40, **trajectory},
    )


def prepare(config, root, load=divided_room):
    """Return what prepared the scene of a configuration, its plans, and the shared folder."""
    rooms = Preparation(load)
    plans = rooms.plans(config, root)
    return rooms, plans, rooms.prepare(plans[0], silent)


def prepared(root, **trajectory):
    return prepare(configuration(**trajectory), root)[-1]


def share(folder):
    return float(read_json(folder / COVERAGE_FILE)['share'])


def turns(folder):
    """Return how often the robot turns once around itself."""
    steps = np.abs(np.diff(RobotPath.read(folder / PATH_FILE).states[:, 2]))
    return int(np.isclose(steps, 2 * np.pi).sum())


def test_the_strategy_decides_the_path_and_coverage_is_recorded(tmp_path):
    folders = {item: prepared(tmp_path / item, strategy=item) for item in Strategy}
    assert [turns(folders[item]) for item in Strategy] == [0, 2, 2]
    recorded = read_json(folders[Strategy.COVERAGE] / COVERAGE_FILE)
    assert recorded['strategy'] == 'coverage'
    assert recorded['share'] == pytest.approx(recorded['seen_m2'] / recorded['visible_m2'])
    assert recorded['visible_m2'] < recorded['scene_m2']
    assert share(folders[Strategy.COVERAGE]) > share(folders[Strategy.FOLLOW]) > 0.0


@pytest.mark.parametrize(
    ('name', 'frames', 'acts'),
    [
        ('dynamic', 3, False),
        ('dynamic', 40, True),
        ('dimming', 3, False),
        ('rearranged', 3, False),
        ('compat_dynamic', 3, False),
        ('flicker', 3, True),
        ('baseline', 3, True),
    ],
)
def test_a_condition_that_changes_nothing_on_the_path_is_warned_of(tmp_path, name, frames, acts):
    config = configuration((name,), goal_points=POINTS, max_frames=frames)
    rooms, [plan], _ = prepare(config, tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        reported = run_warnings(plan, rooms)
    ours = [item for item in caught if issubclass(item.category, OsmabenchWarning)]
    assert [str(item.message) for item in ours] == list(reported)
    assert bool(reported) != acts
    assert acts or f'condition "{name}" changes nothing on scene' in reported[0]


def test_a_rule_that_selects_no_light_is_warned_of(tmp_path):
    def without_lamps(item):
        scene = divided_room(item)
        fill = tuple(dataclasses.replace(light, lamp=False) for light in scene.lights)
        return dataclasses.replace(scene, lights=fill)

    config = configuration(('dynamic',), goal_points=POINTS)
    rooms, [plan], _ = prepare(config, tmp_path, without_lamps)
    with pytest.warns(OsmabenchWarning, match='scene_lights.0 selects no light of scene test/'):
        run_warnings(plan, rooms)


def test_lamps_that_a_rule_has_chosen_are_told_where_they_matter(tmp_path):
    def ruled(item):
        return dataclasses.replace(divided_room(item), lamp_rule='bright ones are')

    config = configuration(('dynamic', 'baseline'), goal_points=POINTS)
    rooms, plans, _ = prepare(config, tmp_path, ruled)
    for plan, told in zip(plans, (True, False), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            reported = run_warnings(plan, rooms)
        assert bool(reported) is told
        assert not told or '"ceiling" of 1 lights (it does not say' in reported[0]


def test_given_goals_are_visited_and_looked_around_from(tmp_path):
    folder = prepared(tmp_path, strategy='look_around', goal_points=POINTS)
    states = RobotPath.read(folder / PATH_FILE).states
    for point in POINTS:
        assert np.linalg.norm(states[:, :2] - point, axis=1).min() < 0.1
    assert turns(folder) == 2


def test_the_shared_folder_is_the_same_every_time(tmp_path):
    one, two = (prepared(tmp_path / name, strategy='coverage') for name in ('one', 'two'))
    assert sha256_of(one) == sha256_of(two)


@pytest.mark.parametrize(
    ('trajectory', 'named'),
    [
        ({'strategy': 'wander'}, 'trajectory.strategy'),
        ({'strategy': 'coverage', 'goal_points': POINTS}, 'leave out goal_points'),
    ],
)
def test_a_strategy_at_fault_is_named(trajectory, named):
    with pytest.raises(ConfigError, match=named):
        configuration(**trajectory)


def test_colours_without_light_need_a_simulator_that_shows_them():
    config = configuration()
    asking = config.mappers[0].model_copy(update={'options': {'albedo': True}})
    config = config.model_copy(update={'mappers': (asking,)})
    Preparation(divided_room).check_mappers(config)
    elsewhere = config.simulator.model_copy(update={'name': 'habitat'})
    with pytest.raises(ConfigError, match='albedo, but habitat shows no colours without light'):
        Preparation(divided_room).check_mappers(config.model_copy(update={'simulator': elsewhere}))


def test_a_scene_that_would_be_dark_is_told_before_anything_runs(tmp_path):
    def dark(item):
        return dataclasses.replace(divided_room(item), lights=())

    with pytest.raises(SimulationError, match='has no lights and condition "baseline" adds none'):
        Preparation(dark).plans(configuration(), tmp_path)
    assert len(Preparation(dark).plans(configuration(('camera', 'nominal')), tmp_path)) == 2


def test_what_stands_for_the_run_in_options_is_filled_in_before_they_are_checked():
    options = {
        'method': 'bbq', 'work': '${run}/method', 'scene': '${scene}', 'condition': '${condition}',
        'variables': {'python': 'python', 'root': '.', 'weights': '${seed}'},
    }  # fmt: skip
    config = configuration()
    mine = config.mappers[0].model_copy(update={'implementation': 'offline', 'options': options})
    Preparation(divided_room).check_mappers(config.model_copy(update={'mappers': (mine,)}))
    wrong = mine.model_copy(update={'options': {**options, 'scene': '${scenes}'}})
    with pytest.raises(ConfigError, match=r'mapper oracle\.scene: \$\{scenes\} is unknown'):
        Preparation(divided_room).check_mappers(config.model_copy(update={'mappers': (wrong,)}))


def test_the_true_poses_of_a_run_follow_its_speed(tmp_path):
    rooms, (slow, quick), _ = prepare(configuration(('baseline', 'velocity')), tmp_path)
    for plan in (slow, quick):
        plan.directory.mkdir(parents=True)
        rooms.write_true_trajectory(plan)
    found = [read_tum(plan.directory / TRUE_TRAJECTORY) for plan in (slow, quick)]
    truth = read_ground_truth(slow.ground_truth_directory).camera_poses
    np.testing.assert_allclose(found[0].positions, [pose.translation for pose in truth], atol=1e-6)
    assert found[0].stamps_ns[:2].tolist() == [FIRST_STAMP_NS, FIRST_STAMP_NS + 10**9]
    long_s, short_s = (np.ptp(item.stamps_ns) / 1e9 for item in found)
    assert abs(long_s - 2 * short_s) <= 2.0
