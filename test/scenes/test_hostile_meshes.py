"""Mesh files that claim what they do not hold, or name what is elsewhere, are one error."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from scenes.gltf_files import encoded_image, write_glb, write_gltf

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.errors import LimitError, OsmabenchError, SceneError
from osmabench_ros.scenes.assets import load_meshes, load_nodes
from osmabench_ros.scenes.loading import load_scene

PNG = base64.b64encode(encoded_image('png', size=8)).decode()
URI = f'data:image/png;base64,{PNG}'

Change = Callable[[dict[str, Any]], Any]


def put(*path: Any) -> Change:
    """Return a change that puts the last item at the place the others name."""
    *keys, last, value = path

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for key in keys:
            place = place[key]
        place[last] = value

    return change


def chain(document: dict[str, Any], count: int) -> None:
    document['nodes'] = [{'children': [index + 1]} for index in range(count)] + [{'mesh': 0}]
    document['scenes'] = [{'nodes': [0]}]


def repeat(key: str, item: dict[str, Any], count: int) -> Change:
    def change(document: dict[str, Any]) -> None:
        document[key] = [*document.get(key, []), *[item] * count]

    return change


PRIMITIVE = ('meshes', 0, 'primitives', 0)
CHANGES: dict[str, tuple[Change, type[OsmabenchError], str]] = {
    '600 million points': (put('accessors', 0, 'count', 600_000_000), SceneError, '600000000 el'),
    '600 million zeros': (
        repeat('accessors', {'componentType': 5126, 'type': 'VEC3', 'count': 600_000_000}, 1),
        LimitError, 'claims to hold 72000',
    ),
    'stride that repeats': (
        put('bufferViews', 0, 'byteStride', 1), LimitError, 'bytes of geometry',
    ),
    'negative count': (put('accessors', 0, 'count', -1), SceneError, r'accessors\[0\].count'),
    'count is text': (put('accessors', 0, 'count', '3'), SceneError, r'accessors\[0\].count'),
    'count is true': (put('accessors', 0, 'count', True), SceneError, r'accessors\[0\].count'),
    'no count': (lambda d: d['accessors'][0].pop('count'), SceneError, 'None, not a whole'),
    'negative offset': (put('accessors', 0, 'byteOffset', -4), SceneError, 'byteOffset is -4'),
    'offset beyond': (put('accessors', 0, 'byteOffset', 4), SceneError, 'more than its view'),
    'component 9': (put('accessors', 0, 'componentType', 9), SceneError, 'no known component'),
    'type is a list': (put('accessors', 0, 'type', []), SceneError, 'no known component|hash'),
    'view 9': (put('accessors', 0, 'bufferView', 9), SceneError, 'bufferView is 9, but there are'),
    'view -1': (put('accessors', 0, 'bufferView', -1), SceneError, 'bufferView is -1'),
    'view beyond': (put('bufferViews', 0, 'byteLength', 10**9), SceneError, 'mesh|buffer'),
    'view before': (put('bufferViews', 0, 'byteOffset', -36), SceneError, 'byteOffset is -36'),
    'buffer 1': (put('bufferViews', 0, 'buffer', 1), SceneError, 'buffer is 1, but there are 1'),
    'mesh -1': (put('nodes', 0, 'mesh', -1), SceneError, r'nodes\[0\].mesh is -1'),
    'mesh 5': (put('nodes', 0, 'mesh', 5), SceneError, r'nodes\[0\].mesh is 5'),
    'child 7': (put('nodes', 0, 'children', [7]), SceneError, 'children is 7'),
    'child is a list': (put('nodes', 0, 'children', [[0]]), SceneError, 'children is'),
    'child of itself': (put('nodes', 0, 'children', [0]), SceneError, 'is its own ancestor'),
    'cycle': (
        lambda d: d['nodes'].extend([{'children': [2]}, {'children': [1]}]),
        SceneError, 'is its own ancestor',
    ),
    'two parents': (
        lambda d: d['nodes'].extend([{'children': [0]}, {'children': [0]}]),
        SceneError, 'nodes must form trees',
    ),
    'a chain of 20,000': (lambda d: chain(d, 20_000), LimitError, 'nested deeper than 64'),
    'scene 3': (put('scene', 3), SceneError, 'scene is 3'),
    'scene node -1': (put('scenes', 0, 'nodes', [-1]), SceneError, 'nodes is -1'),
    'material 4': (put(*PRIMITIVE, 'material', 4), SceneError, 'material is 4'),
    'texture -1': (
        put('materials', 0, 'pbrMetallicRoughness', 'baseColorTexture', 'index', -1),
        SceneError, 'baseColorTexture.index is -1',
    ),
    'image 2': (put('textures', 0, 'source', 2), SceneError, 'source is 2'),
    'position -1': (put(*PRIMITIVE, 'attributes', 'POSITION', -1), SceneError, 'is -1'),
    'indices 99': (put(*PRIMITIVE, 'indices', 99), SceneError, 'is 99, but there are 3 acc'),
    'attributes are text': (put(*PRIMITIVE, 'attributes', 'POSITION'), SceneError, 'no object'),
    'primitives are text': (put('meshes', 0, 'primitives', 'a'), SceneError, 'list of objects'),
    'nodes are numbers': (put('nodes', [1]), SceneError, '"nodes" of the file is no list'),
    'nodes are an object': (put('nodes', {}), SceneError, '"nodes" of the file is no list'),
    'skin 0': (put('nodes', 0, 'skin', 0), SceneError, 'skin is 0, but there are 0 skins'),
    'buffer elsewhere': (put('buffers', 0, 'uri', '/etc/passwd'), SceneError, 'passwd'),
    'buffer above': (put('buffers', 0, 'uri', '../../../etc/passwd'), SceneError, 'passwd'),
    'buffer on the net': (put('buffers', 0, 'uri', 'http://127.0.0.1:9/x'), SceneError, 'http'),
    'buffer of the system': (put('buffers', 0, 'uri', 'file:///proc/self/mem'), SceneError, 'mem'),
    'image elsewhere': (put('images', 0, 'uri', '/etc/passwd'), SceneError, '/etc/passwd'),
    'image with NUL': (put('images', 0, 'uri', 'a%00b.png'), SceneError, 'near it'),
    'image of 5,000 characters': (put('images', 0, 'uri', 'a' * 5000), SceneError, 'near it'),
    'key twice': (lambda d: None, SceneError, 'is there twice'),
}  # fmt: skip


@pytest.mark.parametrize('name', CHANGES)
def test_a_hostile_gltf_is_one_error(tmp_path: Path, name: str) -> None:
    change, error, expected = CHANGES[name]
    path = tmp_path / 'a' / 'triangle.gltf'
    path.parent.mkdir()
    write_gltf(path, URI)
    document = json.loads(path.read_text())
    change(document)
    if name == 'stride that repeats':
        document['accessors'][0]['count'] = 30_000_000
        document['bufferViews'][0]['byteLength'] = 30_000_012
    text = json.dumps(document)
    path.write_text(text if name != 'key twice' else text.replace('{', '{"asset": 1, ', 1))
    with pytest.raises(error, match=expected) as caught:
        load_meshes(path)
    assert 'triangle.gltf' in str(caught.value)
    assert '\n' not in str(caught.value)


def test_a_mesh_that_is_placed_too_often_passes_a_limit(tmp_path: Path) -> None:
    path = tmp_path / 'triangle.gltf'
    write_gltf(path, URI)
    document = json.loads(path.read_text())
    document['nodes'] *= 1000
    document['scenes'][0]['nodes'] = list(range(1000))
    path.write_text(json.dumps(document))
    limits = Allowance(memory_mib=0.1, memory_ratio=1)
    with limited_to(limits), pytest.raises(LimitError, match=r'triangle\.gltf.*memory_mib'):
        load_meshes(path)


@pytest.mark.parametrize(
    ('chunks', 'expected'),
    [
        ([], 'one part with JSON'),
        ([(b'BIN\0', b'')], 'one part with JSON'),
        ([(b'JSON', b'{}'), (b'JSON', b'{}')], 'one part with JSON'),
        ([(b'JSON', b'{}'), (b'BIN\0', b''), (b'BIN\0', b'')], 'one part with JSON'),
        ([(b'JSON', b'[]')], 'no JSON object'),
        ([(b'JSON', b'[' * 100_000)], 'nested deeper'),
    ],
)
def test_a_glb_of_other_parts_is_refused(
    tmp_path: Path, chunks: list[tuple[bytes, bytes]], expected: str
) -> None:
    data = b''.join(struct.pack('<I4s', len(part), kind) + part for kind, part in chunks)
    path = tmp_path / 'a.glb'
    path.write_bytes(struct.pack('<4sII', b'glTF', 2, 12 + len(data)) + data)
    with pytest.raises(OsmabenchError, match=expected):
        load_meshes(path)


def picture(kind: str, size: tuple[int, int]) -> bytes:
    stream = io.BytesIO()
    Image.new('RGB', size).save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize('suffix', ['glb', 'obj'])
@pytest.mark.parametrize(
    ('content', 'error', 'expected'),
    [
        (picture('PNG', (2000, 2000)), LimitError, '2000 x 2000 pixels'),
        (picture('EPS', (2, 2)), SceneError, 'no image of a format that is read'),
        (picture('PCX', (2, 2)), SceneError, 'no image of a format that is read'),
    ],
)
def test_a_texture_that_is_a_bomb_or_a_program_is_refused(
    tmp_path: Path, suffix: str, content: bytes, error: type[OsmabenchError], expected: str
) -> None:
    path = tmp_path / f'a.{suffix}'
    if suffix == 'glb':
        write_glb(path, content)
    else:
        (tmp_path / 'wood').write_bytes(content)
        write_obj(path, 'map_Kd wood')
    with limited_to(Allowance(memory_mib=4, memory_ratio=1)), pytest.raises(error, match=expected):
        load_meshes(path)


def write_obj(path: Path, material: str, faces: str = 'f 1/1 2/1 3/1') -> None:
    path.with_suffix('.mtl').write_text(f'newmtl m\n{material}\n')
    vertices = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\n'
    path.write_text(f'mtllib {path.stem}.mtl\n{vertices}usemtl m\n{faces}\n')


def test_materials_that_are_a_picture_are_refused(tmp_path: Path) -> None:
    write_obj(tmp_path / 'a.obj', 'map_Kd b.mtl')
    (tmp_path / 'b.mtl').write_bytes(picture('EPS', (2, 2)))
    with pytest.raises(SceneError, match=r'a\.obj: texture "b\.mtl"'):
        load_meshes(tmp_path / 'a.obj')


def test_an_obj_reads_nothing_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / 'model'
    folder.mkdir()
    (tmp_path / 'secret.png').write_bytes(picture('PNG', (2, 2)))
    (folder / 'link.png').symlink_to(tmp_path / 'secret.png')
    for name in ('../secret.png', str(tmp_path / 'secret.png'), 'link.png'):
        write_obj(folder / 'a.obj', f'map_Kd {name}')
        with pytest.raises(SceneError, match=r'\.png, which is not near it'):
            load_meshes(folder / 'a.obj')


def test_textures_may_be_links_within_a_download(tmp_path: Path) -> None:
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
def test_a_path_that_is_no_scene_is_one_error(tmp_path: Path, name: str, suffix: str) -> None:
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    with pytest.raises(SceneError, match=r'a\\x00b|x{50}|loop|/proc/self/mem|/dev/zero'):
        load_scene(str(tmp_path / f'{name}{suffix}'))


def test_what_loading_makes_go_wrong_names_the_scene(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    'flat.obj': 'v 0 0\nv 1 0\nv 0 1\nf 1 2 3',
    'before.obj': 'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 -30',
    'faces.ply': PLY.format(vertices=3, faces=1, last=77),
    'before.ply': PLY.format(vertices=3, faces=1, last=-2),
    'many.ply': PLY.format(vertices=6 * 10**8, faces=1, last=2),
    'many_faces.ply': PLY.format(vertices=3, faces=10**15, last=2),
    'faces.off': 'OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 9\n',
    'many.stl': 'x' * 80 + '\xff' * 4,
    'text.stl': 'solid a\nfacet',
    'empty.obj': '',
    'empty.glb': '',
    'archive.zip': 'PK\x03\x04',
    'no_suffix': 'v 0 0 0',
}


@pytest.mark.parametrize('name', MESHES)
def test_a_hostile_mesh_is_one_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(MESHES[name].encode('latin-1'))
    with pytest.raises(SceneError, match=path.name):
        load_meshes(path)


def test_a_mesh_that_fills_the_memory_passes_a_limit(tmp_path: Path) -> None:
    path = tmp_path / 'triangle.gltf'
    write_gltf(path, URI)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('trimesh.load', lambda *_, **__: bytearray(2**62))
        with pytest.raises(LimitError, match=r'triangle\.gltf: takes too much memory'):
            load_nodes(path)


@pytest.mark.parametrize(
    'name', ['/etc/passwd', '../a/triangle.glb', 'link.glb', 'a\0b', 'x' * 5000, '', '.']
)
def test_the_mesh_of_a_scene_folder_lies_in_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / 'scene'
    (tmp_path / 'a').mkdir()
    folder.mkdir()
    write_glb(tmp_path / 'a' / 'triangle.glb', encoded_image('png', size=8))
    (folder / 'link.glb').symlink_to(tmp_path / 'a' / 'triangle.glb')
    manifest = {'name': 'x', 'file': name, 'nodes': {}}
    (folder / 'scene.json').write_text(json.dumps(manifest))
    with pytest.raises(SceneError, match=r'scene'):
        load_scene(str(folder))
