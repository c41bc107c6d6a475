"""Scenes with surfaces at known places."""

import json
import math
import shutil
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, Material, Mesh, Scene, SceneObject
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.semantics.labels import COLOR_EXAMPLES, LabelSet
from osmabench_ros.sequences.ground_truth import build_ground_truth
from support import TESTS

LABELS = LabelSet.from_names('test', ['ball', 'box', 'floor', 'wall'], structure=['floor', 'wall'])
DOORS = LabelSet.from_names('doors', ['box', 'door'], structure=['floor', 'wall'])

CAMERA = Intrinsics.from_hfov(160, 120, 1.4)

FURNISHED = (
    ('floor', 'brown', (-4, -3, -0.1), (4, 3, 0)),
    ('wall', 'white', (4, -3, 0), (4.1, 3, 2.5)),
    ('wall', 'white', (-4.1, -3, 0), (-4, 3, 2.5)),
    ('wall', 'white', (-4, 3, 0), (4, 3.1, 2.5)),
    ('wall', 'white', (-4, -3.1, 0), (4, -3, 2.5)),
    ('bed', 'blue', (2.4, -0.7, 0), (3.9, 0.7, 0.5)),
    ('sofa', 'red', (-3.9, -0.9, 0), (-3.1, 0.9, 0.8)),
    ('desk', 'brown', (-0.6, 2.2, 0), (0.6, 2.9, 0.75)),
    ('shelf', 'white', (-0.4, -2.9, 0), (0.4, -2.5, 1.2)),
    ('chair', 'green', (0.8, 1.0, 0), (1.2, 1.4, 0.8)),
    ('stool', 'yellow', (-1.6, -1.4, 0), (-1.25, -1.05, 0.45)),
    ('plant', 'green', (-2.4, 1.6, 0), (-2.1, 1.9, 0.7)),
    ('vase', 'purple', (0.2, 2.4, 0.75), (0.35, 2.55, 1.0)),
    ('lamp', 'black', (2.0, 2.0, 0), (2.2, 2.2, 1.2)),
    ('box', 'orange', (1.9, -2.2, 0), (2.2, -1.9, 0.3)),
)
FURNISHED_LABELS = LabelSet.from_names(
    'furnished', {label for label, *_ in FURNISHED}, structure=['floor', 'wall']
)


def assert_box(item, low, high, atol=1e-5):
    np.testing.assert_allclose([item.box.minimum, item.box.maximum], [low, high], atol=atol)


def assert_same_scene(after, before):
    """Hold what was written and read against what it was before."""
    assert after.label_set.classes == before.label_set.classes
    assert (after.lights, after.ambient) == (before.lights, before.ambient)
    for room, found in zip(before.rooms, after.rooms, strict=True):
        assert (found.id, found.name, found.label) == (room.id, room.name, room.label)
        assert_box(found, room.box.minimum, room.box.maximum, 1e-9)
    for item, found in zip(before.objects, after.objects, strict=True):
        for name in ('instance_id', 'class_id', 'room_id', 'attributes'):
            assert getattr(found, name) == getattr(item, name)
        assert_box(found, item.box.minimum, item.box.maximum)
        assert len(found.world_faces) == len(item.world_faces)


