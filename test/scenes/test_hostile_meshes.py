"""Mesh files that claim more than they hold, or name files elsewhere, are one error."""

import base64
import io
import json
import struct

import pytest
from PIL import Image
from support.gltf_files import encoded_image, write_glb, write_gltf

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.assets import load_meshes
from osmabench_ros.scenes.loading import load_scene

PNG = base64.b64encode(encoded_image('png', size=8)).decode()
URI = f'data:image/png;base64,{PNG}'


def put(*path):
    """Return a change that puts the last item at the place the others name."""
    *keys, last, value = path

    def change(document):
        place = document
        for key in keys:
            place = place[key]
        place[last] = value

    return change


PRIMITIVE = ('meshes', 0, 'primitives', 0)
CHANGES = {
    '600 million points': (put('accessors', 0, 'count', 600_000_000), SceneError, 'as a mesh'),
    'indices 99': (put(*PRIMITIVE, 'indices', 99), SceneError, 'as a mesh'),
    'nodes are numbers': (put('nodes', [1]), SceneError, 'export the file again'),
    'buffer elsewhere': (put('buffers', 0, 'uri', '/etc/passwd'), SceneError, 'passwd'),
    'buffer above': (put('buffers', 0, 'uri', '../../../etc/passwd'), SceneError, 'passwd'),
    'image of 5,000 characters': (put('images', 0, 'uri', 'a' * 5000), SceneError, 'near it'),
    'image -1': (put('textures', 0, 'source', -1), SceneError, 'texture 0 names image -1 of 1'),
    'image 2 of 1': (put('textures', 0, 'source', 2), SceneError, 'names image 2 of 1'),
    'texture -1': (
        put('materials', 0, 'pbrMetallicRoughness', {'baseColorTexture': {'index': -1}}),
        SceneError, 'material 0 names texture -1 of 1',
    ),
    'circle of nodes': (put('nodes', 0, 'children', [0]), SceneError, 'form a circle'),
}  # fmt: skip


@pytest.mark.parametrize('name', CHANGES)
def test_a_hostile_gltf_is_one_error(tmp_path, name):
    change, error, expected = CHANGES[name]
    path = tmp_path / 'a' / 'triangle.gltf'
    path.parent.mkdir()
    write_gltf(path, URI)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(error, match=expected) as caught:
        load_meshes(path)
    assert 'triangle.gltf' in str(caught.value)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    'chunks', [[], [(b'BIN\0', b'')], [(b'JSON', b'[]')], [(b'JSON', b'[' * 100_000)]]
)
def test_a_glb_of_other_parts_is_refused(tmp_path, chunks):
    data = b''.join(struct.pack('<I4s', len(part), kind) + part for kind, part in chunks)
    path = tmp_path / 'a.glb'
    path.write_bytes(struct.pack('<4sII', b'glTF', 2, 12 + len(data)) + data)
    with pytest.raises(SceneError, match=r'a\.glb: .*; export the file again'):
        load_meshes(path)


def test_a_glb_that_claims_more_bytes_than_it_has_is_refused(tmp_path):
    path = tmp_path / 'a.glb'
    write_glb(path, encoded_image('png', size=8))
    data = path.read_bytes()
    path.write_bytes(data[:8] + struct.pack('<I', len(data) + 10**6) + data[12:])
    with pytest.raises(SceneError, match=r'a\.glb: .*it claims \d+ bytes and has \d+'):
        load_meshes(path)


def picture(kind, size):
    stream = io.BytesIO()
    Image.new('RGB', size).save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize('suffix', ['glb', 'obj'])
def test_a_texture_that_is_a_program_is_refused(tmp_path, suffix):
    path, content = tmp_path / f'a.{suffix}', picture('EPS', (2, 2))
    if suffix == 'glb':
        write_glb(path, content)
    else:
        (tmp_path / 'wood').write_bytes(content)
        write_obj(path, 'map_Kd wood')
    with pytest.raises(SceneError, match='not an image of a format that is read'):
        load_meshes(path)


def write_obj(path, material, faces='f 1/1 2/1 3/1'):
    path.with_suffix('.mtl').write_text(f'newmtl m\n{material}\n')
    vertices = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\n'
    path.write_text(f'mtllib {path.stem}.mtl\n{vertices}usemtl m\n{faces}\n')


