"""One mesh file as a scene: a node each an object, its class guessed from its name."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.importing import import_scene, load_mesh_scene
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.worlds.parts import WorldOptions


def write_lab(path: Path) -> Path:
    lab = trimesh.Scene()
    for name, size, place in (
        ('Floor', (6, 0.1, 5), (0, -0.05, 0)),
        ('Chair.001', (0.5, 0.9, 0.4), (1, 0.45, 2)),
        ('OfficeChair.002', (0.5, 0.9, 0.4), (-1, 0.45, 2)),
        ('Wall', (6, 2.6, 0.1), (0, 1.3, -2.45)),
    ):
        at = trimesh.transformations.translation_matrix(place)
        lab.add_geometry(trimesh.creation.box(size), node_name=name, transform=at)
    lab.export(path)
    return path


def test_every_node_is_an_object_with_a_guessed_class(tmp_path: Path) -> None:
    scene = load_mesh_scene(write_lab(tmp_path / 'lab.glb'))
    assert {item.name: scene.class_name(item) for item in scene.objects} == {
        'Floor': 'floor',
        'Chair.001': 'chair',
        'OfficeChair.002': 'office chair',
        'Wall': 'wall',
    }
    chair = next(item for item in scene.objects if item.name == 'Chair.001')
    # y is up in glTF, z here: (x, y, z) becomes (x, -z, y).
    np.testing.assert_allclose(chair.box.minimum, [0.75, -2.2, 0.0], atol=1e-6)
    np.testing.assert_allclose(chair.box.maximum, [1.25, -1.8, 0.9], atol=1e-6)


def test_a_lamp_hangs_below_the_highest_point(tmp_path: Path) -> None:
    (lamp,) = load_mesh_scene(write_lab(tmp_path / 'lab.glb')).lights
    assert lamp.lamp
    np.testing.assert_allclose(lamp.position, [0.0, 0.0, 2.3], atol=1e-6)


def test_the_folder_that_is_written_is_the_same_scene(tmp_path: Path) -> None:
    options = WorldOptions(known_classes=('chair',))
    source = str(write_lab(tmp_path / 'lab.glb'))
    imported = import_scene(source, tmp_path / 'lab', world=options)
    loaded = load_scene(str(tmp_path / 'lab'))
    for scene in (imported, loaded):
        assert sorted(map(scene.class_name, scene.objects)) == ['chair', 'chair', 'floor', 'wall']
    for before, after in zip(imported.objects, loaded.objects, strict=True):
        np.testing.assert_allclose(before.box.minimum, after.box.minimum, atol=1e-5)
        np.testing.assert_allclose(before.box.maximum, after.box.maximum, atol=1e-5)


def test_options_of_gazebo_are_refused(tmp_path: Path) -> None:
    options = WorldOptions(models=(tmp_path,))
    with pytest.raises(SceneError, match='is no Gazebo world; --models'):
        import_scene(str(write_lab(tmp_path / 'lab.glb')), tmp_path / 'out', world=options)
    assert not (tmp_path / 'out').exists()


def test_a_file_without_triangles_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'empty.obj').write_text('o nothing\n')
    with pytest.raises(SceneError, match=r'empty\.obj'):
        load_mesh_scene(tmp_path / 'empty.obj')
