import hashlib
from dataclasses import replace

import numpy as np
import pytest
from support.world.runs import matrix_config
from support.world.scenes import box_object, room_scene

from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import plan_runs
from osmabench_ros.runs.run_manifest import (
    collect_run_inputs,
    mapper_files,
    scene_digest,
    without_home,
)

KEY = SceneKey('set', 'home', 3)


def test_a_scene_is_its_content_and_not_its_place():
    scene = room_scene()
    digest = scene_digest(scene)
    assert scene_digest(room_scene()) == digest
    assert scene_digest(replace(scene, source='/elsewhere')) == digest
    moved = box_object(99, 'box', (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    assert scene_digest(room_scene(extra=(moved,))) != digest
    first = scene.objects[0]
    mesh = first.meshes[0]
    painted = replace(mesh, material=replace(mesh.material, texture=np.zeros((2, 2, 3), np.uint8)))
    darker = replace(mesh.material, texture=np.ones((2, 2, 3), np.uint8))
    versions = [
        replace(
            scene, objects=(replace(first, meshes=(item, *first.meshes[1:])), *scene.objects[1:])
        )
        for item in (painted, replace(mesh, material=darker), replace(mesh, uv=mesh.uv + 1))
    ]
    assert len({digest, *map(scene_digest, versions)}) == 4


def test_files_that_a_mapper_names_count_by_their_content(tmp_path):
    script, settings = tmp_path / 'mapper.py', tmp_path / 'settings.yaml'
    script.write_text('1')
    settings.write_text('a')
    made = matrix_config(
        mappers=[
            {'name': 'mine', 'command': ['python3', str(script), '--fast']},
            {
                'name': 'other',
                'options': {'deep': {'file': str(settings)}, 'voxel_m': 0.1, 'note': '~5 cm'},
            },
        ]
    )
    [(name, digest)] = mapper_files(made.mappers[0]).items()
    assert name == f'mapper mine: {without_home(str(script))}'
    assert digest == hashlib.sha256(b'1').hexdigest()
    assert list(mapper_files(made.mappers[1])) == [f'mapper other: {without_home(str(settings))}']
    script.write_text('2')
    assert mapper_files(made.mappers[0])[name] == hashlib.sha256(b'2').hexdigest()


def test_everything_has_a_name_that_people_know(tmp_path):
    features = tmp_path / 'text.npy'
    features.write_bytes(b'x')
    config = matrix_config(conditions=['camera'], text_features={'clip': str(features)})
    [plan] = plan_runs(config, {config.scenes[0]: KEY}, tmp_path)
    assert list(collect_run_inputs(plan, 'abc')) == [
        'scene set.home.3',
        f'text features of clip: {without_home(str(features))}',
    ]


@pytest.mark.parametrize(
    ('path', 'shown'),
    [('/home/me/a/b', '~/a/b'), ('/home/mean/a', '/home/mean/a'), ('a/b', 'a/b')],
)
def test_paths_do_not_say_who_ran(path, shown, monkeypatch):
    monkeypatch.setenv('HOME', '/home/me')
    assert without_home(path) == shown