def box_mesh(size, material=None):
    """Return a box about the origin with the whole texture on each face, upright on the sides."""
    vertices, normals, uv, faces = [], [], [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            normal = np.eye(3)[axis] * sign
            up = np.eye(3)[1 if axis == 2 else 2]
            right = np.cross(up, normal)
            start = len(vertices)
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                vertices.append((normal + a * right + b * up) / 2 * size)
                normals.append(normal)
                uv.append(((a + 1) / 2, (1 - b) / 2))
            faces += [(start, start + 1, start + 2), (start, start + 2, start + 3)]
    return Mesh(
        np.array(vertices, np.float32),
        np.array(faces, np.int32),
        np.array(normals, np.float32),
        np.array(uv, np.float32),
        material or Material(),
    )


def box_object(
    instance_id, label, minimum, maximum, material=None, label_set=LABELS, **attributes
):
    """Return an object that is a box between two corners in the world."""
    low, high = np.array(minimum, float), np.array(maximum, float)
    pose = Pose(np.eye(3), (low + high) / 2)
    mesh = box_mesh((high - low).tolist(), material)
    name, class_id = f'{label}_{instance_id}', label_set.id_of(label)
    return SceneObject(instance_id, name, class_id, (mesh,), pose, attributes)


_CEILING = Light('ceiling', position=(0.0, 0.0, 2.3), intensity=3.0)


def room_scene(lights=(_CEILING,), extra=(), wall=None):
    """Return a room of 6 m x 4 m x 2.5 m about the origin with a table and a box on it.

    The inner faces of the walls are at x = -3 and 3, y = -2 and 2; the floor is at z = 0.
    """
    objects = (
        box_object(1, 'floor', (-3, -2, -0.1), (3, 2, 0), Material((0.6, 0.5, 0.4))),
        box_object(2, 'wall', (3, -2.1, 0), (3.1, 2.1, 2.5), wall),
        box_object(3, 'wall', (-3.1, -2.1, 0), (-3, 2.1, 2.5)),
        box_object(4, 'wall', (-3, 2, 0), (3, 2.1, 2.5)),
        box_object(5, 'wall', (-3, -2.1, 0), (3, -2, 2.5)),
        box_object(6, 'box', (0.6, -0.5, 0.0), (1.4, 0.5, 0.7), Material((0.3, 0.5, 0.8))),
        box_object(7, 'box', (0.9, -0.1, 0.7), (1.1, 0.1, 0.9), Material((0.9, 0.2, 0.2))),
        *extra,
    )
    return Scene('test', 'room', LABELS, objects, lights=lights, ambient=0.1)


def camera_at(x, y, z, yaw_rad=0.0):
    """Return the optical pose of a level camera that looks along the heading."""
    return Pose.from_yaw(yaw_rad, (x, y, z)) @ OPTICAL_IN_LINK


def render_in(simulator, lighting, pose):
    """Render a view in a light."""
    simulator.set_lighting(lighting)
    return simulator.render(pose)


# Height and length in plan of the ramp of `ramp_house`, which begins at x = 1.
STOREY_M, RAMP_RUN_M = 2.8, 8.0


def ramp_house():
    """Return two floors of 10 m x 6 m, z = 0 and STOREY_M, and a ramp where y > 4.7.

    The ramp rises from x = 1 to x = 9; the upper floor is open above it, and a wall on each floor
    is in the way.
    """
    ramp = Mesh(
        np.array([(1, 4.7, 0), (9, 4.7, STOREY_M), (9, 6, STOREY_M), (1, 6, 0)], np.float32),
        np.array([(0, 1, 2), (0, 2, 3)], np.int32),
        np.tile(
            np.array([-STOREY_M, 0, RAMP_RUN_M]) / np.hypot(STOREY_M, RAMP_RUN_M), (4, 1)
        ).astype(np.float32),
        np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32),
    )
    low, high = STOREY_M - 0.1, STOREY_M
    objects = (
        box_object(1, 'floor', (0, 0, -0.1), (10, 6, 0)),
        box_object(2, 'floor', (0, 0, low), (10, 4.7, high)),
        box_object(3, 'floor', (9, 4.7, low), (10, 6, high)),
        SceneObject(4, 'ramp', LABELS.id_of('floor'), (ramp,)),
        box_object(5, 'wall', (4, 1.5, 0), (4.1, 4.7, low)),
        box_object(6, 'wall', (6, 0, high), (6.1, 3.0, high + 2.5)),
        box_object(7, 'floor', (0, 0, high + 2.5), (10, 6, high + 2.6)),
    )
    return Scene('test', 'ramp_house', LABELS, objects, lights=())


