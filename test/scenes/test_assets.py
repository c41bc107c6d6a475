from dataclasses import replace

import numpy as np
import pytest
import trimesh
from PIL import Image
from support.gltf_files import TRIANGLE, encoded_image, write_glb, write_gltf
from support.libraries import needs

from osmabench_ros.errors import OsmabenchWarning, SceneError
from osmabench_ros.scenes.assets import convert_meshes, crease_mesh, load_meshes, select_faces


def test_texture_beside_the_file_is_read(tmp_path):
    path = tmp_path / 'triangle.gltf'
    Image.new('RGBA', (4, 2), (10, 20, 30, 40)).save(tmp_path / 'here.png')
    write_gltf(path, 'here.png')
    (mesh,) = load_meshes(path)
    assert mesh.material.texture.shape == (2, 4, 3)
    assert tuple(mesh.material.texture[0, 0]) == (10, 20, 30)
    # glTF counts v from the top row, as a Material does.
    np.testing.assert_allclose(mesh.uv, [[0, 0], [1, 0], [0, 1]], atol=1e-6)


@pytest.mark.parametrize(
    'suffix', ['ply', 'stl', 'obj', 'glb', 'off', pytest.param('dae', marks=needs('collada'))]
)
def test_formats(tmp_path, suffix):
    path = tmp_path / f'box.{suffix}'
    trimesh.creation.box((1, 2, 3)).export(path)
    meshes = load_meshes(path)
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    np.testing.assert_allclose(np.sort(np.ptp(vertices, axis=0)), (1, 2, 3), atol=1e-6)
    assert sum(len(mesh.faces) for mesh in meshes) == 12


def test_vertex_colours_become_materials(tmp_path):
    red, blue = trimesh.creation.box((1, 1, 1)), trimesh.creation.box((1, 1, 1))
    blue.apply_translation((3, 0, 0))
    red.visual.vertex_colors = [200, 10, 10, 255]
    blue.visual.vertex_colors = [10, 10, 200, 255]
    path = tmp_path / 'boxes.ply'
    trimesh.util.concatenate([red, blue]).export(path)
    meshes = {mesh.material.base_color: mesh for mesh in load_meshes(path)}
    assert len(meshes) == 2
    for color, mesh in meshes.items():
        assert len(mesh.faces) == 12
        assert (mesh.vertices[:, 0].mean() > 1) == (color[2] > 0.5)


@pytest.mark.parametrize('given', [{}, {'metallicFactor': 0.25, 'roughnessFactor': 0.5}])
def test_gloss_of_gltf_is_read_and_is_full_where_nothing_is_said(tmp_path, given):
    image = np.zeros((2, 4, 3), np.uint8)
    image[:, 2:] = (0, 100, 200)
    box = trimesh.creation.box((1, 1, 1))
    material = trimesh.visual.material.PBRMaterial(
        metallicRoughnessTexture=Image.fromarray(image), **given
    )
    uv = np.zeros((len(box.vertices), 2))
    box.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    box.export(tmp_path / 'box.glb')
    (mesh,) = load_meshes(tmp_path / 'box.glb')
    found = mesh.material
    assert (found.metallic, found.roughness) == (tuple(given.values()) or (1.0, 1.0))
    np.testing.assert_array_equal(found.surface, image)


def test_wavefront_material(tmp_path):
    (tmp_path / 'm.mtl').write_text('newmtl green\nKd 0.2 0.6 0.1\n')
    (tmp_path / 'm.obj').write_text(
        'mtllib m.mtl\nusemtl green\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\n'
        'f 1/1 2/2 3/3\n'
    )
    (mesh,) = load_meshes(tmp_path / 'm.obj')
    np.testing.assert_allclose(mesh.material.base_color, (0.2, 0.6, 0.1), atol=0.005)
    assert mesh.material.texture is None


