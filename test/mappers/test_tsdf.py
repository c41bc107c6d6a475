"""The surfaces that tsdf finds, against the boxes that the frames show."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.libraries import needs
from support.world import box_room

from osmabench_ros.mappers.tsdf import TsdfMapper
from osmabench_ros.maps.storage import pack_map

pytestmark = needs('open3d')


mapped = partial(box_room.map_room, TsdfMapper)


@pytest.fixture(scope='module')
def frames():
    return box_room.frames()


@pytest.fixture(scope='module')
def dense(frames):
    return mapped(frames * 2).dense


def to_surface(points):
    """Return the distance of each point to the nearest face of a box."""
    found = np.full(len(points), np.inf)
    for box in box_room.ROOM:
        beyond = np.maximum(np.subtract(box.low, points), np.subtract(points, box.high))
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
        found = np.minimum(found, np.where(outside > 0, outside, -beyond.max(axis=1)))
    return found


def test_points_lie_on_the_faces(dense):
    distance = to_surface(dense.points)
    assert np.median(distance) < 0.001
    assert np.quantile(distance, 0.99) < 0.01


def test_a_floor_seen_at_a_low_angle_does_not_sink(dense):
    x, y, z = dense.points.T
    height = z[(np.abs(z) < 0.05) & (np.abs(x) < 0.7) & (np.abs(y) < 2.0)]
    assert len(height) > 1000
    assert abs(np.mean(height)) < 0.001


def test_what_was_seen_is_there_in_its_color(frames, dense):
    truth = box_room.visible_cloud(frames)
    distance, nearest = cKDTree(dense.points).query(truth.points)
    assert np.quantile(distance, 0.9) < 0.02
    true = np.array([box.color for box in box_room.ROOM])[truth.instances - 1]
    same = np.abs(dense.colors[nearest].astype(int) - true).max(axis=1) < 8
    assert same[distance < 0.02].mean() > 0.95


def test_voxels_seen_in_few_frames_are_left_out(frames, dense):
    points = mapped(frames).dense.points
    assert 0 < len(points) < len(dense.points)
    assert not len(mapped(frames[:1]).dense.points)


def test_the_same_frames_give_the_same_bytes(frames):
    assert pack_map(mapped(frames)) == pack_map(mapped(frames))


def test_frames_without_depth_count_and_change_nothing(frames):
    blind = replace(frames[0], depth_m=np.full_like(frames[0].depth_m, np.nan))
    empty = mapped([blind])
    assert len(empty.dense.points) == 0
    assert empty.header.provenance.frames_used == 1
    np.testing.assert_array_equal(
        mapped([*frames, blind]).dense.points, mapped(frames).dense.points
    )