def stair_house(count=16, run_m=RAMP_RUN_M / 16):
    """Return `ramp_house` with so many steps in place of its ramp."""
    house, rise_m, end = ramp_house(), STOREY_M / count, 1 + count * run_m
    steps = [
        box_object(
            10 + i, 'floor', (1 + i * run_m, 4.7, 0), (1 + (i + 1) * run_m, 6, (i + 1) * rise_m)
        )
        for i in range(count)
    ]
    landing = box_object(3, 'floor', (end, 4.7, STOREY_M - 0.1), (10, 6, STOREY_M))
    rest = [item for item in house.objects if item.name not in ('ramp', 'floor_3')]
    return replace(house, name='stair_house', objects=(*rest, landing, *steps))


def colored_box(number, label, color, low, high):
    """Return an object of the furnished room, with its colour as an attribute."""
    red, green, blue = (value / 255 for value in COLOR_EXAMPLES[color])
    return box_object(
        number, label, low, high, Material((red, green, blue)), FURNISHED_LABELS, color=color
    )


def furnished_room():
    """Return a room of 8 m x 6 m: bed at +x, desk at +y, sofa at -x, shelf at -y."""
    objects = tuple(colored_box(number, *box) for number, box in enumerate(FURNISHED, start=1))
    light = Light('ceiling', position=(0.0, 0.0, 2.5), intensity=3.0)
    return Scene('furnished', 'room', FURNISHED_LABELS, objects, lights=(light,))


@cache
def truth_of_room():
    """Return the ground truth of a camera that turns in the corners and in the middle."""
    places = [(-3.0, -2.2), (3.0, -2.4), (3.0, 2.6), (-3.2, 2.4), (0.0, 0.0)]
    poses = [
        camera_at(x, y, 1.5, math.radians(yaw)) for x, y in places for yaw in range(0, 360, 45)
    ]
    return build_ground_truth(furnished_room(), poses, CAMERA)


def write_space3d_folder(directory, answers=None):
    """Write a scene folder as Space3D-Bench has them: two rooms joined by a doorway."""
    shutil.copytree(TESTS / 'data' / 'space3d' / 'two_rooms', directory)
    if answers is not None:
        (directory / 'answers.json').write_text(json.dumps(answers))
    return directory


def load_small_house():
    """Load a Habitat data set of 40 MB from outside of the repository, or skip the test."""
    folder = TESTS.parents[1] / 'shared' / 'scenes' / 'small_house'
    if not folder.is_dir():
        pytest.skip('needs ../shared/scenes/small_house')
    return load_scene(str(folder / 'house.scene_dataset_config.json'))


def grey_wall(color=0.5):
    """A plain wall with its face in the plane x = 3, and nothing else."""
    wall = box_object(1, 'wall', (3, -20, -20), (3.1, 20, 20), Material((color,) * 3))
    return Scene('test', 'wall', LABELS, (wall,), ambient=0.0)


def divided_room(_reference=None):
    """A room that a high wall with a gap at y > 1.2 divides."""
    wall = box_object(8, 'wall', (-0.6, -2.0, 0), (-0.5, 1.0, 2.5))
    return room_scene(extra=(wall,))


def door_scene():
    """Return a leaf of 0.9 m closed in a wall along x, with a box before its left half."""

    thing = partial(box_object, label_set=DOORS, state='closed')
    return Scene(
        'test',
        'doorway',
        DOORS,
        (
            thing(1, 'floor', (-3, -3, -0.1), (3, 3, 0)),
            thing(2, 'wall', (-3, -0.05, 0), (-0.5, 0.05, 2)),
            thing(3, 'wall', (0.5, -0.05, 0), (3, 0.05, 2)),
            thing(4, 'door', (-0.45, -0.02, 0.01), (0.45, 0.02, 2)),
            thing(5, 'box', (-0.5, -0.9, 0), (-0.3, -0.3, 0.5)),
            thing(6, 'box', (0.3, 0.3, 0), (0.5, 0.9, 0.5)),
        ),
    )


def cast_rays(scene, camera, pose):
    """Return depth along the optical axis and instance ids by ray casting with Embree."""
    pytest.importorskip('open3d')
    directions = (camera.rays() @ pose.rotation.T).reshape(-1, 3)
    origins = np.broadcast_to(pose.translation, directions.shape)
    found = RayCaster(scene).find_first_hits(origins, directions)
    return tuple(image.reshape(camera.height, camera.width) for image in found)
