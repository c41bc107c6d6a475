import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmabench_ros.simulation.robot_path import covered, duration_s

POSITIVE = st.floats(0.01, 10.0)


def test_constant_speed_takes_distance_over_speed():
    np.testing.assert_allclose(duration_s([0.0, 1.5], 0.75), [0.0, 2.0])
    np.testing.assert_allclose(covered([-1.0, 1.0, 9.0], 1.5, 0.75), [0.0, 0.75, 1.5])


def test_a_trapezoid_and_a_triangle():
    # 1 m/s and 1 m/s2: a second up over 0.5 m, a second down; 3 m leave 2 s in the middle.
    assert duration_s(3.0, 1.0, 1.0) == pytest.approx(4.0)
    np.testing.assert_allclose(covered([1.0, 2.0, 3.0, 4.0], 3.0, 1.0, 1.0), [0.5, 1.5, 2.5, 3.0])
    # 0.25 m never reach 1 m/s.
    assert duration_s(0.25, 1.0, 1.0) == pytest.approx(1.0)
    assert covered(0.5, 0.25, 1.0, 1.0) == pytest.approx(0.125)


@given(POSITIVE, POSITIVE, POSITIVE)
def test_profiles_respect_their_limits_and_arrive(distance, speed, limit):
    total = float(duration_s(distance, speed, limit))
    times = np.linspace(0, total, 400)
    position = covered(times, distance, speed, limit)
    assert position[0] == pytest.approx(0.0, abs=1e-9)
    assert position[-1] == pytest.approx(distance)
    velocity = np.diff(position) / np.diff(times)
    assert velocity.min() > -1e-6
    assert velocity.max() <= speed * (1 + 1e-6)
    acceleration = np.diff(velocity) / np.diff(times)[:-1]
    assert np.abs(acceleration).max() <= limit * (1 + 1e-3) + 1e-6
