import numpy as np
import pytest
import trimesh

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.finishes import texture

WAVE = np.column_stack([np.linspace(0, 1, 21), 0.05 * np.sin(np.linspace(0, 12, 21))])

SOLIDS = {
    'box': (solids.box((1, 2, 3)), 6.0),
    'fitted box': (solids.box((1, 2, 3), fitted=True), 6.0),
    'cylinder': (solids.cylinder(0.5, 2, segments=64), np.pi / 2),
    'cone': (solids.cylinder(0.5, 2, top=0.0, segments=64), np.pi / 6),
    'frustum': (solids.cylinder(1.0, 1.0, top=0.5, segments=64), np.pi * 1.75 / 3),
    'vessel': (
        solids.lathe([(0, 0), (1, 0), (1, 1), (0.9, 1), (0.9, 0.1), (0, 0.1)], 64),
        np.pi * (1 - 0.81 * 0.9),
    ),
    'ring': (solids.lathe([(0.5, 0), (1, 0), (1, 1), (0.5, 1), (0.5, 0)], 64), np.pi * 0.75),
    'ellipsoid': (solids.ellipsoid((1, 2, 3), 64), np.pi),
    'rod': (solids.rod((0, 0, 0), (1, 2, 2), 0.1, 64), np.pi * 0.03),
}


@pytest.mark.parametrize('name', SOLIDS)
def test_is_closed_with_outward_normals_and_the_right_volume(name):
    solid, volume = SOLIDS[name]
    mesh = trimesh.Trimesh(solid.vertices, solid.faces, process=False)
    outward = solid.normals[solid.faces].mean(axis=1)
    assert ((mesh.face_normals * outward).sum(axis=1) > 0.5).all()
    np.testing.assert_allclose(np.linalg.norm(solid.normals, axis=1), 1.0)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(volume, rel=0.01)


def test_ribbon_is_closed():
    solid = solids.ribbon(WAVE, 1.0, 0.01)
    mesh = trimesh.Trimesh(solid.vertices, solid.faces)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    assert mesh.is_watertight
    length = np.linalg.norm(np.diff(WAVE, axis=0), axis=1).sum()
    assert mesh.volume == pytest.approx(0.01 * length, rel=0.03)


def test_soft_box_is_between_ellipsoid_and_box():
    soft = solids.ellipsoid((1, 1, 1), 48, 0.4)
    volume = trimesh.Trimesh(soft.vertices, soft.faces).volume
    assert np.pi / 6 < volume < 1.0
    np.testing.assert_allclose(np.linalg.norm(soft.normals, axis=1), 1.0)


def test_texture_coordinates_are_metres_along_the_surface():
    solid = solids.box((2, 3, 4))
    corners, uv = solid.vertices[solid.faces], solid.uv_m[solid.faces]
    edges = np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
    np.testing.assert_allclose(np.linalg.norm(uv[:, 1] - uv[:, 0], axis=1), edges)
    fitted = solids.box((2, 3, 4), fitted=True)
    assert fitted.uv_m.min() == 0
    assert fitted.uv_m.max() == 1


def test_moving_rotates_normals_with_the_surface():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    moved = solids.box((1, 2, 3)).moved((5, 0, 0), turn)
    np.testing.assert_allclose(np.ptp(moved.vertices, axis=0), (2, 1, 3))
    np.testing.assert_allclose(moved.vertices.mean(axis=0), (5, 0, 0), atol=1e-12)
    mesh = trimesh.Trimesh(moved.vertices, moved.faces, process=False)
    np.testing.assert_allclose(mesh.face_normals, moved.normals[moved.faces[:, 0]], atol=1e-12)


@pytest.mark.parametrize('name', ['wood', 'tiles', 'fabric', 'marble', 'rug2', 'picture3'])
def test_texture_is_a_function_of_its_name(name):
    image = texture(name)
    assert image.dtype == np.uint8
    assert image.shape == (256, 256, 3)
    assert not image.flags.writeable
    texture.cache_clear()
    np.testing.assert_array_equal(image, texture(name))


@pytest.mark.parametrize('name', ['wood', 'fabric', 'marble', 'plaster'])
def test_texture_repeats_without_a_seam(name):
    image = texture(name).astype(float)
    inside = np.abs(np.diff(image, axis=1)).mean()
    seam = np.abs(image[:, 0] - image[:, -1]).mean()
    assert seam < 2.5 * inside + 2
