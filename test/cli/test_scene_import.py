import json
from functools import partial

import pytest
from PIL import Image
from support.commands import output_of
from support.gltf_files import write_gltf
from support.programs import run_python

from osmabench_ros.errors import RunError, SceneError
from osmabench_ros.scenes.loading import load_scene

WORLD = """<sdf version="1.7"><world name="w"><model name="Box_1"><link name="l">
<visual name="v"><geometry><box><size>1 1 1</size></box></geometry></visual>
</link></model></world></sdf>"""


run = partial(output_of, 'scene')


def test_world_becomes_a_folder(tmp_path):
    (tmp_path / 'a.world').write_text(WORLD)
    (tmp_path / 'classes.json').write_text(json.dumps({'box*': 'crate'}))
    out = tmp_path / 'out'
    arguments = ['import', tmp_path / 'a.world', '--out', out]
    told = run(*arguments, '--classes', tmp_path / 'classes.json')
    assert '1 objects of 1 classes, 12 triangles, 0 lights' in told
    assert [item.name for item in load_scene(str(out)).label_set.classes] == ['crate']
    with pytest.raises(RunError):
        run(*arguments)
    run(*arguments, '--overwrite')


def test_warnings_are_one_line_each(tmp_path):
    Image.new('RGB', (4, 4)).save(tmp_path / 'x.png')
    nodes = [{'name': '[puppet]', 'mesh': 0, 'skin': 0}]
    write_gltf(tmp_path / 'x.gltf', 'x.png', nodes=nodes, skins=[{'joints': [0]}])
    manifest = {'name': 'n', 'file': 'x.gltf', 'nodes': {'[puppet]': {'class': 'doll'}}}
    (tmp_path / 'scene.json').write_text(json.dumps(manifest))
    words = ['scene', 'import', tmp_path, '--out', tmp_path / 'out']
    done = run_python('-m', 'osmabench_ros.cli', *words)
    assert done.returncode == 0, done.stderr
    skin, *implausible = done.stderr.splitlines()
    assert skin.startswith(f'warning: {tmp_path}/x.gltf: node "[puppet]" has a skin')
    assert implausible
    assert all(line.startswith('warning: scene folder/n: ') for line in implausible)


def test_a_world_with_gaps_is_imported_without_them(tmp_path):
    gap = '<include><uri>model://gone</uri></include><model name="Big_Table">'
    (tmp_path / 'a.world').write_text(WORLD.replace('<model name="Box_1">', gap))
    arguments = ['import', tmp_path / 'a.world', '--out', tmp_path / 'out']
    with pytest.raises(SceneError, match='model://gone'):
        run(*arguments)
    assert not (tmp_path / 'out').exists()
    options = ['--skip-missing', '--label-set', 'apartment', '--collada-up', 'ignored']
    assert 'left out: ' in run(*arguments, *options)
    loaded = load_scene(str(tmp_path / 'out'))
    assert [item.name for item in loaded.label_set.classes] == ['table']


def test_objects_taken_for_parts_of_the_building_are_marked(tmp_path):
    Image.new('RGB', (4, 4)).save(tmp_path / 'x.png')
    shown = {'Shelf_Wall': 'shelf wall, a part of the building', 'Cube': 'cube'}
    for name, text in shown.items():
        write_gltf(tmp_path / 'x.gltf', 'x.png', nodes=[{'name': name, 'mesh': 0}])
        output = run('import', tmp_path / 'x.gltf', '--out', tmp_path / name)
        assert f'  {name}: {text}\n' in output


def test_missing_world_is_named(tmp_path):
    with pytest.raises(SceneError, match='no.world'):
        run('import', tmp_path / 'no.world', '--out', tmp_path / 'o')
    assert not (tmp_path / 'o').exists()


def test_a_scene_is_exported_for_habitat(tmp_path):
    (tmp_path / 'a.world').write_text(WORLD)
    run('import', tmp_path / 'a.world', '--out', tmp_path / 'folder')
    arguments = ['export', tmp_path / 'folder', '--out', tmp_path / 'out']
    config = tmp_path / 'out' / 'gazebo.scene_dataset_config.json'
    assert run(*arguments) == f'{config}: 1 objects, 0 rooms, 0 lights\n'
    assert load_scene(str(config)).label_set.by_name.keys() == {'box'}
    with pytest.raises(RunError):
        run(*arguments)
    run(*arguments, '--overwrite')
