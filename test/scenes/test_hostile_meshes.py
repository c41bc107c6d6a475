"""Mesh files that are broken, claim more than they hold, or name files elsewhere: one error."""

import base64
import io
import json
import re
import struct

import numpy as np
import pytest
import trimesh
from PIL import Image
from support.documents import put
from support.gltf_files import encoded_image, write_glb, write_gltf
from support.libraries import needs

from osmabench_ros.errors import OsmabenchError, SceneError
from osmabench_ros.scenes.assets import load_meshes
from osmabench_ros.scenes.loading import load_scene

PNG, JPEG = encoded_image('png'), encoded_image('jpeg')
BASE_64 = 'data:image/png;base64,'


PRIMITIVE = ('meshes', 0, 'primitives', 0)
TEXTURE_BEFORE_THE_FIRST = {'baseColorTexture': {'index': -1}}
CHANGES = {
    '600 million points': (('accessors', 0, 'count'), 600_000_000, 'as a mesh'),
    'indices 99': ((*PRIMITIVE, 'indices'), 99, 'as a mesh'),
    'nodes are numbers': (('nodes',), [1], 'export the file again'),
    'buffer elsewhere': (('buffers', 0, 'uri'), '/etc/passwd', 'passwd'),
    'buffer above': (('buffers', 0, 'uri'), '../../../etc/passwd', 'passwd'),
    'image of 5,000 characters': (('images', 0, 'uri'), 'a' * 5000, 'near it'),
    'image that is nowhere': (
        ('images', 0, 'uri'), 'gone', 'names the texture gone, which is not near it',
    ),
    'image in no base 64': (('images', 0, 'uri'), f'{BASE_64}%%%', 'Error: Only base64'),
    'image without content': (('images',), [{'name': 'a'}], "KeyError: 'bufferView'; export"),
    'image -1': (('textures', 0, 'source'), -1, 'texture 0 names image -1 of 1'),
    'image 2 of 1': (('textures', 0, 'source'), 2, 'names image 2 of 1'),
    'texture -1': (
        ('materials', 0, 'pbrMetallicRoughness'), TEXTURE_BEFORE_THE_FIRST,
        'material 0 names texture -1 of 1',
    ),
    'circle of nodes': (('nodes', 0, 'children'), [0], 'form a circle'),
}  # fmt: skip


@pytest.mark.parametrize('name', CHANGES)
def test_a_hostile_gltf_is_one_error(tmp_path, name):
    place, value, expected = CHANGES[name]
    path = tmp_path / 'a' / 'triangle.gltf'
    path.parent.mkdir()
    write_gltf(path, BASE_64 + base64.b64encode(PNG).decode())
    document = json.loads(path.read_text())
    put(document, *place, value=value)
    path.write_text(json.dumps(document))
    with pytest.raises(SceneError, match=expected) as caught:
        load_meshes(path)
    assert 'triangle.gltf' in str(caught.value)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    'chunks', [[], [(b'BIN\0', b'')], [(b'JSON', b'[]')], [(b'JSON', b'[' * 100_000)]]
)
def test_a_glb_of_other_parts_is_refused(write_file, chunks):
    data = b''.join(struct.pack('<I4s', len(part), kind) + part for kind, part in chunks)
    path = write_file('a.glb', struct.pack('<4sII', b'glTF', 2, 12 + len(data)) + data)
    with pytest.raises(SceneError, match=r'a\.glb: .*; export the file again'):
        load_meshes(path)


def picture(kind, size=(2, 2)):
    stream = io.BytesIO()
    Image.new('RGB', size).save(stream, kind)
    return stream.getvalue()


def write_obj(path, material, faces='f 1/1 2/1 3/1'):
    path.with_suffix('.mtl').write_text(f'newmtl m\n{material}\n')
    vertices = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\n'
    path.write_text(f'mtllib {path.stem}.mtl\n{vertices}usemtl m\n{faces}\n')


