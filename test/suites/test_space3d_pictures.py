"""Pictures of an exported scene: what lies at +x is on the right, seen from above."""

import io

import numpy as np
import pytest
from PIL import Image
from support.furnished_room import furnished_room

from osmabench_ros.suites.space3d.export import _room_pictures


@pytest.mark.gl
def test_a_scene_without_rooms_is_one_picture_from_above():
    ((name, shown),) = _room_pictures(furnished_room())
    pixels = np.asarray(Image.open(io.BytesIO(shown))).astype(int)
    assert (name, pixels.shape) == ('room.png', (768, 768, 3))
    red, green, blue = np.moveaxis(pixels, -1, 0)
    bed = np.argwhere((blue > red + 25) & (blue > green + 25))
    sofa = np.argwhere((red > blue + 60) & (red > green + 60))
    # The bed is at x = 3.1 m, the sofa at -3.5 m, both at y = 0; the vase is at y = 2.5 m.
    assert len(bed) > 1000 < len(sofa)
    assert bed[:, 1].mean() > 600 > 170 > sofa[:, 1].mean()
    assert abs(np.median(bed[:, 0]) - 384) < 40
