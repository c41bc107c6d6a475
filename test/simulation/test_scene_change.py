"""A condition that changes the scene on the way: before it and after it, frame by frame."""

from functools import partial

import numpy as np
import pytest
from support.world.frames import are_same_images
from support.world.scenes import CAMERA, room_scene

from osmabench_ros.errors import ConfigError, SimulationError
from osmabench_ros.scenes.changes import apply_changes
from osmabench_ros.simulation.conditions import parse_condition
from osmabench_ros.simulation.frame_source import ConditionedCamera, SimulatedFrames
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.robot_path import CameraMount, RobotPath, sample_trajectory

STATES = np.array([[-2.5, 0.0, 0.0], [-1.5, 0.0, 0.0], [-0.8, 0.0, 0.0]])
PATH = RobotPath(STATES, np.array([0, 1]), 0.0)
GONE = [{'kind': 'remove', 'object': 'box_6', 'carried': True}]
MOVED = [{'kind': 'move', 'object': 'box_6', 'offset_m': [0.4, 0.0, 0.0]}]
PAINTED = [{'kind': 'recolor', 'object': 'box_6', 'color': 'purple'}]

opened = partial(OpenGLSimulator, intrinsics=CAMERA)


def condition(changes, segments):
    change = {'span': {'segments': segments}, 'changes': changes}
    return parse_condition('changing', {'scene_change': change}, 'changing.yaml')


def along(given):
    return sample_trajectory(PATH, given.make_motion(4.0), 4.0, CameraMount(1.0))


def shown(given):
    scene = room_scene()
    source = SimulatedFrames(scene, opened(scene), given, along(given), 0, opened)
    return source, [source.frame(number).frame for number in range(len(source))]


@pytest.mark.gl
@pytest.mark.parametrize('changes', [GONE, MOVED, PAINTED], ids=['gone', 'moved', 'painted'])
def test_frames_are_those_of_the_scene_before_and_of_the_changed_one_after(changes):
    given = condition(changes, [1, None])
    source, frames = shown(given)
    source.close()
    steps = along(given).frames
    plain = condition(changes, [99, None])
    scenes = (room_scene(), apply_changes(room_scene(), given.scene_change.changes))
    differing = 0
    for changed, scene in enumerate(scenes):
        simulator = opened(scene)
        camera = ConditionedCamera(scene, simulator, plain, along(plain), 0, opened)
        for number, frame in enumerate(frames):
            seen, _ = camera.take(number)
            same = are_same_images(seen, frame, ('color', 'depth_m', 'instance'))
            # A goal belongs to the segment that reached it.
            assert not same or bool(changed) is (steps[number].segment >= 1)
            differing += not same
        simulator.close()
    assert differing == len(frames), 'each frame is of one of the two scenes'


@pytest.mark.gl
def test_a_change_with_an_end_is_undone():
    source, frames = shown(condition(GONE, [0.4, 1]))
    source.close()
    there = [bool((frame.instance == 6).any()) for frame in frames]
    assert there[0]
    assert there[-1]
    assert not all(there)


def test_what_cannot_be_changed_is_said_before_anything_is_rendered():
    given = condition(GONE, [1, None])
    with pytest.raises(SimulationError, match='"changing" changes the scene'):
        ConditionedCamera(room_scene(), None, given, along(given))
    with pytest.raises(ConfigError, match='changes'):
        condition([], [1, None])
