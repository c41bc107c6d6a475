"""Textures of mesh files that are broken, and contents of the files that are not read."""

import base64
import json
import re
import warnings

import numpy as np
import pytest
from PIL import Image
from support.gltf_files import TRIANGLE, encoded_image, write_glb, write_gltf
from typer.testing import CliRunner

from osmabench_ros.cli.main import app
from osmabench_ros.errors import OsmabenchWarning, SceneError
from osmabench_ros.scenes.assets import load_meshes

PNG, JPEG = encoded_image('png'), encoded_image('jpeg')
REMEDY = 'replace it by a complete PNG or JPEG'


@pytest.fixture(autouse=True)
def warnings_are_errors():
    warnings.simplefilter('error', OsmabenchWarning)


@pytest.mark.parametrize(
    ('content', 'fault'),
    [
        (PNG[: len(PNG) // 2], '[Tt]runcated'),
        (JPEG[: len(JPEG) // 2], '[Tt]runcated'),
        (b'<html>404 not found</html>', 'it is not an image'),
        (bytes(500), 'it is not an image'),
        (b'', 'it is empty'),
        (PNG[:100] + bytes(200) + PNG[300:], ''),
    ],
    ids=['half a PNG', 'half a JPEG', 'a page', 'zeros', 'nothing', 'damaged PNG'],
)
def test_broken_image_is_named_in_every_kind_of_file(tmp_path, content, fault):
    def message(file, texture):
        reported = (
            rf'{file}: texture "{re.escape(texture)}" cannot be decoded: .*{fault}.*; {REMEDY}'
        )
        return reported.replace('.glb', r'\.glb')

    (tmp_path / 'wood.png').write_bytes(content)
    write_gltf(tmp_path / 'near.gltf', 'wood.png')
    with pytest.raises(SceneError, match=message('near.gltf', 'wood.png')):
        load_meshes(tmp_path / 'near.gltf')
    write_gltf(
        tmp_path / 'inline.gltf', f'data:image/png;base64,{base64.b64encode(content).decode()}'
    )
    with pytest.raises(SceneError, match=message('inline.gltf', '0')):
        load_meshes(tmp_path / 'inline.gltf')
    if content:  # a bufferView of no bytes is not a GLB
        write_glb(tmp_path / 'inside.glb', content, name='wood')
        with pytest.raises(SceneError, match=message('inside.glb', 'wood')):
            load_meshes(tmp_path / 'inside.glb')
    (tmp_path / 'm.mtl').write_text('newmtl m\nmap_Kd wood.png\n')
    (tmp_path / 'm.obj').write_text(
        'mtllib m.mtl\nusemtl m\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\n'
        'f 1/1 2/2 3/3\n'
    )
    with pytest.raises(SceneError, match=message('m.obj', 'wood.png')):
        load_meshes(tmp_path / 'm.obj')


def test_type_of_an_image(tmp_path):
    path = tmp_path / 'x.glb'
    write_glb(path, PNG, mimeType='image/ktx2', name='wood')
    with pytest.raises(SceneError, match=r'x\.glb: texture "wood".* its type is image/ktx2, but'):
        load_meshes(path)
    # Many exporters mistake one for the other, and everybody shows the image all the same.
    for content, wrong in ((PNG, 'image/jpeg'), (JPEG, 'image/png')):
        write_glb(path, content, mimeType=wrong)
        texture = load_meshes(path)[0].material.texture
        np.testing.assert_allclose(texture.mean(axis=(0, 1)), (14, 24, 34), atol=1)


def test_image_that_is_not_where_the_file_says(tmp_path):
    path = tmp_path / 'x.gltf'
    write_gltf(path, 'data:image/png;base64,%%%')
    with pytest.raises(SceneError, match=r'x\.gltf: Error: Only base64'):
        load_meshes(path)
    write_gltf(path, '', images=[{'name': 'wood'}])
    with pytest.raises(SceneError, match=r"x\.gltf: KeyError: 'bufferView'; export"):
        load_meshes(path)
    write_gltf(path, 'gone')
    with pytest.raises(SceneError, match=r'x\.gltf names the texture gone, which is not near it'):
        load_meshes(path)


@pytest.mark.parametrize('magic', [b'\xabKTX 20\xbb\r\n\x1a\n', b'sB\x13'])
def test_textures_that_are_not_decoded_are_grey_with_a_warning(tmp_path, magic):
    path = tmp_path / 'x.glb'
    write_glb(path, magic + bytes(80), mimeType='image/ktx2')
    with pytest.warns(OsmabenchWarning, match=r'x\.glb: textures in Basis or KTX 2 .* "habitat"'):
        (mesh,) = load_meshes(path)
    assert mesh.material.texture is None


def test_skin_is_left_out_with_a_warning(tmp_path):
    Image.new('RGB', (4, 4)).save(tmp_path / 'x.png')
    nodes = [{'name': 'puppet', 'mesh': 0, 'skin': 0}, {'name': 'bone', 'translation': [0, 0, 3]}]
    scenes = [{'nodes': [0, 1]}]
    skins = [{'joints': [1]}]
    write_gltf(tmp_path / 'x.gltf', 'x.png', nodes=nodes, scenes=scenes, skins=skins)
    reported = r'x\.gltf: node "puppet" has a skin, .* bind pose\. Apply the pose'
    with pytest.warns(OsmabenchWarning, match=reported):
        (mesh,) = load_meshes(tmp_path / 'x.gltf')
    np.testing.assert_array_equal(mesh.vertices, TRIANGLE)


def test_import_of_a_scene_folder(tmp_path):
    folder = tmp_path / 'room'
    folder.mkdir()
    (folder / 'scene.json').write_text(
        json.dumps({'name': 'n', 'file': 'r.glb', 'nodes': {'corner': {'class': 'wall'}}})
    )
    write_glb(folder / 'r.glb', PNG[:200], name='wall paper')
    result = CliRunner().invoke(
        app, ['scene', 'import', str(folder), '--out', str(tmp_path / 'out')]
    )
    assert isinstance(result.exception, SceneError)
    assert 'r.glb: texture "wall paper" cannot be decoded' in str(result.exception)
    assert not (tmp_path / 'out').exists()
