"""Ways on the points of a house with two floors, against lengths by hand."""

import math

import numpy as np
import pytest

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.vqa.answering.ways import FloorPlans, FloorWays

UPPER_M, ROOF_M = 2.8, 5.4
STEPS, TREAD_M = 16, 0.25


def plane(x, y, z, rng):
    """Return 500 points a square metre of the level x[0]..x[1], y[0]..y[1] at z."""
    count = round(500 * (x[1] - x[0]) * (y[1] - y[0]))
    return np.column_stack([rng.uniform(*x, count), rng.uniform(*y, count), np.full(count, z)])


def house(*, stairs=True):
    """Two floors of 8 x 4 m, joined along y = 3..4 by stairs from x = 2 up to x = 6."""
    rng = np.random.default_rng(1)
    parts = [
        plane((0, 8), (0, 4), 0.0, rng),
        plane((0, 8), (0, 3), UPPER_M, rng),
        plane((0, 2), (3, 4), UPPER_M, rng),
        plane((6, 8), (3, 4), UPPER_M, rng),
        plane((0, 8), (0, 4), ROOF_M, rng),
    ]
    if stairs:
        rise = UPPER_M / STEPS
        starts = 2 + TREAD_M * np.arange(STEPS)
        parts += [
            plane((x, x + TREAD_M), (3, 4), rise * (number + 1), rng)
            for number, x in enumerate(starts.tolist())
        ]
    return np.concatenate(parts).astype(np.float32)


def box(x, y, z):
    return AxisAlignedBox(np.array([x - 0.1, y - 0.1, z]), np.array([x + 0.1, y + 0.1, z + 0.5]))


def test_a_way_upstairs_is_as_long_as_stairs_and_floors_together():
    ways = FloorWays(FloorPlans(house()))
    length_m = ways.between_m(box(1, 3.5, 0), box(7, 3.5, UPPER_M))
    by_hand_m = 1 + math.hypot(STEPS * TREAD_M, UPPER_M) + 1
    assert length_m == pytest.approx(by_hand_m, rel=0.05)
    path = ways.path(box(1, 3.5, 0), box(7, 3.5, UPPER_M))
    assert np.ptp(path[:, 2]) == pytest.approx(UPPER_M, abs=0.01)
    assert (np.diff(path[:, 2]) >= -1e-9).all(), 'nothing goes down on the way up'


@pytest.mark.parametrize('floor_m', [0.0, UPPER_M])
def test_a_way_on_one_floor_stays_on_it(floor_m):
    path = FloorWays(FloorPlans(house())).path(box(1, 1, floor_m), box(7, 1, floor_m))
    assert path[:, 2] == pytest.approx(floor_m, abs=0.01)
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).sum() == pytest.approx(6, abs=0.15)


def test_without_stairs_each_floor_has_ways_and_none_leads_up():
    ways = FloorWays(FloorPlans(house(stairs=False)))
    assert ways.between_m(box(1, 1, 0), box(7, 1, UPPER_M)) is None
    assert ways.between_m(box(1, 1, UPPER_M), box(7, 1, UPPER_M)) == pytest.approx(6, abs=0.15)


def test_a_margin_takes_the_place_behind_a_wall_that_is_as_near():
    """A wall along y = 2 up to x = 7 parts the floor; a thing in it is as near to both sides."""
    rng = np.random.default_rng(2)
    count = 40_000
    wall = np.column_stack(
        [rng.uniform(0, 7, count), rng.uniform(1.95, 2.05, count), rng.uniform(0, 2, count)]
    )
    plans = FloorPlans(np.concatenate([plane((0, 8), (0, 4), 0.0, rng), wall]))
    ends = box(1, 2, 0), box(1, 1, 0)
    lengths = sorted(FloorWays(plans, margin_m=m).between_m(*ends) for m in (0.0, 0.1))
    assert lengths[0] == pytest.approx(0.7, abs=0.2)
    assert lengths[1] > 12, 'around the end of the wall'
    clear = box(3, 1, 0), box(1, 1, 0)
    assert FloorWays(plans, margin_m=0.1).between_m(*clear) == pytest.approx(2, abs=0.3)
