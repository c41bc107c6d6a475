from dataclasses import replace

import pytest

from osmabench_ros.runs.identity import RunIdentity, SceneKey

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
