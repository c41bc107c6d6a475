from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from support.sizes import few
from support.world.maps import membership_of

from osmabench_ros.suites.things import overlaps_mask_by_mask


@pytest.mark.parametrize('overlapping', few([True, False], True))
def test_a_mask_takes_all_surface_near_its_own_points(context, with_dense, overlapping):
    dense, rng = context.semantic_map.dense, np.random.default_rng(0)
    instances = rng.integers(0, 5, len(dense.points)).astype(np.int32)
    valid = rng.random(len(instances)) < 0.8
    rows = {i: np.flatnonzero(instances == i) for i in range(1, 5)}
    made = with_dense(instances=instances, valid=valid)
    if overlapping:
        rows = {i: np.union1d(own, rows[1 + i % 4][::3]) for i, own in rows.items()}
        made = with_dense(instances=None, membership=membership_of(rows), valid=valid)
    found = overlaps_mask_by_mask(replace(context, semantic_map=made), 0.04)
    surface = context.ground_truth.surface
    assert found.predicted_ids.tolist() == list(rows)
    for place, own in enumerate(rows.values()):
        points = dense.points[own[valid[own]]]
        near = cdist(surface.points, points).min(axis=1) <= 0.04
        assert found.predicted_sizes[place] == near.sum()
        for column, true in enumerate(found.true_ids):
            assert found.shared[place, column] == (near & (surface.instances == true)).sum()


def test_masks_that_lie_nowhere_near_cover_nothing(context, with_dense):
    away = with_dense(points=context.semantic_map.dense.points + np.float32(50))
    found = overlaps_mask_by_mask(replace(context, semantic_map=away), 0.04)
    assert found.predicted_sizes.tolist() == [0, 0, 0]
