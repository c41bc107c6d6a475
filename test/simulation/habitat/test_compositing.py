import numpy as np

from osmabench_ros.base.images import decode_srgb_image, encode_srgb_image
from osmabench_ros.simulation.habitat.lights import combine_images

LEVELS = np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None, None], (256, 4, 3))


def test_textures_alone_are_untouched_and_no_light_is_black():
    for lit in (None, np.zeros_like(LEVELS)):
        np.testing.assert_array_equal(combine_images(LEVELS, lit, unlit_factor=1.0), LEVELS)
    assert combine_images(LEVELS, None, unlit_factor=0.0).max() == 0


def test_light_is_added_in_linear_colours():
    rng = np.random.default_rng(3)
    unlit, lit = rng.integers(0, 256, (2, 50, 60, 3), np.uint8)
    image = combine_images(unlit, lit, unlit_factor=0.42, lit_factor=1.4)
    expected = encode_srgb_image(1.4 * (0.3 * decode_srgb_image(unlit) + (lit / 255.0) ** 2.2))
    assert np.abs(image.astype(int) - expected).max() <= 1


def test_exposure_scales_a_picture_that_is_encoded_as_srgb():
    image = combine_images(None, LEVELS, unlit_factor=0.0, lit_factor=0.25, lit_is_srgb=True)
    dimmed = encode_srgb_image(0.25 * decode_srgb_image(LEVELS))
    assert np.abs(image.astype(int) - dimmed).max() <= 1
    same = combine_images(None, LEVELS, unlit_factor=0.0, lit_is_srgb=True)
    np.testing.assert_array_equal(same, LEVELS)


def test_spots_are_added_by_their_share():
    rng = np.random.default_rng(4)
    unlit, spot = rng.integers(0, 256, (2, 50, 60, 3), np.uint8)
    share = rng.random((50, 60), np.float32)
    image = combine_images(unlit, None, [(spot, share), (spot, 2 * share)], unlit_factor=0.2)
    expected = encode_srgb_image(
        0.2 * decode_srgb_image(unlit) + 3 * share[..., None] * (spot / 255.0) ** 2.2
    )
    assert np.abs(image.astype(int) - expected).max() <= 1
