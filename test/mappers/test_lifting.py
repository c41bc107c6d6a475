from dataclasses import replace

import numpy as np
import pytest
from support.libraries import Lazy
from support.world import box_room

from osmabench_ros.mappers.open_vocabulary.lifting import (
    NOISE,
    Detections,
    LiftingOptions,
    dbscan,
    lift,
)

TABLE = 6
cluster = Lazy('sklearn.cluster')


def table_mask(frame):
    mask = (frame.instance == TABLE)[None]
    feature = np.ones((1, 3), np.float32)
    return Detections(mask, feature, np.array([0.7], np.float32), ('table',))


@pytest.mark.parametrize('seed', range(8))
def test_clusters_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, 1.5, (6, 3))
    points = np.concatenate([rng.normal(center, 0.05, (60, 3)) for center in centers])
    points = np.concatenate([points, rng.uniform(0, 1.5, (80, 3))])
    weights = rng.integers(1, 4, len(points))
    found = dbscan(points, weights, np.zeros(len(points), int), 0.1, 10)
    reference = cluster.DBSCAN(eps=0.1, min_samples=10).fit(points, sample_weight=weights)
    core = reference.core_sample_indices_
    np.testing.assert_array_equal(found == NOISE, reference.labels_ == -1)
    pairs = set(zip(found[core].tolist(), reference.labels_[core].tolist(), strict=True))
    assert len(pairs) == len({own for own, _ in pairs}) == len({other for _, other in pairs}) > 1
    # A point between two clusters may go to either of them.
    same = dict(pairs)
    for row in np.setdiff1d(np.flatnonzero(found != NOISE), core):
        near = np.linalg.norm(points[core] - points[row], axis=1) <= 0.1
        assert same[found[row]] in reference.labels_[core][near]


def test_groups_do_not_mix():
    line = np.column_stack([np.arange(30) * 0.05, np.zeros(30), np.zeros(30)])
    ones = np.ones(30, int)
    assert len(set(dbscan(line, ones, np.zeros(30, int), 0.1, 3).tolist())) == 1
    halves = dbscan(line, ones, np.arange(30) % 2, 0.11, 3)
    assert len(set(halves.tolist())) == 2
    assert len(set(halves[::2].tolist())) == 1


def test_a_cloud_lies_on_the_object_and_keeps_what_is_known_of_it():
    [frame] = [box_room.frames()[0]]
    [fragment] = lift(frame, table_mask(frame), LiftingOptions())
    box = box_room.ROOM[TABLE - 1]
    assert (fragment.cells.points >= np.array(box.low) - 0.01).all()
    assert (fragment.cells.points <= np.array(box.high) + 0.01).all()
    assert (fragment.name, round(fragment.confidence, 3)) == ('table', 0.7)
    assert np.ptp(fragment.cells.points[:, 1]) > 1.0


def test_what_a_mask_takes_of_the_background_is_left_out():
    [frame] = [box_room.frames()[0]]
    detections = table_mask(frame)
    wide = np.zeros_like(detections.masks)
    wide[0, :, :] = frame.instance == TABLE
    wide[0, :8, :] = True  # the wall behind, far from the table
    dirty = replace(detections, masks=wide)
    [clean] = lift(frame, dirty, LiftingOptions())
    [alone] = lift(frame, detections, LiftingOptions())
    assert wide.sum() > detections.masks.sum()
    assert set(clean.cells.voxels.tolist()) == set(alone.cells.voxels.tolist())


def test_small_far_and_empty_masks_are_left_out():
    [frame] = [box_room.frames()[0]]
    detections = table_mask(frame)
    assert lift(frame, detections, LiftingOptions())
    assert not lift(frame, detections, LiftingOptions(min_mask_pixels=100_000))
    assert not lift(frame, detections, LiftingOptions(min_points=100_000))
    assert not lift(frame, detections, LiftingOptions(max_depth_m=0.5))
    none = np.empty((0, *frame.depth_m.shape), bool)
    nothing = Detections(none, np.empty((0, 3), np.float32), np.empty(0, np.float32), ())
    assert not lift(frame, nothing, LiftingOptions())


def test_detections_must_be_complete():
    with pytest.raises(ValueError, match='1 masks have 2 features'):
        Detections(np.ones((1, 2, 2), bool), np.ones((2, 3), np.float32), np.ones(1), ('',))
