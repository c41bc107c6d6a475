import numpy as np
import pytest

from osmabench_ros.simulation.opengl.textures import LARGEST_TEXELS, limit_texels


def test_small_textures_stay_as_they_are():
    image = np.random.default_rng(0).integers(0, 256, (30, 50, 3), np.uint8)
    assert limit_texels(image) is image


@pytest.mark.parametrize('shape', [(2048, 1024), (1, 4096), (1500, 1500)])
def test_large_textures_keep_their_shape_and_mean(shape):
    image = np.broadcast_to(np.array([10, 100, 200], np.uint8), (*shape, 3))
    small = limit_texels(np.ascontiguousarray(image))
    assert max(small.shape) == LARGEST_TEXELS
    assert (
        small.shape[0] / small.shape[1] == pytest.approx(shape[0] / shape[1], rel=0.3)
        or 1 in small.shape
    )
    np.testing.assert_array_equal(small.reshape(-1, 3).mean(axis=0), [10, 100, 200])