BROKEN_IMAGES = {
    'half a PNG': (PNG[: len(PNG) // 2], '[Tt]runcated'),
    'half a JPEG': (JPEG[: len(JPEG) // 2], '[Tt]runcated'),
    'a page': (b'<html>404 not found</html>', 'it is not an image'),
    'a program': (picture('EPS'), 'it is not an image of a format that is read'),
    'zeros': (bytes(500), 'it is not an image'),
    'nothing': (b'', 'it is empty'),
    'damaged PNG': (PNG[:100] + bytes(200) + PNG[300:], ''),
}


@pytest.mark.parametrize('name', BROKEN_IMAGES)
def test_a_broken_image_is_named_in_every_kind_of_file(tmp_path, name):
    content, fault = BROKEN_IMAGES[name]
    (tmp_path / 'wood.png').write_bytes(content)
    write_gltf(tmp_path / 'near.gltf', 'wood.png')
    write_gltf(tmp_path / 'inline.gltf', BASE_64 + base64.b64encode(content).decode())
    write_obj(tmp_path / 'm.obj', 'map_Kd wood.png')
    textures = {'near.gltf': 'wood.png', 'inline.gltf': '0', 'm.obj': 'wood.png'}
    if content:  # a bufferView of no bytes is not a GLB
        write_glb(tmp_path / 'inside.glb', content, name='wood')
        textures['inside.glb'] = 'wood'
    for file, texture in textures.items():
        where = re.escape(f'{file}: texture "{texture}" cannot be decoded: ')
        remedy = 'replace it by a complete PNG or JPEG'
        with pytest.raises(SceneError, match=f'{where}.*{fault}.*; {remedy}'):
            load_meshes(tmp_path / file)


def test_a_program_that_is_called_materials_is_not_run(tmp_path):
    write_obj(tmp_path / 'a.obj', 'map_Kd b.mtl')
    (tmp_path / 'b.mtl').write_bytes(picture('EPS'))
    (mesh,) = load_meshes(tmp_path / 'a.obj')
    assert mesh.material.texture is None


def test_a_texture_is_read_near_its_mesh_and_not_elsewhere(tmp_path):
    folder, textures = tmp_path / 'model' / 'meshes', tmp_path / 'model' / 'textures'
    for place in (folder, textures):
        place.mkdir(parents=True)
    (tmp_path / 'secret.png').write_bytes(picture('PNG'))
    (textures / 'inside.png').write_bytes(picture('PNG'))
    (folder / 'link.png').symlink_to(tmp_path / 'secret.png')
    write_obj(folder / 'a.obj', 'map_Kd ../textures/inside.png')
    assert load_meshes(folder / 'a.obj')[0].material.texture is not None
    for name in ('../../secret.png', str(tmp_path / 'secret.png'), 'link.png'):
        write_obj(folder / 'a.obj', f'map_Kd {name}')
        with pytest.raises(SceneError, match=r'\.png, which is not near it'):
            load_meshes(folder / 'a.obj')


def test_textures_may_be_links_within_a_download(tmp_path):
    folder = tmp_path / 'snapshots' / '0a1b' / 'model'
    folder.mkdir(parents=True)
    write_obj(folder / 'a.obj', 'map_Kd wood.png')
    (tmp_path / 'blobs').mkdir()
    (tmp_path / 'blobs' / '77').write_bytes(picture('PNG'))
    (folder / 'wood.png').symlink_to('../../../blobs/77')
    (mesh,) = load_meshes(folder / 'a.obj')
    assert mesh.material.texture is not None


@pytest.mark.parametrize('name', ['a\0b', 'x' * 5000, 'loop', '/proc/self/mem', '/dev/zero'])
@pytest.mark.parametrize('suffix', ['', '/scene.json', '.scene_dataset_config.json'])
def test_a_path_that_is_no_scene_is_one_error(tmp_path, name, suffix):
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    with pytest.raises(SceneError, match=r'a\\x00b|x{50}|loop|/proc/self/mem|/dev/zero'):
        load_scene(str(tmp_path / f'{name}{suffix}'))


def write_manifest(folder, file):
    (folder / 'scene.json').write_text(json.dumps({'name': 'x', 'file': file, 'nodes': {}}))


def test_what_loading_makes_go_wrong_names_the_scene(tmp_path, monkeypatch):
    write_glb(tmp_path / 'a.glb', PNG)
    write_manifest(tmp_path, 'a.glb')
    monkeypatch.setattr('osmabench_ros.scenes.folder.read_bytes', lambda *_: {}['room'])
    with pytest.raises(SceneError, match=r'is malformed: KeyError'):
        load_scene(str(tmp_path))


@pytest.mark.parametrize(
    'name', ['/etc/passwd', '../a/triangle.glb', 'link.glb', 'a\0b', 'x' * 5000, '', '.']
)
def test_the_mesh_of_a_scene_folder_lies_in_it(tmp_path, name):
    folder = tmp_path / 'scene'
    (tmp_path / 'a').mkdir()
    folder.mkdir()
    write_glb(tmp_path / 'a' / 'triangle.glb', PNG)
    (folder / 'link.glb').symlink_to(tmp_path / 'a' / 'triangle.glb')
    write_manifest(folder, name)
    with pytest.raises(SceneError, match=r'scene'):
        load_scene(str(folder))


PLY = """ply
format ascii 1.0
element vertex {vertices}
property float x
property float y
property float z
element face {faces}
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
3 0 1 {last}
"""
ENTITY = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
MESHES = {
    'faces.obj': 'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 30',
    'faces.ply': PLY.format(vertices=3, faces=1, last=77),
    'many.ply': PLY.format(vertices=6 * 10**8, faces=1, last=2),
    'many_faces.ply': PLY.format(vertices=3, faces=10**15, last=2),
    'many.stl': 'x' * 80 + '\xff' * 4,
    'digits.obj': f'v {"9" * 400} 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n',
    'entity.dae': ENTITY,
    'archive.zip': 'PK\x03\x04',
    **{f'empty.{kind}': '' for kind in ('glb', 'gltf', 'obj')},
    **{f'zeros.{kind}': '\x00' * 500 for kind in ('glb', 'gltf')},
    **{f'short.{kind}': 'glTF\x02\x00' for kind in ('glb', 'gltf')},
    'half.gltf': '{"asset": ',
}


@needs('collada')
@pytest.mark.parametrize('name', MESHES)
def test_a_hostile_mesh_is_one_error(write_file, name):
    path = write_file(name, MESHES[name].encode('latin-1'))
    with pytest.raises(SceneError, match=path.name):
        load_meshes(path)


@pytest.mark.parametrize('suffix', ['obj', 'ply'])
def test_damaged_meshes_load_or_are_refused(tmp_path, suffix):
    path = tmp_path / f'box.{suffix}'
    trimesh.creation.box((1, 2, 3)).export(path)
    sound, rng = path.read_bytes(), np.random.default_rng(1)
    refused = 0
    for _ in range(8):
        damaged = bytearray(sound)
        for place in rng.integers(0, len(sound), 8):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged[: rng.integers(len(sound) // 2, 2 * len(sound))])
        try:
            load_meshes(path)
        except OsmabenchError as error:
            assert 'box.' in str(error)  # noqa: PT017
            refused += 1
    assert refused
