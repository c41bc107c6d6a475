"""One mesh file as a scene: a node each an object, its class guessed from its name."""

import numpy as np
import pytest
import trimesh
from support.world.scenes import assert_box, assert_same_scene

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.changes import find_parts_of_assemblies
from osmabench_ros.scenes.importing import import_scene, load_mesh_scene
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.worlds.parts import WorldOptions


def write_lab(path):
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


def test_every_node_is_an_object_with_a_guessed_class(tmp_path):
    scene = load_mesh_scene(write_lab(tmp_path / 'lab.glb'))
    assert {item.name: scene.class_name(item) for item in scene.objects} == {
        'Floor': 'floor',
        'Chair.001': 'chair',
        'OfficeChair.002': 'office chair',
        'Wall': 'wall',
    }
    chair = next(item for item in scene.objects if item.name == 'Chair.001')
    # y is up in glTF, z here: (x, y, z) becomes (x, -z, y).
    assert_box(chair, [0.75, -2.2, 0.0], [1.25, -1.8, 0.9])


def test_nodes_of_one_parent_are_one_object_if_asked(tmp_path):
    table = trimesh.Scene()
    table.graph.update(frame_to='DiningTable', frame_from='world', matrix=np.eye(4))
    for name, place in (('Top', (0, 0.5, 0)), ('Leg.001', (0.4, 0, 0)), ('Leg.002', (-0.4, 0, 0))):
        at = trimesh.transformations.translation_matrix(place)
        box = trimesh.creation.box((1, 0.1, 1) if name == 'Top' else (0.1, 0.9, 0.1))
        table.add_geometry(box, node_name=name, parent_node_name='DiningTable', transform=at)
    at = trimesh.transformations.translation_matrix((0, 0.7, 0))
    table.add_geometry(trimesh.creation.box((0.2, 0.3, 0.2)), node_name='Lamp.Desk', transform=at)
    path = tmp_path / 'table.glb'
    table.export(path)
    by_node = load_mesh_scene(path)
    assert len(by_node.objects) == 4
    assert set(find_parts_of_assemblies(by_node)) == {'DiningTable'}
    grouped = load_mesh_scene(path, WorldOptions(group_by_parent=True))
    names = {item.name: grouped.class_name(item) for item in grouped.objects}
    assert names == {'DiningTable': 'dining table', 'Lamp.Desk': 'desk lamp'}
    assert find_parts_of_assemblies(grouped) == {}
    with pytest.raises(SceneError, match='--group-by is for'):
        import_scene('x.world', tmp_path / 'out', world=WorldOptions(group_by_parent=True))


def test_a_lamp_hangs_below_the_highest_point(tmp_path):
    (lamp,) = load_mesh_scene(write_lab(tmp_path / 'lab.glb')).lights
    assert lamp.lamp
    np.testing.assert_allclose(lamp.position, [0.0, 0.0, 2.3], atol=1e-6)


def test_the_folder_that_is_written_is_the_same_scene(tmp_path):
    options = WorldOptions(known_classes=('chair',))
    source = str(write_lab(tmp_path / 'lab.glb'))
    imported = import_scene(source, tmp_path / 'lab', world=options)
    loaded = load_scene(str(tmp_path / 'lab'))
    for scene in (imported, loaded):
        assert sorted(map(scene.class_name, scene.objects)) == ['chair', 'chair', 'floor', 'wall']
    assert_same_scene(loaded, imported)


def test_options_of_gazebo_are_refused(tmp_path):
    options = WorldOptions(models=(tmp_path,))
    with pytest.raises(SceneError, match='is not a Gazebo world; --models'):
        import_scene(str(write_lab(tmp_path / 'lab.glb')), tmp_path / 'out', world=options)
    assert not (tmp_path / 'out').exists()


def test_a_file_without_triangles_is_refused(tmp_path):
    (tmp_path / 'empty.obj').write_text('o nothing\n')
    with pytest.raises(SceneError, match=r'empty\.obj'):
        load_mesh_scene(tmp_path / 'empty.obj')