def test_node_transformations_are_applied(tmp_path):
    scene = trimesh.Scene()
    turn = trimesh.transformations.rotation_matrix(np.pi / 2, (0, 0, 1), (0, 0, 0))
    turn[:3, 3] = (10, 0, 0)
    scene.add_geometry(trimesh.creation.box((1, 2, 3)), transform=turn)
    scene.export(tmp_path / 'turned.glb')
    (mesh,) = load_meshes(tmp_path / 'turned.glb')
    np.testing.assert_allclose(mesh.vertices.min(axis=0), (9, -0.5, -1.5), atol=1e-6)


def test_no_triangles_and_not_finite(tmp_path):
    trimesh.PointCloud(np.zeros((5, 3))).export(tmp_path / 'points.ply')
    with pytest.raises(SceneError, match=r'points\.ply has no triangles'):
        load_meshes(tmp_path / 'points.ply')
    box = trimesh.creation.box()
    box.vertices[0, 0] = np.nan
    box.export(tmp_path / 'nan.ply')
    with pytest.raises(SceneError, match=r'nan\.ply.*NaN'):
        load_meshes(tmp_path / 'nan.ply')


def test_submesh_keeps_what_its_faces_use(tmp_path):
    trimesh.creation.box((1, 1, 1)).export(tmp_path / 'box.ply')
    (mesh,) = load_meshes(tmp_path / 'box.ply')
    part = select_faces(mesh, np.arange(12) < 2)
    assert part.faces.shape == (2, 3)
    assert part.faces.max() == len(part.vertices) - 1
    np.testing.assert_array_equal(part.vertices[part.faces], mesh.vertices[mesh.faces[:2]])


def test_it_is_known_whether_a_file_gave_normals(tmp_path):
    box = trimesh.creation.box((1, 2, 3))
    for named in (True, False):
        path = tmp_path / f'{named}.glb'
        trimesh.Scene(box.copy()).export(path, include_normals=named)
        assert [mesh.has_normals for mesh in load_meshes(path)] == [named]
    write_glb(tmp_path / 'triangle.glb', encoded_image('png'))
    (mesh,) = load_meshes(tmp_path / 'triangle.glb')
    assert not mesh.has_normals
    np.testing.assert_allclose(mesh.normals, [[0, 0, 1]] * 3, atol=1e-6)


def test_a_box_without_normals_keeps_its_edges_and_a_cylinder_is_round():
    box = convert_meshes(trimesh.creation.box((1, 2, 3)), True)[0]
    found = crease_mesh(replace(box, has_normals=False))
    corners = found.vertices[found.faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    np.testing.assert_allclose(found.normals[found.faces], flat[:, None].repeat(3, 1), atol=1e-6)
    assert (len(found.vertices), found.has_normals) == (24, True)
    tube = convert_meshes(trimesh.creation.cylinder(1.0, 2.0, sections=64), True)[0]
    found = crease_mesh(replace(tube, has_normals=False))
    side = np.abs(found.normals[:, 2]) < 0.5
    radial = found.vertices[side, :2] / np.linalg.norm(found.vertices[side, :2], axis=1)[:, None]
    np.testing.assert_allclose(found.normals[side, :2], radial, atol=0.06)
    assert set(np.unique(np.abs(found.normals[~side, 2]).round(4))) == {1.0}


def test_a_wrong_type_of_an_image_does_no_harm_unless_it_claims_another_format(tmp_path):
    path, png, jpeg = tmp_path / 'x.glb', encoded_image('png'), encoded_image('jpeg')
    write_glb(path, png, mimeType='image/ktx2', name='wood')
    with pytest.raises(SceneError, match=r'x\.glb: texture "wood".* its type is image/ktx2, but'):
        load_meshes(path)
    # Many exporters mistake one for the other, and everybody shows the image all the same.
    for content, wrong in ((png, 'image/jpeg'), (jpeg, 'image/png')):
        write_glb(path, content, mimeType=wrong)
        texture = load_meshes(path)[0].material.texture
        np.testing.assert_allclose(texture.mean(axis=(0, 1)), (14, 24, 34), atol=1)


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
