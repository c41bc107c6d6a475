import base64
import io

import numpy as np
import pytest
from PIL import Image
from support.world import box_room

from osmabench_ros.base.images import select_evenly
from osmabench_ros.errors import RunError
from osmabench_ros.reports.pictures import sample_frames

TABLE, CUP, SOFA = 6, 7, 8


def test_a_camera_shows_what_lies_before_it(truth):
    shown = sample_frames.find_shown_instances(truth, box_room.look((-0.5, 0, 1.4), (1.4, 0, 0.6)))
    assert {TABLE, CUP} <= set(shown)
    assert SOFA not in shown


def test_what_is_behind_something_is_not_shown(truth):
    from_the_floor = box_room.look((0, 0, 0.2), (1.4, 0, 0.4))
    shown = sample_frames.find_shown_instances(truth, from_the_floor)
    assert TABLE in shown
    assert CUP not in shown


def test_rectangles_hold_what_they_frame(truth):
    position, target = (-0.5, 0, 1.4), (1.35, -0.05, 0.78)
    count, (left, top, width, height) = sample_frames.find_shown_instances(
        truth, box_room.look(position, target)
    )[CUP]
    assert count >= 4
    assert left < 50 < left + width
    assert top < 50 < top + height
    assert width < 20


def test_frames_come_with_their_times_and_contents(matrix, truth):
    frames = sample_frames.pick_sample_frames(matrix.plans[0], truth)
    assert [frame.index for frame in frames] == [0, 3, 6]
    assert [frame.time_s for frame in frames] == [0.0, 0.6, 1.2]
    assert all(frame.uri.startswith('data:image/webp;base64,') for frame in frames)
    assert frames[0].shows


def test_a_run_without_kept_frames_has_none(matrix, truth):
    broken = matrix.plans[2]
    assert broken.identity.mapper == 'broken'
    assert sample_frames.pick_sample_frames(broken, truth) == []


def test_many_frames_are_thinned_evenly():
    assert select_evenly(range(100), 4) == [0, 33, 66, 99]
    assert select_evenly([3, 5], 4) == [3, 5]


def decoded(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(',')[1])))


def test_a_png_keeps_colours_and_transparency():
    image = np.zeros((4, 6, 4), np.uint8)
    image[:2, :, :] = (200, 30, 10, 255)
    image[2:, :3, :] = (10, 90, 250, 255)
    found = np.asarray(decoded(sample_frames.encode_drawing(image)).convert('RGBA'))
    assert (found[..., 3] == image[..., 3]).all()
    assert np.abs(found[:2].astype(int) - image[:2]).max() <= 8
    assert np.abs(found[2:, :3].astype(int) - image[2:, :3]).max() <= 8


def test_photos_shrink_to_the_width_and_never_grow(tmp_path):
    path = tmp_path / '000000.png'
    Image.fromarray(np.full((60, 80, 3), 120, np.uint8)).save(path)
    assert decoded(sample_frames.encode_photo(path, 40)).size == (40, 30)
    assert decoded(sample_frames.encode_photo(path, 400)).size == (80, 60)


def test_a_file_that_is_no_image_is_named(tmp_path):
    path = tmp_path / '000000.png'
    path.write_text('text')
    with pytest.raises(RunError, match=r'000000\.png is not an image'):
        sample_frames.encode_photo(path, 40)