def test_a_program_that_is_called_materials_is_not_run(tmp_path):
    write_obj(tmp_path / 'a.obj', 'map_Kd b.mtl')
    (tmp_path / 'b.mtl').write_bytes(picture('EPS', (2, 2)))
    (mesh,) = load_meshes(tmp_path / 'a.obj')
    assert mesh.material.texture is None


def test_an_obj_reads_nothing_elsewhere(tmp_path):
    folder = tmp_path / 'model'
    folder.mkdir()
    (tmp_path / 'secret.png').write_bytes(picture('PNG', (2, 2)))
    (folder / 'link.png').symlink_to(tmp_path / 'secret.png')
    for name in ('../secret.png', str(tmp_path / 'secret.png'), 'link.png'):
        write_obj(folder / 'a.obj', f'map_Kd {name}')
        with pytest.raises(SceneError, match=r'\.png, which is not near it'):
            load_meshes(folder / 'a.obj')


def test_textures_may_be_links_within_a_download(tmp_path):
    folder = tmp_path / 'snapshots' / '0a1b' / 'model'
    folder.mkdir(parents=True)
    write_obj(folder / 'a.obj', 'map_Kd wood.png')
    (tmp_path / 'blobs').mkdir()
    (tmp_path / 'blobs' / '77').write_bytes(picture('PNG', (2, 2)))
    (folder / 'wood.png').symlink_to('../../../blobs/77')
    (mesh,) = load_meshes(folder / 'a.obj')
    assert mesh.material.texture is not None


@pytest.mark.parametrize('name', ['a\0b', 'x' * 5000, 'loop', '/proc/self/mem', '/dev/zero'])
@pytest.mark.parametrize('suffix', ['', '/scene.json', '.scene_dataset_config.json'])
def test_a_path_that_is_no_scene_is_one_error(tmp_path, name, suffix):
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    with pytest.raises(SceneError, match=r'a\\x00b|x{50}|loop|/proc/self/mem|/dev/zero'):
        load_scene(str(tmp_path / f'{name}{suffix}'))


def test_what_loading_makes_go_wrong_names_the_scene(tmp_path, monkeypatch):
    write_glb(tmp_path / 'a.glb', encoded_image('png', size=8))
    (tmp_path / 'scene.json').write_text(json.dumps({'name': 'x', 'file': 'a.glb', 'nodes': {}}))
    monkeypatch.setattr('osmabench_ros.scenes.folder.read_bytes', lambda *_: {}['room'])
    with pytest.raises(SceneError, match=r'is malformed: KeyError'):
        load_scene(str(tmp_path))


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

MESHES = {
    'faces.obj': 'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 30',
    'faces.ply': PLY.format(vertices=3, faces=1, last=77),
    'many.ply': PLY.format(vertices=6 * 10**8, faces=1, last=2),
    'many_faces.ply': PLY.format(vertices=3, faces=10**15, last=2),
    'many.stl': 'x' * 80 + '\xff' * 4,
    'empty.glb': '',
    'archive.zip': 'PK\x03\x04',
}


@pytest.mark.parametrize('name', MESHES)
def test_a_hostile_mesh_is_one_error(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(MESHES[name].encode('latin-1'))
    with pytest.raises(SceneError, match=path.name):
        load_meshes(path)


@pytest.mark.parametrize(
    'name', ['/etc/passwd', '../a/triangle.glb', 'link.glb', 'a\0b', 'x' * 5000, '', '.']
)
def test_the_mesh_of_a_scene_folder_lies_in_it(tmp_path, name):
    folder = tmp_path / 'scene'
    (tmp_path / 'a').mkdir()
    folder.mkdir()
    write_glb(tmp_path / 'a' / 'triangle.glb', encoded_image('png', size=8))
    (folder / 'link.glb').symlink_to(tmp_path / 'a' / 'triangle.glb')
    manifest = {'name': 'x', 'file': name, 'nodes': {}}
    (folder / 'scene.json').write_text(json.dumps(manifest))
    with pytest.raises(SceneError, match=r'scene'):
        load_scene(str(folder))
