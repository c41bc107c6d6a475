"""The images of a simulator against the scene that ground truth is made from."""

import dataclasses
from typing import Literal

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.libraries import needs
from support.world.scenes import CAMERA, camera_at, room_scene

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.conditions import parse_condition
from osmabench_ros.simulation.frame_source import SimulatedFrames
from osmabench_ros.simulation.habitat.simulator import HabitatSimulator
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.robot_path import Motion, RobotPath, sample_trajectory
from osmabench_ros.simulation.simulator import LoadingSimulator, check_agreement

pytestmark = [pytest.mark.gl, needs('open3d')]

POSES = (camera_at(-2.5, 0.6, 1.4, -0.2), camera_at(-1.0, -1.2, 1.0, 0.7))
PATH = RobotPath(np.array([[-2.5, 0.6, -0.2], [-1.5, 0.4, -0.2]]), np.array([0]), 0.0)
# Instance of the box that is 1.0 m deep and 0.8 m wide.
TURNED = 6


class LoadsItself(OpenGLSimulator):
    """Renders another scene than the one that the run was given, as a reader of files may."""

    loads_scene_itself: Literal[True] = True

    def __init__(self, scene, camera, near_m=0.05, far_m=50.0):
        super().__init__(scene, camera, near_m=near_m, far_m=far_m)
        self.range_m = (near_m, far_m)


def changed(scene, instance, rotation, place_m=0.0):
    def moved(item):
        if item.instance_id != instance:
            return item
        at = item.pose.translation + np.array([0.0, place_m, 0.0])
        return dataclasses.replace(item, pose=Pose(rotation.as_matrix() @ item.pose.rotation, at))

    return dataclasses.replace(scene, objects=tuple(map(moved, scene.objects)))


def on_its_side(scene):
    rotation = Rotation.from_euler('x', 90, degrees=True).as_matrix()
    turn = Pose(rotation, np.zeros(3))
    objects = (dataclasses.replace(item, pose=turn @ item.pose) for item in scene.objects)
    return dataclasses.replace(scene, objects=tuple(objects))


@pytest.fixture(scope='module')
def scene(tmp_path_factory):
    return load_scene(str(write_habitat_dataset(room_scene(), tmp_path_factory.mktemp('room'))))


def test_the_embedded_simulator_agrees_with_the_scene_that_it_is_given(scene, closes):
    for near_m, far_m in ((0.05, 50.0), (0.05, 2.0), (3.0, 4.0), (30.0, 40.0)):
        check_agreement(scene, closes(LoadsItself(scene, CAMERA, near_m, far_m)), POSES)


@pytest.mark.parametrize(
    ('rotation', 'place_m', 'reported'),
    [
        (Rotation.from_euler('z', 35, degrees=True), 0.0, rf'pixels of object "box_{TURNED}'),
        (Rotation.from_euler('y', 90, degrees=True), 0.0, rf'pixels of object "box_{TURNED}'),
        (Rotation.identity(), 50.0, rf'pixels of object "box_{TURNED}\.1" differ .* shows object'),
    ],
)
def test_an_object_that_is_turned_or_gone_is_named(scene, closes, rotation, place_m, reported):
    simulator = closes(LoadsItself(changed(scene, TURNED, rotation, place_m), CAMERA))
    with pytest.raises(SimulationError, match=reported):
        check_agreement(scene, simulator, POSES)


def test_a_run_on_a_simulator_that_loads_a_turned_scene_stops_before_its_first_frame(
    scene, closes
):
    condition = parse_condition('plain', {}, 'plain')
    trajectory = sample_trajectory(PATH, Motion(), 5.0)
    turned = on_its_side(scene)
    with pytest.raises(SimulationError, match=r'pixels of object "wall_\d\.1" differ .* in all'):
        SimulatedFrames(scene, closes(LoadsItself(turned, CAMERA)), condition, trajectory)
    same = closes(LoadsItself(scene, CAMERA))
    assert len(SimulatedFrames(scene, same, condition, trajectory)) == len(trajectory)
    # One that is given the meshes cannot part from them, and is not asked.
    given = closes(OpenGLSimulator(turned, CAMERA))
    assert not isinstance(given, LoadingSimulator)
    assert len(SimulatedFrames(scene, given, condition, trajectory)) == len(trajectory)


def test_habitat_sim_is_held_to_the_scene():
    assert {'loads_scene_itself', 'range_m'} <= HabitatSimulator.__annotations__.keys()


def test_ids_alone_may_differ_too(scene, closes):
    ids = {2: 4, 4: 2}
    objects = tuple(
        dataclasses.replace(item, instance_id=ids.get(item.instance_id, item.instance_id))
        for item in scene.objects
    )
    simulator = closes(LoadsItself(dataclasses.replace(scene, objects=objects), CAMERA))
    with pytest.raises(SimulationError, match=r'object "wall_[24]\.1".* shows object "wall_[24]'):
        check_agreement(scene, simulator, POSES)
