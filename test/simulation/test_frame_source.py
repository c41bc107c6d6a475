"""Frames of a condition, and a condition that changes the scene on the way."""

from functools import partial

import numpy as np
import pytest
from support.world.frames import are_same_images
from support.world.scenes import CAMERA, room_scene

from osmabench_ros.errors import ConfigError, SimulationError
from osmabench_ros.scenes.changes import apply_changes
from osmabench_ros.simulation.conditions import load_condition, parse_condition
from osmabench_ros.simulation.frame_source import ConditionedCamera, SimulatedFrames
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.robot_path import CameraMount, RobotPath, sample_trajectory

pytestmark = pytest.mark.gl

STATES = np.array([[-2.5, 1.2, 0.0], [-1.0, 1.2, 0.0], [-1.0, 1.2, -0.8], [-0.2, 0.4, -0.8]])
PATH = RobotPath(STATES, np.array([0, 1, 1]), 0.0)


@pytest.fixture
def frames_of(closes):
    def open_frames(name_or_data, seed=0, rate=2.0):
        if isinstance(name_or_data, str):
            condition = load_condition(name_or_data)
        else:
            condition = parse_condition('test', name_or_data, 'test.yaml')
        scene = room_scene()
        trajectory = sample_trajectory(PATH, condition.make_motion(rate), rate, CameraMount(1.4))
        simulator = OpenGLSimulator(scene, CAMERA)
        return closes(SimulatedFrames(scene, simulator, condition, trajectory, seed))

    return open_frames


def taken(source):
    return [source.frame(i).frame for i in range(len(source))]


def test_frames_are_a_function_of_their_number_in_any_order(frames_of):
    forward = taken(frames_of('sensor_structured_light', seed=3))
    source = frames_of('sensor_structured_light', seed=3)
    backward = [source.frame(i).frame for i in reversed(range(len(source)))][::-1]
    assert all(are_same_images(one, two) for one, two in zip(forward, backward, strict=True))
    other = taken(frames_of('sensor_structured_light', seed=4))
    assert not are_same_images(forward[1], other[1])


def test_stamps_follow_the_rate_and_poses_the_path(frames_of):
    frames = taken(frames_of('baseline'))
    assert np.diff([frame.stamp_ns for frame in frames]).tolist() == [500_000_000] * (
        len(frames) - 1
    )
    np.testing.assert_allclose(frames[2].camera_pose.translation, [-1.75, 1.2, 1.4], atol=1e-9)
    np.testing.assert_allclose(frames[2].base_pose.translation, [-1.75, 1.2, 0.0], atol=1e-9)


def test_blur_smears_along_the_motion_and_leaves_depth_alone(frames_of):
    sharp = taken(frames_of('baseline'))
    blurred = taken(frames_of({'effects': [{'kind': 'motion_blur', 'shutter_s': 0.2}]}))
    turning = next(i for i, f in enumerate(sharp) if 2.2 < (f.stamp_ns - 10**9) / 1e9 < 2.8)

    def detail(frame):
        return float(np.abs(np.diff(frame.color.astype(float), axis=1)).max(axis=2).max())

    assert detail(blurred[turning]) < 0.8 * detail(sharp[turning])
    for one, two in zip(sharp, blurred, strict=True):
        np.testing.assert_array_equal(one.depth_m, two.depth_m)
        assert abs(one.color.mean() - two.color.mean()) < 3


def test_dropped_frames_leave_gaps_in_the_stamps(frames_of):
    whole = taken(frames_of('baseline', rate=10.0))
    lossy = frames_of({'effects': [{'kind': 'dropped_frames', 'share': 0.4}]}, rate=10.0)
    assert len(lossy) < len(whole)
    frames = taken(lossy)
    assert [frame.index for frame in frames] == list(range(len(frames)))
    by_stamp = {frame.stamp_ns: frame for frame in whole}
    assert all(are_same_images(frame, by_stamp[frame.stamp_ns]) for frame in frames)


def test_drift_changes_the_poses_and_not_the_images(frames_of):
    drift = {'kind': 'pose_drift', 'translation_per_m': 0.2}
    true, believed = taken(frames_of('baseline')), taken(frames_of({'effects': [drift]}))
    assert all(are_same_images(one, two) for one, two in zip(true, believed, strict=True))
    np.testing.assert_array_equal(true[0].camera_pose.matrix, believed[0].camera_pose.matrix)
    assert np.abs(true[-1].camera_pose.matrix - believed[-1].camera_pose.matrix).max() > 0.01
    last = believed[-1]
    mounted = last.base_pose.inverse() @ last.camera_pose
    np.testing.assert_allclose(mounted.matrix, CameraMount(1.4).base_to_camera.matrix, atol=1e-9)


def test_objects_move_in_every_image_at_once(frames_of):
    moving = {'names': ['box_6'], 'offset_m': [0.8, 0.0, 0.0], 'span': {'segments': [0, 1]}}
    still, moved = taken(frames_of('baseline')), taken(frames_of({'moving_objects': [moving]}))
    assert are_same_images(still[0], moved[0])
    changed = still[-1].instance != moved[-1].instance
    assert changed.mean() > 0.01
    assert (still[-1].depth_m != moved[-1].depth_m)[changed].mean() > 0.9


def test_exposure_works_before_the_sensor_saturates(frames_of):
    """Blown out pixels come back at a shorter exposure, so it is not a scaling of the image."""
    bright = {'lighting': {'exposure': 20.0}}
    short = {**bright, 'effects': [{'kind': 'exposure', 'stops': -4.0}]}
    blown, saved = taken(frames_of(bright))[0], taken(frames_of(short))[0]
    white = (blown.color == 255).all(axis=2)
    assert white.mean() > 0.2
    assert np.unique(saved.color[white]).size > 20


STRAIGHT_STATES = np.array([[-2.5, 0.0, 0.0], [-1.5, 0.0, 0.0], [-0.8, 0.0, 0.0]])
STRAIGHT = RobotPath(STRAIGHT_STATES, np.array([0, 1]), 0.0)
GONE = [{'kind': 'remove', 'object': 'box_6', 'carried': True}]
MOVED = [{'kind': 'move', 'object': 'box_6', 'offset_m': [0.4, 0.0, 0.0]}]
PAINTED = [{'kind': 'recolor', 'object': 'box_6', 'color': 'purple'}]

opened = partial(OpenGLSimulator, intrinsics=CAMERA)


def condition(changes, segments):
    change = {'span': {'segments': segments}, 'changes': changes}
    return parse_condition('changing', {'scene_change': change}, 'changing.yaml')


def along(given):
    return sample_trajectory(STRAIGHT, given.make_motion(4.0), 4.0, CameraMount(1.0))


def shown(given):
    scene = room_scene()
    source = SimulatedFrames(scene, opened(scene), given, along(given), 0, opened)
    return source, [source.frame(number).frame for number in range(len(source))]


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
