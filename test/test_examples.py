"""The nodes of examples/: their maps of a drive through a room of boxes, frame by frame."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.benchmark_scripts import load_script
from support.world import box_room
from support.world.frames import map_frames

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

EXAMPLES = Path(__file__).resolve().parents[1] / 'examples'
CAMERA = Intrinsics.from_hfov(160, 120, np.radians(80))


@pytest.fixture(scope='module')
def frames():
    """A drive of 3 cm and a turn of about one degree a frame."""
    return [
        box_room.view((-1.5 + 0.03 * i, -1.2, 1.3), (1.0, 0.8 + 0.06 * i, 0.4), CAMERA, i)
        for i in range(16)
    ]


def test_octomap_fills_the_cells_of_what_is_seen_and_no_others(frames):
    pytest.importorskip('pyoctomap', reason='pyoctomap is not installed')
    module = load_script(EXAMPLES / 'octomap_mapper.py')
    frames = frames[::4]
    found = map_frames(module.OctoMapMapper(), frames)
    seen = np.concatenate([frame.world_points() for frame in frames])
    cell_m = module.CELL_M
    # A point is in its cell, with corners sqrt(3)/2 edges away from the centre.
    away, _ = cKDTree(seen).query(found.dense.points)
    assert (away < cell_m).mean() > 0.95
    missing, _ = cKDTree(found.dense.points).query(seen[::7])
    assert (missing < 1.5 * cell_m).mean() > 0.95
    assert found.header.provenance.frames_used == len(frames)


def test_kiss_icp_finds_the_way_from_the_first_pose_alone(frames):
    pytest.importorskip('kiss_icp', reason='kiss-icp is not installed')
    unknown = [frames[0], *(replace(item, camera_pose=Pose.identity()) for item in frames[1:])]
    found = map_frames(load_script(EXAMPLES / 'kiss_icp_odometry.py').KissIcpMapper(), unknown)
    true = np.array([frame.camera_pose.translation for frame in frames])
    assert np.linalg.norm(true[-1] - true[0]) > 0.4
    assert np.linalg.norm(found.trajectory.positions - true, axis=1).max() < 0.12
    assert found.trajectory.stamps_ns.tolist() == [frame.stamp_ns for frame in frames]
    seen = np.concatenate([frame.world_points() for frame in frames])
    away, _ = cKDTree(seen).query(found.dense.points)
    assert np.median(away) < 0.03
