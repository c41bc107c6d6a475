"""The poses that open3d_slam finds in a room of boxes, and its remarks where it finds none."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from support.libraries import needs
from support.world import box_room
from support.world.box_room import view

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.open3d_slam import Open3dSlamMapper, hold_of

pytestmark = needs('open3d')

CAMERA = Intrinsics.from_hfov(160, 120, np.radians(80))


@pytest.fixture(scope='module')
def frames():
    """Return frames of a camera that drives 6 cm and turns by about 2 degrees a frame."""
    return [
        view((-1.5 + 0.06 * i, -1.2, 1.3), (1.0, 0.8 + 0.12 * i, 0.4), CAMERA, i)
        for i in range(20)
    ]


mapped = partial(box_room.map_room, Open3dSlamMapper)


def errors_m(found, frames):
    assert found.trajectory.stamps_ns.tolist() == [frame.stamp_ns for frame in frames]
    true = [frame.camera_pose.translation for frame in frames]
    return np.linalg.norm(found.trajectory.positions - true, axis=1)


def test_the_camera_is_found_from_its_first_pose_alone(frames):
    unknown = [frames[0], *(replace(item, camera_pose=Pose.identity()) for item in frames[1:])]
    found = mapped(unknown)
    assert errors_m(found, frames).max() < 0.02
    assert found.header.remark == ''
    assert found.header.provenance.frames_used == len(frames)
    # Surface seen from the estimated poses is in its place.
    true = mapped([frames[0]] * 2).dense.points
    assert len(found.dense.points) > len(true)


def test_blind_frames_keep_the_last_pose_and_are_counted(frames):
    dark = [
        replace(item, depth_m=np.full_like(item.depth_m, np.nan)) if item.index in (8, 9) else item
        for item in frames
    ]
    found = mapped(dark)
    errors = errors_m(found, frames)
    assert errors[8] == pytest.approx(0.06, abs=0.02)
    assert errors[9] == pytest.approx(0.12, abs=0.02)
    assert np.delete(errors, [8, 9]).max() < 0.03
    assert found.header.remark == (
        'track was lost in 2 of 20 frames, first in frame 8; they keep the last pose and are not '
        'in the map'
    )


@pytest.mark.full
def test_a_jump_is_a_loss_and_the_map_goes_on_from_the_last_pose(frames):
    away = (2.0, 2.0, 1.3), (2.9, -2.5, 1.0)
    other = [view(*away, CAMERA, index) for index in range(len(frames), len(frames) + 8)]
    found = mapped([*frames, *other])
    assert 'track was lost in' in found.header.remark
    positions = found.trajectory.positions[len(frames) :]
    assert np.linalg.norm(positions - positions[0], axis=1).max() < 0.25


def test_a_single_wall_does_not_hold_the_camera(frames):
    assert hold_of(view((0.0, -2.0, 1.25), (0.0, -3.0, 1.25), CAMERA)) < 1e-6
    assert hold_of(view((0.0, 0.0, 1.8), (2.9, 2.9, 0.0), CAMERA)) > 0.002
    blind = replace(frames[0], depth_m=np.full_like(frames[0].depth_m, np.nan))
    assert hold_of(blind) == 0.0


def test_before_a_wall_its_pattern_tells_the_way():
    def painted(pose, depth_m, colors):
        rays = CAMERA.rays().reshape(-1, 3) @ pose.rotation.T
        x, _, z = (pose.translation + rays * depth_m[:, None]).T
        waves = 60 * np.sin(7 * x) + 60 * np.sin(5 * z + 3 * x)
        return np.repeat(np.clip(128 + waves, 0, 255)[:, None], 3, axis=1).astype(np.uint8)

    places = 0.02 * np.arange(8)
    views = [
        view((x, -2.0, 1.25), (x, -3.0, 1.25), CAMERA, index, painted)
        for index, x in enumerate(places)
    ]
    assert errors_m(mapped(views), views).max() < 0.02


@pytest.mark.full
def test_a_turn_on_which_the_camera_slides_is_noticed():
    """By 12 degrees a frame; nothing else shows it, for every frame fits the one before."""
    turns = np.radians(20 + 12 * np.arange(8))
    views = [
        view((0.0, -0.5, 1.3), (np.cos(turn), np.sin(turn) - 0.5, 1.0), CAMERA, index)
        for index, turn in enumerate(turns)
    ]
    found = mapped(views)
    assert errors_m(found, views).max() > 0.2
    assert 'track was lost' not in found.header.remark
    assert 'the alignment there and back ends more than 0.05 m away' in found.header.remark
