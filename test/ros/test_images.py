from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image
from support.world import bags

from osmabench_ros.base.images import PIXEL_TYPES, color_of, instances_of
from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.ros.messages import images


@pytest.mark.parametrize('encoding', ['rgb8', '32FC1', '16UC1', '32SC1'])
def test_images_survive_the_message(encoding):
    dtype, channels = PIXEL_TYPES[encoding]
    shape = (5, 7, channels) if channels > 1 else (5, 7)
    image = np.random.default_rng(0).integers(0, 255, shape).astype(dtype)
    message = images.image_to_message(image, encoding, Time(sec=3), 'camera')
    again = images.image_from_message(message, 'topic')
    np.testing.assert_array_equal(again, image)
    assert again.dtype == dtype
    assert message.step * message.height == len(message.data)


def test_rows_may_be_padded_and_bgr_is_turned():
    message = images.image_to_message(np.zeros((2, 2, 3), np.uint8), 'rgb8', Time(), '')
    message.encoding, message.step = 'bgr8', 8
    message.data = bytes([1, 2, 3, 4, 5, 6, 0, 0] * 2)
    np.testing.assert_array_equal(color_of(message)[0], [[3, 2, 1], [6, 5, 4]])


BLUE_GREEN_RED = {
    'rgb8': [3, 2, 1],
    'bgr8': [1, 2, 3],
    'rgba8': [3, 2, 1, 9],
    'bgra8': [1, 2, 3, 9],
}


@pytest.mark.parametrize('encoding', [*BLUE_GREEN_RED, 'mono8'])
@pytest.mark.parametrize('kind', ['rclpy', 'rosbags'])
def test_every_camera_of_a_bag_is_one_live_and_its_pixels_are_rgb(encoding, kind):
    pixel = BLUE_GREEN_RED.get(encoding, [5])
    values = {'height': 2, 'width': 3, 'step': 3 * len(pixel), 'encoding': encoding}
    data = np.array(pixel * 6, np.uint8)
    if kind == 'rclpy':
        message = Image(**values, data=data.tobytes())
    else:
        message = bags.make('sensor_msgs/Image', **values, data=data)
    color = images.image_from_message(message, 't', color_of)
    expected = [5, 5, 5] if encoding == 'mono8' else [3, 2, 1]
    np.testing.assert_array_equal(color, np.broadcast_to(np.uint8(expected), (2, 3, 3)))


def test_a_read_only_image_at_an_odd_address_becomes_one_that_can_be_used():
    stored = np.arange(6, dtype='>i4').reshape(2, 3)
    data = np.frombuffer(b'x' + stored.tobytes(), np.uint8)[1:]
    message = SimpleNamespace(
        height=2, width=3, step=12, encoding='32SC1', is_bigendian=1, data=data
    )
    ids = instances_of(message)
    np.testing.assert_array_equal(ids, stored)
    assert ids.flags.writeable
    assert ids.flags.aligned
    assert ids.dtype == np.dtype(np.int32)


def test_depth_is_no_colour():
    message = images.image_to_message(np.zeros((4, 4), np.float32), '32FC1', Time(), '')
    expected = '"camera/x": encoding "32FC1" is not supported; publish rgb8, bgr8'
    with pytest.raises(ContractError, match=expected):
        images.image_from_message(message, 'camera/x', color_of)


def test_millimetres_become_metres_and_zero_becomes_invalid():
    message = images.image_to_message(np.array([[0, 1500]], np.uint16), '16UC1', Time(), '')
    depth = images.depth_from_message(message, 't')
    assert np.isnan(depth[0, 0])
    assert depth[0, 1] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'height': 5}, '4 x 5'),
        ({'encoding': 'yuv422'}, 'yuv422'),
        ({'height': 0, 'width': 0, 'step': 0, 'data': b''}, 'do not make'),
        ({'height': 0, 'width': 2**32 - 1, 'step': 2**32 - 1, 'data': b''}, 'do not make'),
        ({'width': 0, 'step': 0}, 'do not make'),
        ({'height': 2**32 - 1, 'width': 2**31}, 'do not make'),
        ({'width': 2**32 - 1}, 'do not make'),
    ],
)
def test_an_image_that_cannot_be_one_is_refused_by_name(changes, message):
    image = images.image_to_message(np.zeros((4, 4), np.uint16), '16UC1', Time(), '')
    for name, value in changes.items():
        setattr(image, name, value)
    with pytest.raises(ContractError, match=f'"camera/x".*{message}'):
        images.image_from_message(image, 'camera/x')


def test_camera_info_is_filled_and_comes_back():
    intrinsics = Intrinsics(640, 480, 500.0, 510.0, 319.5, 239.5)
    message = images.camera_info_message(intrinsics, Time(), 'camera')
    assert list(message.p)[:3] == [500.0, 0.0, 319.5]
    assert list(message.d) == [0.0] * 5
    assert message.distortion_model == 'plumb_bob'
    assert images.intrinsics_from_message(message, 't') == intrinsics
    message.d = [0.1, 0.0, 0.0, 0.0, 0.0]
    with pytest.raises(ContractError, match='rectified'):
        images.intrinsics_from_message(message, 't')
