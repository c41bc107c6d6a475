"""Floors in points of surfaces: of planes at known heights, and of whole scenes."""

import numpy as np
import pytest

from osmabench_ros.semantics.storeys import find_storey, find_storeys, measure_heights_above_floor


def plane(z, x=(0, 6), noise_m=0.0):
    rng = np.random.default_rng(int(1000 * z))
    points = rng.uniform((x[0], 0, 0), (x[1], 5, 0), (9000, 3))
    return points + np.column_stack([np.zeros((9000, 2)), rng.normal(z, noise_m, 9000)])


def walls(low, high):
    rng = np.random.default_rng(5)
    return rng.uniform((0, 0, low), (0.05, 5, high), (9000, 3))


def house(noise_m=0.0):
    """Return two floors at 0.5 m and 3.3 m, their ceilings, a half landing and a table."""
    levels = [plane(z, noise_m=noise_m) for z in (0.5, 3.1, 3.3, 5.9)]
    landing, table = plane(1.9, (0, 0.6)), plane(1.2, (2, 4.5))
    return np.concatenate([*levels, landing, table, walls(0.5, 3.1), walls(3.3, 5.9)])


@pytest.mark.parametrize('noise_m', [0.0, 0.01])
def test_floors_are_found_and_ceilings_tables_and_landings_are_none(noise_m):
    assert find_storeys(house(noise_m)) == pytest.approx((0.5, 3.3), abs=0.05)
    shifted = house(noise_m) + np.array([100.0, -40.0, -7.77])
    assert find_storeys(shifted) == pytest.approx((-7.27, -4.47), abs=0.05)


def test_a_point_at_any_distance_costs_no_time_and_changes_no_floor():
    far = np.append(house(), [[1e8, -3e7, 9e8]], axis=0)
    assert find_storeys(far)[:2] == pytest.approx(find_storeys(house(), with_roofs=True)[:2])


def test_a_roof_is_no_floor_and_no_points_have_none():
    one = np.concatenate([plane(0.0), plane(2.6), plane(2.8), walls(0, 2.8)])
    assert find_storeys(one) == pytest.approx((0.0,), abs=0.05)
    assert find_storeys(np.zeros((0, 3))) == ()
    assert find_storeys(np.zeros((9, 3))) == ()


def test_a_thing_is_on_the_floor_below_it():
    heights = [-0.4, 0.5, 2.4, 3.1, 3.25, 3.3, 9.0]
    assert find_storey(heights, (0.5, 3.3)).tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert find_storey(heights, (0.5,)).tolist() == [0] * 7
    assert find_storey(1.0, ()) == 0


def test_heights_are_above_the_floor_of_the_own_storey():
    points = house()
    above = measure_heights_above_floor(points)
    floors = np.array([0.5, 3.3])[(points[:, 2] > 3.2).astype(int)]
    assert above == pytest.approx(points[:, 2] - floors, abs=0.05)


def test_without_storeys_heights_are_above_the_lowest_points():
    z = np.linspace(1.0, 2.0, 101)
    assert measure_heights_above_floor(np.column_stack([z, z, z])) == pytest.approx(z - 1.01)
