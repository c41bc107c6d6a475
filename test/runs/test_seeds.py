"""Seeds of scene, path and method: names, folders, effects, and shared files."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.world.runs import matrix_config, plans_of
from support.world.scenes import room_scene

from osmabench_ros.base.files import read_json, sha256_of
from osmabench_ros.base.progress import silent
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import SeedsConfig, with_scene
from osmabench_ros.runs.identity import RunIdentity, SceneKey, Seeds
from osmabench_ros.runs.plan import PATH_FILE, QUESTIONS_FILE, config_digest
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.run_manifest import describe_run

RECORDED = {'sequence': 'a', 'ground_truth': 'b'}
ALL = {'scene': [1, 2], 'path': [3, 4, 5], 'method': [6, 7]}


def config(**parts):
    seeded = {
        'conditions': ['baseline', 'camera'],
        'mappers': [{'name': 'noisy_oracle'}],
        'camera': {'width': 32, 'height': 24, 'mounting_height_m': 1.2},
        'trajectory': {'goals': 2, 'frame_rate_hz': 1.0, 'max_frames': 30},
    }
    return matrix_config(**{**seeded, **parts})


def planned(settings, root=Path('root')):
    return plans_of(settings, root, 'set', 'home_{seed}')


def test_every_seed_of_scene_path_and_method_is_a_run():
    plans = planned(config(seeds=ALL))
    assert [plan.identity.run_id for plan in plans] == [
        f'set.home_{scene}.{condition}.noisy_oracle.opengl.{scene}-p{path}-m{method}'
        for scene in (1, 2)
        for path in (3, 4, 5)
        for condition in ('baseline', 'camera')
        for method in (6, 7)
    ]
    assert [plan.method_seed for plan in plans[:2]] == [6, 7]
    assert (plans[0].scene.seed, plans[0].scene.seed_of_path) == (1, 3)


def test_runs_on_one_path_share_a_folder_whatever_the_method_does():
    plans = planned(config(seeds=ALL))
    folders = Counter(plan.shared_directory.name for plan in plans)
    assert folders == {
        f'set.home_{scene}.{scene}-p{path}': 4 for scene in (1, 2) for path in (3, 4, 5)
    }


def test_only_seeds_that_are_given_are_in_names():
    one = {'scenes': [{'seed': 5}]}
    given = {}, {'path': [1]}, {'method': [0]}, {'path': [2], 'method': [1]}
    plans = [planned(config(**one, seeds=seeds))[0] for seeds in given]
    names = [plan.identity.run_id.rsplit('.', 1)[-1] for plan in plans]
    assert names == ['5', '5-p1', '5-m0', '5-p2-m1']
    plain = config(**one)
    assert plain.seeded_scenes == plain.scenes
    assert config_digest(plain) == config_digest(config(**one, seeds={}))
    assert config_digest(plain) != config_digest(config(**one, seeds={'method': [0]}))
    assert planned(plain)[0].method_seed == 5


@pytest.mark.parametrize('seeds', [Seeds(5), Seeds(5, 1), Seeds(5, None, 2), Seeds(0, 0, 0)])
def test_the_seeds_of_a_name_are_read_back(seeds):
    key = SceneKey('set', '5', seeds.scene, seeds.path)
    run = RunIdentity(key, 'baseline', 'mine', 'opengl', 0.5, seeds.method)
    assert run.seeds == seeds
    assert Seeds.of_run(run.run_id, seeds.scene) == seeds
    assert Seeds.of_run('unnamed', seeds.scene) == Seeds(seeds.scene)


def test_runs_are_paired_by_scene_path_and_repetition():
    places = {plan.identity.place for plan in planned(config(seeds=ALL))}
    assert len(places) == 2 * 3 * 2
    assert ('set.home_1', '1-p4', '7') in places
    # A data set's scene by another seed is another path in the same scene.
    keys = [SceneKey('replica', 'room_0', seed) for seed in (1, 2)]
    one, two = (RunIdentity(key, 'baseline', 'mine', 'opengl').place for key in keys)
    assert one[0] == two[0] == 'replica.room_0'
    assert one[1] != two[1]


@pytest.mark.parametrize(
    ('parts', 'message'),
    [
        ({'seeds': {'scene': [1]}, 'scenes': [{'seed': 3}]}, 'seeds.scene and "seed" of a scene'),
        ({'seeds': {'path': [1]}, 'scenes': [{'path_seed': 3}]}, 'seeds.path and "path_seed"'),
        ({'seeds': {'path': [1, 1]}}, 'seeds.path: .*every seed may be listed once'),
        ({'seeds': {'paths': [1]}}, 'unknown key "paths"'),
        ({'seeds': {'method': [-1]}}, 'greater than or equal to 0'),
        ({'seeds': {'path': [1]}, 'trajectory': {'goal_points': [[0, 0], [1, 1]]}},
         'seeds.path chooses where to drive, and so do'),
        ({'seeds': {'path': [1]}, 'scenes': [RECORDED]},
         'sequence a is recorded: it has one scene and one path'),
        ({'scenes': [{**RECORDED, 'path_seed': 1}]}, 'leave out path_seed'),
    ],
)  # fmt: skip
def test_seeds_that_say_nothing_or_two_things_are_refused(parts, message):
    with pytest.raises(ConfigError, match=message):
        config(**parts)


def test_a_scene_that_is_the_same_for_every_seed_is_refused(tmp_path):
    rooms = Preparation(lambda _item: room_scene())
    with pytest.raises(ConfigError, match=r'the same for every seed; list seeds\.path instead'):
        rooms.plans(config(seeds={'scene': [1, 2]}), tmp_path)
    assert len(rooms.plans(config(seeds={'path': [1, 2]}), tmp_path)) == 4


def test_another_scene_has_no_seeds_of_this_one():
    demo = with_scene(config(seeds=ALL), 'apartment', 7)
    assert demo.seeds == SeedsConfig()
    assert [item.seed for item in demo.seeded_scenes] == [7]


@pytest.mark.full
@pytest.mark.gl
def test_a_scene_is_made_once_and_each_path_in_it_is_another(tmp_path):
    loaded = Counter()

    def load(item):
        loaded[item.seed] += 1
        return replace(room_scene(), name=f'room_{item.seed}')

    preparation = Preparation(load)
    settings = config(seeds={'scene': [1, 2], 'path': [3, 4], 'method': [5, 6]})
    plans = preparation.plans(settings, tmp_path)
    made = {plan.shared_directory: preparation.prepare(plan, silent) for plan in plans}
    assert loaded == {1: 1, 2: 1}
    assert sorted(folder.name for folder in made) == [
        f'test.room_{scene}.{scene}-p{path}' for scene in (1, 2) for path in (3, 4)
    ]
    paths = {str(read_json(folder / PATH_FILE)) for folder in made}
    # The rooms are alike, so that a path depends only on its seed.
    assert len(paths) == 2
    questions = {(folder / QUESTIONS_FILE).read_text() for folder in made}
    assert len(questions) == 4
    found = describe_run(plans[-1], preparation.digest_of(plans[-1]))
    assert found['seeds'] == {'scene': 2, 'path and questions': 4, 'mapper': 6}
    assert found['inputs']['scene test.room_2.2'] == preparation.digest_of(plans[-1])


@pytest.mark.gl
def test_the_path_seed_alone_gives_what_the_seed_of_the_scene_gave(tmp_path):
    """No seed changes this room, so that only the path seed can make a difference."""
    rooms = Preparation(lambda _item: room_scene())
    made = []
    for number, seeds in enumerate(({}, {'path_seed': 4}, {'path_seed': 9})):
        settings = config(scenes=[{'seed': 4, **seeds}])
        made.append(rooms.prepare(rooms.plans(settings, tmp_path / str(number))[0], silent))
    both, apart, other = (read_json(folder / PATH_FILE) for folder in made)
    assert both == apart != other
    both, apart, other = (sha256_of(folder / 'ground_truth') for folder in made)
    assert both == apart != other


KEY = SceneKey('replica', 'room_0', 5)
RUN = RunIdentity(KEY, 'baseline', 'oracle', 'opengl')


def test_a_run_is_named_by_all_its_parts():
    assert RUN.run_id == 'replica.room_0.baseline.oracle.opengl.5'
    assert str(KEY) == 'replica.room_0.5'


@pytest.mark.parametrize(
    'other',
    [
        replace(RUN, scene_key=replace(KEY, dataset='hm3d')),
        replace(RUN, scene_key=replace(KEY, scene='room_1')),
        replace(RUN, scene_key=replace(KEY, seed=6)),
        replace(RUN, condition='camera'),
        replace(RUN, mapper='appearance'),
        replace(RUN, simulator='habitat'),
        replace(RUN, speed_factor=1.0),
    ],
)
def test_every_part_tells_runs_apart(other):
    assert other.run_id != RUN.run_id
    assert other != RUN


@pytest.mark.parametrize(
    ('scene', 'slug'),
    [('a/b', 'a-b'), ('../../x', '-x'), ('a.b', 'a-b'), ('a  b', 'a-b'), ('é', '-'), ('', '-')],
)
def test_a_name_is_safe_as_a_folder_and_its_dots_separate_parts(scene, slug):
    run_id = RunIdentity(SceneKey('d', scene, 1), 'c', 'm', 's').run_id
    assert run_id.split('.') == ['d', slug, 'c', 'm', 's', '1']


@pytest.mark.parametrize(
    ('speed', 'name'), [(1.0, 'x1'), (0.5, 'x0-5'), (2.83, 'x2-83'), (100.0, 'x100')]
)
def test_realtime_runs_of_several_speeds_do_not_share_a_folder(speed, name):
    assert replace(RUN, speed_factor=speed).run_id == f'{RUN.run_id}.{name}'
