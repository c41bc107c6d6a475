from support.world import box_room

from osmabench_ros.base.images import select_evenly
from osmabench_ros.reports.pictures.sample_frames import (
    find_shown_instances,
    pick_sample_frames,
)

TABLE, CUP, SOFA = 6, 7, 8


def test_a_camera_shows_what_lies_before_it(truth):
    shown = find_shown_instances(truth, box_room.look((-0.5, 0, 1.4), (1.4, 0, 0.6)))
    assert {TABLE, CUP} <= set(shown)
    assert SOFA not in shown


def test_what_is_behind_something_is_not_shown(truth):
    from_the_floor = find_shown_instances(truth, box_room.look((0, 0, 0.2), (1.4, 0, 0.4)))
    assert TABLE in from_the_floor
    assert CUP not in from_the_floor


def test_rectangles_hold_what_they_frame(truth):
    position, target = (-0.5, 0, 1.4), (1.35, -0.05, 0.78)
    count, (left, top, width, height) = find_shown_instances(
        truth, box_room.look(position, target)
    )[CUP]
    assert count >= 4
    assert left < 50 < left + width
    assert top < 50 < top + height
    assert width < 20


def test_frames_come_with_their_times_and_contents(matrix, truth):
    frames = pick_sample_frames(matrix.plans[0], truth)
    assert [frame.index for frame in frames] == [0, 3, 6]
    assert [frame.time_s for frame in frames] == [0.0, 0.6, 1.2]
    assert all(frame.uri.startswith('data:image/webp;base64,') for frame in frames)
    assert frames[0].shows


def test_a_run_without_kept_frames_has_none(matrix, truth):
    broken = matrix.plans[2]
    assert broken.identity.mapper == 'broken'
    assert pick_sample_frames(broken, truth) == []


def test_many_frames_are_thinned_evenly():
    assert select_evenly(range(100), 4) == [0, 33, 66, 99]
    assert select_evenly([3, 5], 4) == [3, 5]
