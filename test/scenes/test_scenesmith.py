"""A data set packed as OSMa-Bench++ packs SceneSmith's scenes: absolute paths, parts, no names."""

import numpy as np
import pytest
import trimesh
from support.habitat_files import write_json

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.specification import SceneSpecification, facts

NAME = 'furniture_stage__scene_000'
PLACED = (
    ('room_geometry_floor', 'floor', 'semantic_floor', (5, 0.1, 4), (0, -0.05, 0)),
    ('room_geometry_north_wall', 'wall', 'wall_north_wall', (5, 2.5, 0.1), (0, 1.25, -2)),
    ('office_desk_0', 'object', 'desk_top_visual', (1.2, 0.04, 0.6), (1, 0.72, 0)),
    ('office_desk_0', 'object', 'desk_body_visual', (1.1, 0.7, 0.5), (1, 0.35, 0)),
    ('chair_1', 'object', 'chair_visual', (0.4, 0.8, 0.4), (1, 0.4, 0.6)),
    ('chair_2', 'object', 'chair_visual', (0.4, 0.8, 0.4), (-1, 0.4, 0.6)),
)


def packed(root):
    """Write the data set; templates are shared, ids run on from 1 and 1000."""
    instances, summary = [], []
    for number, (thing, category, template, size, place) in enumerate(PLACED):
        mesh = root / 'meshes' / f'{template}.obj'
        mesh.parent.mkdir(parents=True, exist_ok=True)
        trimesh.creation.box(size).export(mesh)
        config = {
            'render_asset': str(mesh), 'collision_asset': str(mesh), 'mass': 1.0,
            'semantic_id': 1 + number if category != 'object' else 1000 + number,
            'scale': [1, 1, 1], 'shader_type': 'phong',
        }  # fmt: skip
        write_json(root / f'objects/{NAME}__{template}.object_config.json', config)
        entry = {
            'translation': list(place), 'rotation': [1, 0, 0, 0],
            'translation_origin': 'asset_local', 'motion_type': 'STATIC',
        }  # fmt: skip
        instances.append({'template_name': f'{NAME}__{template}', **entry})
        named = {'_meta_instance_name': thing, '_meta_category': category}
        summary.append({'template_name': template, **entry, **named})
    floor = root / 'meshes' / 'floor.glb'
    trimesh.creation.box((6, 0.02, 5)).export(floor)
    stage = {'render_asset': str(floor), 'up': [0, 1, 0], 'front': [0, 0, -1]}
    write_json(root / f'stages/{NAME}.stage_config.json', stage)
    scene = {'stage_instance': {'template_name': NAME}, 'object_instances': instances}
    write_json(root / f'scenes/{NAME}.scene_instance.json', scene)
    write_json(root / f'debug/{NAME}.debug_summary.json', {'instances': summary})
    paths = {'stages': 'stage_config', 'objects': 'object_config'}
    config = {key: {'paths': {f'.{kind}.json': [f'{key}/']}} for key, kind in paths.items()}
    config['scene_instances'] = {'paths': {'.scene_instance.json': ['scenes/']}}
    return write_json(root / 'sceneSmith.scene_dataset_config.json', config)


def test_things_have_names_and_are_whole(tmp_path):
    scene = load_scene(str(packed(tmp_path)), scene=NAME)
    of = {item.name: item for item in scene.objects}
    assert {scene.class_name(of[name]) for name in ('chair_1', 'chair_2')} == {'chair'}
    assert scene.class_name(of['office_desk_0']) == 'office desk'
    assert [item.structure for item in scene.label_set.classes] == [False, True, False, True]
    desk = of['office_desk_0'].box
    np.testing.assert_allclose(desk.minimum, [0.4, -0.3, 0], atol=1e-6)
    np.testing.assert_allclose(desk.maximum, [1.6, 0.3, 0.74], atol=1e-6)
    assert of['office_desk_0'].attributes['height_m'] == pytest.approx(0.74)
    wanted = {
        'room': 'office',
        'objects': [{'class': 'chair', 'count': 3}, {'class': 'office desk'}],
        'relations': [{'subject': 'office desk', 'relation': 'next to', 'object': 'chair'}],
    }
    graph = build_ground_truth_graph(scene)
    specification = SceneSpecification.model_validate({'name': 'office', 'rooms': [wanted]})
    assert [fact.holds for fact in facts(specification, graph)] == [False, True, True]


def test_a_summary_of_another_scene_is_refused(tmp_path):
    path = packed(tmp_path)
    write_json(tmp_path / f'debug/{NAME}.debug_summary.json', {'instances': []})
    with pytest.raises(SceneError, match='names 0 instances, the scene has 6'):
        load_scene(str(path))
