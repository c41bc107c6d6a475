"""Warnings about scenes with another up axis or another unit."""

import dataclasses
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.world.scenes import load_small_house, room_scene

from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.importing import import_scene
from osmabench_ros.scenes.loading import describe_implausible_parts, load_scene
from osmabench_ros.scenes.scene import Mesh
from osmabench_ros.scenes.writing import write_scene_folder

UPRIGHT = np.eye(3)
LYING = Rotation.from_euler('x', 90, degrees=True).as_matrix()


def placed(scene, rotation=UPRIGHT, at=(0.0, 0.0, 0.0), scale=1.0):
    def moved(item):
        meshes = tuple(
            Mesh((m.vertices * scale).astype(np.float32), m.faces, m.normals, m.uv, m.material)
            for m in item.meshes
        )
        pose = Pose(item.pose.rotation, item.pose.translation * scale)
        return dataclasses.replace(
            item, meshes=meshes, pose=Pose(rotation, np.array(at, float)) @ pose
        )

    return dataclasses.replace(scene, objects=tuple(map(moved, scene.objects)))


@pytest.mark.parametrize('load', [partial(load_scene, 'apartment', seed=1), load_small_house])
def test_upright_scenes_are_plausible(load):
    assert list(describe_implausible_parts(load())) == []


@pytest.mark.parametrize(
    ('changes', 'reported'),
    [
        ({'rotation': LYING}, 'only 2% of the 50 m2 of its 1 floors is level'),
        ({'at': (0, 0, 56)}, 'its floor is at z = 56 m; check its origin'),
        ({'scale': 100.0}, 'it is 620 x 420 m and 260 m high; check its unit'),
        ({'scale': 100.0}, 'half of its 2 things are longer than 60 m'),
        ({'scale': 0.01}, 'it ends 0.02'),
    ],
)
def test_what_is_wrong_with_a_room_is_told_with_numbers(changes, reported):
    assert reported in ' '.join(describe_implausible_parts(placed(room_scene(), **changes)))


def test_it_is_warned_of_at_load_and_at_import(tmp_path, write_file):
    high = write_scene_folder(placed(room_scene(), at=(0, 0, 56)), tmp_path / 'high').parent
    with pytest.warns(OsmabenchWarning, match='its floor is at z = 5'):
        load_scene(str(high))
    world = write_file(
        'a.world',
        '<sdf version="1.6"><world name="w"><model name="tower"><link name="l"><visual name="v">'
        '<geometry><box><size>2 3 9</size></box></geometry></visual></link></model></world></sdf>',
    )
    with pytest.warns(OsmabenchWarning, match='2 x 3 m and 9 m high, higher than wide'):
        import_scene(str(world), tmp_path / 'tower')
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        load_scene(str(write_scene_folder(room_scene(), tmp_path / 'room').parent))
