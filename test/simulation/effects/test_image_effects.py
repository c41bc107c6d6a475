import numpy as np
import pytest
from support.world.scenes import CAMERA

from osmabench_ros.base.images import decode_srgb_image, encode_srgb_image
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.simulation.effects import Exposure, Gamma, MotionBlur, Shot, WhiteBalance

SHOT = Shot(3, 1.0, CAMERA)
RAMP = np.stack([np.arange(256, dtype=np.uint8)] * 3, axis=-1)[None]


def test_srgb_codes_survive_linear_light():
    np.testing.assert_array_equal(encode_srgb_image(decode_srgb_image(RAMP)), RAMP)
    assert decode_srgb_image(np.array([188], np.uint8))[0] == pytest.approx(0.5, abs=0.005)


def test_exposure_scales_light_by_powers_of_two():
    lighting = Lighting(exposure=1.5)
    assert Exposure(stops=-1).lighting(lighting, SHOT).exposure == pytest.approx(0.75)
    swinging = Exposure(swing_stops=1.0, swing_period_s=4.0)
    assert swinging.lighting(lighting, SHOT).exposure == pytest.approx(3.0)
    later = Shot(3, 3.0, CAMERA)
    assert swinging.lighting(lighting, later).exposure == pytest.approx(0.75)


def test_gamma_keeps_black_and_white_and_bends_the_middle():
    curved = Gamma(gamma=2.0).color(RAMP, SHOT)[0, :, 0]
    assert (curved[0], curved[255]) == (0, 255)
    assert curved[128] == round(255 * (128 / 255) ** 2)
    np.testing.assert_array_equal(Gamma(gamma=1.0).color(RAMP, SHOT), RAMP)


def test_white_balance_multiplies_linear_light_and_saturates():
    image = np.full((1, 1, 3), 100, np.uint8)
    red, green, blue = WhiteBalance(gains=(2.0, 1.0, 0.5)).color(image, SHOT)[0, 0]
    light = decode_srgb_image(image)[0, 0, 0]
    assert decode_srgb_image(np.array(red)) == pytest.approx(2 * light, rel=0.02)
    assert green == 100
    assert decode_srgb_image(np.array(blue)) == pytest.approx(light / 2, rel=0.02)
    assert WhiteBalance(gains=(9.0, 1.0, 1.0)).color(RAMP, SHOT)[0, 255, 0] == 255


def test_blur_averages_light_not_codes():
    black, white = np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 255, np.uint8)
    np.testing.assert_array_equal(
        MotionBlur().average_images([black, white]), np.full((2, 2, 3), 188)
    )


def test_blur_samples_lie_evenly_within_the_shutter_time():
    times = MotionBlur(shutter_s=0.1, samples=4).sample_times_s(2.0)
    np.testing.assert_allclose(times, [1.9625, 1.9875, 2.0125, 2.0375])
