import numpy as np
import pytest

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.simulation.effects import Shot, StructuredLightDepth, TimeOfFlightDepth

CAMERA = Intrinsics.from_hfov(320, 240, 1.1)
SHOT = Shot(7, 1.4, CAMERA, seed=3)


def plane(z):
    return np.full((240, 320), z, np.float32)


def step():
    depth_m = plane(3.0)
    depth_m[60:180, 100:200] = 1.0
    return depth_m


def shadow(depth_m):
    return StructuredLightDepth().find_shadow(depth_m, CAMERA.fx)


@pytest.mark.parametrize('effect', [StructuredLightDepth(), TimeOfFlightDepth()])
def test_noise_is_a_function_of_seed_and_frame(effect):
    once, again = effect.depth(plane(2.0), SHOT), effect.depth(plane(2.0), SHOT)
    np.testing.assert_array_equal(once, again)
    for other in (Shot(8, 1.6, CAMERA, seed=3), Shot(7, 1.4, CAMERA, seed=4)):
        assert (effect.depth(plane(2.0), other) != once).any()
    assert once.dtype == np.float32


@pytest.mark.parametrize('effect', [StructuredLightDepth(), TimeOfFlightDepth()])
def test_range_follows_the_convention_of_rep_118(effect):
    depth_m = plane(2.0)
    depth_m[:, :50], depth_m[:, 100:150], depth_m[:, 300:] = np.inf, 30.0, 0.05
    if isinstance(effect, TimeOfFlightDepth):
        effect = effect.model_copy(update={'unambiguous_m': 100.0})
    seen = effect.depth(depth_m, SHOT)
    assert np.isposinf(seen[5:-5, 5:40]).all()
    assert np.isposinf(seen[5:-5, 120:140]).all()
    assert np.isnan(seen[5:-5, 305:]).all()
    assert np.isfinite(seen[5:-5, 170:290]).all()


@pytest.mark.parametrize('z', [1.0, 2.0, 3.5, 5.0])
@pytest.mark.parametrize(
    ('sensor', 'expected_m'),
    [
        (StructuredLightDepth(disparity_step_px=0.0), lambda z: 0.0012 + 0.0019 * (z - 0.4) ** 2),
        (TimeOfFlightDepth(wiggle_m=0.0), lambda z: 0.002 + 0.0008 * z**2),
    ],
)
def test_noise_grows_with_the_square_of_the_distance_as_published(sensor, expected_m, z):
    noise = sensor.depth(plane(z), SHOT) - z
    assert noise.std() == pytest.approx(expected_m(z), rel=0.03)
    assert abs(noise.mean()) < 4 * noise.std() / noise.size**0.5


def test_disparity_is_quantised():
    coarse = StructuredLightDepth(scale=0.0, disparity_step_px=0.125)
    depth_m = np.broadcast_to(np.linspace(2.9, 3.1, 320, dtype=np.float32), (240, 320))
    levels = np.unique(coarse.depth(depth_m, SHOT))
    disparity = 0.075 * CAMERA.fx / levels
    np.testing.assert_allclose(disparity / 0.125, np.rint(disparity / 0.125), atol=1e-3)
    assert 1 < len(levels) < 10


def test_the_projectors_shadow_is_as_wide_as_its_parallax():
    hidden = shadow(step())[120]
    (columns,) = np.nonzero(hidden)
    assert columns.min() == 200  # at the right of the near surface
    width = 0.075 * CAMERA.fx * (1 / 1.0 - 1 / 3.0)
    assert abs(len(columns) - width) <= 1.5
    assert not shadow(plane(2.0)).any()


def test_grazing_surfaces_are_lost():
    steep = np.broadcast_to(np.linspace(1.0, 60.0, 320, dtype=np.float32), (240, 320))
    sensor = StructuredLightDepth(far_m=100.0)
    lost = np.isnan(sensor.depth(steep, SHOT))
    slope = 59.0 / 319  # metres per pixel
    limit_m = np.tan(np.radians(8.0)) * slope * CAMERA.fx
    assert lost[:, steep[0] < limit_m - 0.5].all()
    assert not lost[:, steep[0] > limit_m + 0.5].any()
    assert np.isnan(sensor.depth(plane(2.0), SHOT)).sum() == 0


NOISELESS = {'noise_offset_m': 0.0, 'noise_factor': 0.0}


def test_the_wiggle_is_systematic():
    error = TimeOfFlightDepth(**NOISELESS).depth(plane(0.9 * 1.25), SHOT) - 0.9 * 1.25
    np.testing.assert_allclose(error, 0.003, atol=1e-5)


def test_pixels_fly_at_edges_only_and_between_the_surfaces():
    seen = TimeOfFlightDepth(**NOISELESS, wiggle_m=0.0).depth(step(), SHOT)
    flying = np.abs(seen - step()) > 0.01
    rows, columns = np.nonzero(flying)
    assert len(rows) > 300
    assert (seen[flying] > 1.0).all()
    assert (seen[flying] < 3.0).all()
    near_edge = (np.abs(rows[:, None] - [59.5, 179.5]).min(1) < 1) | (
        np.abs(columns[:, None] - [99.5, 199.5]).min(1) < 1
    )
    assert near_edge.all()


def test_distances_beyond_the_unambiguous_one_wrap():
    sensor = TimeOfFlightDepth(**NOISELESS, wiggle_m=0.0, unambiguous_m=5.0)
    np.testing.assert_allclose(sensor.depth(plane(6.5), SHOT), 1.5, atol=1e-5)
