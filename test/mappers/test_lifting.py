from dataclasses import replace

import numpy as np
from support.libraries import needs
from support.world import box_room

from osmabench_ros.mappers.open_vocabulary.association import Detections, lift

pytestmark = needs('sklearn')

TABLE = 6


def table_mask(frame):
    mask = (frame.instance == TABLE)[None]
    feature = np.ones((1, 3), np.float32)
    return Detections(mask, feature, np.array([0.7], np.float32), ('table',))


def test_a_cloud_lies_on_the_object_and_keeps_what_is_known_of_it():
    [frame] = [box_room.frames()[0]]
    [fragment] = lift(frame, table_mask(frame))
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
    [clean] = lift(frame, dirty)
    [alone] = lift(frame, detections)
    assert wide.sum() > detections.masks.sum()
    assert set(clean.cells.voxels.tolist()) == set(alone.cells.voxels.tolist())


def test_small_far_and_empty_masks_are_left_out():
    [frame] = [box_room.frames()[0]]
    detections = table_mask(frame)
    assert lift(frame, detections)
    few = np.zeros_like(detections.masks)
    few[0].flat[np.flatnonzero(detections.masks)[:9]] = True
    assert not lift(frame, replace(detections, masks=few))
    assert not lift(replace(frame, depth_m=frame.depth_m + 6.0), detections)
    none = np.empty((0, *frame.depth_m.shape), bool)
    nothing = Detections(none, np.empty((0, 3), np.float32), np.empty(0, np.float32), ())
    assert not lift(frame, nothing)
