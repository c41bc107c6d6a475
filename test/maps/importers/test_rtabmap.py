"""RTAB-Map's exported cloud and camera poses, and its database."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, gray, write_rtabmap

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import ImportOptions, import_map

FIRST_CAMERA = Pose.from_yaw(0.7, (1.0, 2.0, 1.5)) @ optical_pose_in_link()


def test_the_map_begins_where_the_first_camera_was(tmp_path: Path) -> None:
    """The first exported pose is the optical frame of a robot that stands at the origin."""
    write_rtabmap(tmp_path)
    origin = FIRST_CAMERA @ optical_pose_in_link().inverse()
    made = import_map('rtabmap', tmp_path, ImportOptions(pose=origin))
    assert made.dense is not None
    assert made.trajectory is not None
    np.testing.assert_allclose(made.trajectory.pose(0).matrix, FIRST_CAMERA.matrix, atol=1e-6)
    # Half a metre forward along the optical axis.
    ahead = FIRST_CAMERA.transform(np.array([0.0, 0.0, 0.5]))
    np.testing.assert_allclose(made.trajectory.positions[1], ahead, atol=1e-6)
    assert made.trajectory.stamps_ns.tolist() == [1_000_000_000, 1_500_000_000]
    assert made.trajectory.child_frame_id == 'camera_color_optical_frame'
    turned = origin.transform(CHAIR)
    np.testing.assert_allclose(made.dense.points, turned, atol=1e-5)
    assert made.dense.colors is not None


def test_the_database_tells_its_version_and_the_size_of_its_graph(tmp_path: Path) -> None:
    write_rtabmap(tmp_path)
    made = import_map('rtabmap', tmp_path)
    assert made.extras == {'version': '0.23.8', 'nodes': 5, 'maps': 1, 'loop_closures': 2}
    with_database = made.header.provenance.source_sha256
    (tmp_path / 'rtabmap.db').unlink()
    without = import_map('rtabmap', tmp_path)
    assert not without.extras
    assert without.header.provenance.source_sha256 != with_database


def test_maps_that_track_left_behind_are_told(tmp_path: Path) -> None:
    write_rtabmap(tmp_path)
    # Three of five nodes are intermediate and have no exported pose; that alone is no break.
    assert import_map('rtabmap', tmp_path).header.remark == ''
    with sqlite3.connect(tmp_path / 'rtabmap.db') as database:
        database.execute('UPDATE Node SET map_id = 1 WHERE id > 2')
    database.close()
    made = import_map('rtabmap', tmp_path)
    assert made.extras['maps'] == 2
    assert made.header.remark.startswith('RTAB-Map lost track and began anew (2 maps); 3 nodes')


def test_a_cloud_alone_is_a_map_without_poses(tmp_path: Path) -> None:
    write_rtabmap(tmp_path)
    for file in (*tmp_path.glob('*.txt'), *tmp_path.glob('*.db')):
        file.unlink()
    for path in (tmp_path, tmp_path / 'rtabmap_cloud.ply'):
        assert import_map('rtabmap', path).trajectory is None


def test_what_is_missing_or_no_database_is_named(tmp_path: Path) -> None:
    write_rtabmap(tmp_path)
    (tmp_path / 'rtabmap.db').unlink()
    with sqlite3.connect(tmp_path / 'rtabmap.db') as database:
        database.execute('CREATE TABLE Other (id INTEGER)')
    database.close()
    with pytest.raises(MapError, match=r'rtabmap\.db is no database of RTAB-Map'):
        import_map('rtabmap', tmp_path)
    (tmp_path / 'rtabmap_cloud.ply').unlink()
    with pytest.raises(MapError, match=r'no cloud of rtabmap-export; expected \*_cloud\.ply'):
        import_map('rtabmap', tmp_path)


def test_colours_belong_to_the_points_that_are_kept(tmp_path: Path) -> None:
    write_rtabmap(tmp_path, points=np.vstack([CHAIR[:-1], [[np.nan] * 3]]), **gray(len(CHAIR)))
    made = import_map('rtabmap', tmp_path)
    assert made.dense is not None
    assert len(made.dense.points) == len(made.dense.colors) == len(CHAIR) - 1
