import json
import subprocess
import sys

import pytest
import typer
from PIL import Image
from scenes.gltf_files import write_gltf
from typer.testing import CliRunner

from osmabench_ros.cli.import_scene import export_scene, import_scene
from osmabench_ros.errors import RunError, SceneError
from osmabench_ros.scenes.loading import load_scene

RUNNER = CliRunner()
WORLD = """<sdf version="1.7"><world name="w"><model name="Box_1"><link name="l">
<visual name="v"><geometry><box><size>1 1 1</size></box></geometry></visual>
</link></model></world></sdf>"""


@pytest.fixture
def app():
    found = typer.Typer()
    found.command()(import_scene)
    return found


def test_world_becomes_a_folder(tmp_path, app):
    (tmp_path / 'a.world').write_text(WORLD)
    (tmp_path / 'classes.json').write_text(json.dumps({'box*': 'crate'}))
    out = tmp_path / 'out'
    arguments = [str(tmp_path / 'a.world'), '--out', str(out)]
    result = RUNNER.invoke(app, [*arguments, '--classes', str(tmp_path / 'classes.json')])
    assert result.exit_code == 0, result.output
    assert '1 objects of 1 classes, 12 triangles, 0 lights' in result.output
    assert [item.name for item in load_scene(str(out)).label_set.classes] == ['crate']
    again = RUNNER.invoke(app, arguments)
    assert isinstance(again.exception, RunError)
    assert RUNNER.invoke(app, [*arguments, '--overwrite']).exit_code == 0


def test_warnings_are_one_line_each(tmp_path):
    Image.new('RGB', (4, 4)).save(tmp_path / 'x.png')
    nodes = [{'name': '[puppet]', 'mesh': 0, 'skin': 0}]
    write_gltf(tmp_path / 'x.gltf', 'x.png', nodes=nodes, skins=[{'joints': [0]}])
    manifest = {'name': 'n', 'file': 'x.gltf', 'nodes': {'[puppet]': {'class': 'doll'}}}
    (tmp_path / 'scene.json').write_text(json.dumps(manifest))
    script = (
        'import sys; sys.argv[0] = "osmabench"; from osmabench_ros.cli.main import main; main()'
    )
    words = ['import-scene', str(tmp_path), '--out', str(tmp_path / 'out')]
    done = subprocess.run([sys.executable, '-c', script, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    skin, *implausible = done.stderr.splitlines()
    assert skin.startswith(f'warning: {tmp_path}/x.gltf: node "[puppet]" has a skin')
    assert implausible
    assert all(line.startswith('warning: scene folder/n: ') for line in implausible)


def test_a_world_with_gaps_is_imported_without_them(tmp_path, app):
    gap = '<include><uri>model://gone</uri></include><model name="Big_Table">'
    (tmp_path / 'a.world').write_text(WORLD.replace('<model name="Box_1">', gap))
    arguments = [str(tmp_path / 'a.world'), '--out', str(tmp_path / 'out')]
    assert 'model://gone' in str(RUNNER.invoke(app, arguments).exception)
    assert not (tmp_path / 'out').exists()
    options = ['--skip-missing', '--label-set', 'apartment', '--collada-up', 'ignored']
    result = RUNNER.invoke(app, [*arguments, *options])
    assert result.exit_code == 0, result.output
    assert 'left out: ' in result.output
    loaded = load_scene(str(tmp_path / 'out'))
    assert [item.name for item in loaded.label_set.classes] == ['table']


def test_apartment_of_a_seed(tmp_path, app):
    out = tmp_path / 'flat'
    result = RUNNER.invoke(app, ['apartment', '--seed', '3', '--out', str(out)])
    assert result.exit_code == 0, result.output
    assert load_scene(str(out)).name == 'seed_3'


def test_missing_world_is_named(tmp_path, app):
    result = RUNNER.invoke(app, [str(tmp_path / 'no.world'), '--out', str(tmp_path / 'o')])
    assert isinstance(result.exception, SceneError)
    assert 'no.world' in str(result.exception)
    assert not (tmp_path / 'o').exists()


def test_a_scene_is_exported_for_habitat(tmp_path, app):
    (tmp_path / 'a.world').write_text(WORLD)
    RUNNER.invoke(app, [str(tmp_path / 'a.world'), '--out', str(tmp_path / 'folder')])
    exporting = typer.Typer()
    exporting.command()(export_scene)
    arguments = [str(tmp_path / 'folder'), '--out', str(tmp_path / 'out')]
    result = RUNNER.invoke(exporting, arguments)
    assert result.exit_code == 0, result.output
    config = tmp_path / 'out' / 'gazebo.scene_dataset_config.json'
    assert result.output == f'{config}: 1 objects, 0 rooms, 0 lights\n'
    assert load_scene(str(config)).label_set.by_name.keys() == {'box'}
    assert isinstance(RUNNER.invoke(exporting, arguments).exception, RunError)
    assert RUNNER.invoke(exporting, [*arguments, '--overwrite']).exit_code == 0
