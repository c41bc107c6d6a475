import base64
import io

import numpy as np
import pytest
from PIL import Image

from osmabench_ros.errors import RunError
from osmabench_ros.reports.pictures.sample_frames import encode_drawing, encode_photo


def decoded(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(',')[1])))


def test_a_png_keeps_colours_and_transparency():
    image = np.zeros((4, 6, 4), np.uint8)
    image[:2, :, :] = (200, 30, 10, 255)
    image[2:, :3, :] = (10, 90, 250, 255)
    found = np.asarray(decoded(encode_drawing(image)).convert('RGBA'))
    assert (found[..., 3] == image[..., 3]).all()
    assert np.abs(found[:2].astype(int) - image[:2]).max() <= 8
    assert np.abs(found[2:, :3].astype(int) - image[2:, :3]).max() <= 8


def test_photos_shrink_to_the_width_and_never_grow(tmp_path):
    path = tmp_path / '000000.png'
    Image.fromarray(np.full((60, 80, 3), 120, np.uint8)).save(path)
    assert decoded(encode_photo(path, 40)).size == (40, 30)
    assert decoded(encode_photo(path, 400)).size == (80, 60)


def test_a_file_that_is_no_image_is_named(tmp_path):
    path = tmp_path / '000000.png'
    path.write_text('text')
    with pytest.raises(RunError, match=r'000000\.png is not an image'):
        encode_photo(path, 40)
