"""CompressedImage as image_transport's plugins write it."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest
from support.images import encoded_image

from osmabench_ros.base.images import color_of
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bag_messages import unpack_image

COLOR = np.zeros((16, 24, 3), np.uint8)
COLOR[:, :12] = (200, 40, 20)
COLOR[:, 12:] = (10, 60, 220)
DEPTH_MM = np.arange(16 * 24, dtype=np.uint16).reshape(16, 24) * 20


def message(form, data):
    return SimpleNamespace(header='the header', format=form, data=np.frombuffer(data, np.uint8))


@pytest.mark.parametrize(
    ('form', 'kind', 'written', 'expected'),
    [
        ('rgb8; png compressed bgr8', 'PNG', COLOR, COLOR),
        ('png', 'PNG', COLOR, COLOR),
        ('rgb8; png compressed rgb8', 'PNG', COLOR[..., ::-1], COLOR),
        ('rgb8; jpeg compressed bgr8', 'JPEG', COLOR, COLOR),
        ('mono8; png compressed ', 'PNG', COLOR[..., 0], COLOR[..., [0, 0, 0]]),
    ],
)
def test_colour_is_as_seen(form, kind, written, expected):
    options = {'quality': 95, 'subsampling': 0} if kind == 'JPEG' else {}
    image = unpack_image(message(form, encoded_image(written, kind, **options)))
    assert (image.header, image.encoding, image.step) == ('the header', 'rgb8', 72)
    np.testing.assert_allclose(color_of(image), expected, atol=0 if kind == 'PNG' else 12)


@pytest.mark.parametrize('plugin', ['compressed', 'compressedDepth'])
def test_depth_in_millimetres_is_exact(plugin):
    data = encoded_image(DEPTH_MM)
    if plugin == 'compressedDepth':
        data = struct.pack('<iff', 0, 0.0, 0.0) + data
    form = '16UC1; compressedDepth png' if 'D' in plugin else '16UC1; png compressed '
    image = unpack_image(message(form, data))
    assert image.encoding == '16UC1'
    np.testing.assert_array_equal(image.data.view('<u2').reshape(16, 24), DEPTH_MM)


def test_inverse_depth_becomes_metres_and_zero_stays_unknown():
    # As the plugin computes it, for depths up to 10 m in steps of 100.
    scale = 100.0 * (100.0 + 1.0)
    offset = 1.0 - scale / 10.0
    depth_m = np.linspace(0.5, 9.5, 16 * 24).astype(np.float32).reshape(16, 24)
    inverse = (scale / depth_m + offset).astype(np.uint16)
    inverse[0, 0] = 0
    data = struct.pack('<iff', 0, scale, offset) + encoded_image(inverse)
    image = unpack_image(message('32FC1; compressedDepth png', data))
    found = image.data.view('<f4').reshape(16, 24)
    assert np.isnan(found[0, 0])
    np.testing.assert_allclose(found.ravel()[1:], depth_m.ravel()[1:], atol=0.01)


@pytest.mark.parametrize(
    ('form', 'data', 'reason'),
    [
        ('16UC1; compressedDepth rvl', bytes(40), 'is not PNG; record depth'),
        ('rgb8; jpeg compressed bgr8', b'no image', 'is not an image of a format'),
        ('rgb8; jpeg compressed bgr8', encoded_image(COLOR, 'JPEG')[:200], 'is broken'),
        ('16UC1; png compressed ', encoded_image(COLOR[..., 0]), 'pixels of 8 bits'),
        ('16UC1; compressedDepth png', bytes(12) + encoded_image(COLOR), 'one channel of 16'),
    ],
)
def test_what_cannot_be_unpacked_says_why(form, data, reason):
    with pytest.raises(SequenceError, match=reason):
        unpack_image(message(form, data))
