"""When a third-party map counts as finished, without ROS."""

from osmabench_ros.nodes.map_adapter_node import MOST_PATIENCE_S, MapSettling, SettlingOutcome

FRAMES = 4


def settling(*, settle_s=1.0, timeout_s=100.0):
    """Return one that received frames 0, 10, 20, 30 at as many seconds."""
    made = MapSettling(settle_s, timeout_s)
    for index in range(FRAMES):
        made.frame(10 * index, 10.0 * index)
    return made


def mapped(made, index, now_s):
    made.message(10 * index, bytes([index]), now_s)


def settling_with_every_frame():
    made = settling()
    for index in range(FRAMES):
        mapped(made, index, 10.0 * index + 1)
    return made


def test_a_method_that_is_behind_is_waited_for_as_long_as_it_was_seen_to_take():
    made = settling()
    mapped(made, 0, 6.0)
    mapped(made, 1, 12.0)
    made.end(30.0)
    assert made.outcome(47.9) is SettlingOutcome.CHANGES
    assert made.outcome(48.1) is SettlingOutcome.SETTLED


def test_with_the_last_frame_in_the_map_the_set_time_is_enough():
    made = settling_with_every_frame()
    made.end(31.0)
    assert made.outcome(31.9) is SettlingOutcome.CHANGES
    assert made.outcome(32.1) is SettlingOutcome.SETTLED
    assert (made.frames_used, made.counted()) == (FRAMES, '')


def test_a_last_frame_that_comes_behind_the_end_is_waited_for_in_the_map():
    made = settling_with_every_frame()
    made.end(31.0, last_ns=40)
    made.frame(40, 31.5)
    assert made.outcome(40.0) is SettlingOutcome.CHANGES
    mapped(made, FRAMES, 41.0)
    assert made.outcome(42.1) is SettlingOutcome.SETTLED
    assert made.frames_used == FRAMES + 1


def test_the_same_map_again_is_no_change():
    made = settling_with_every_frame()
    made.end(31.0)
    for step in range(20):
        made.message(30, bytes([3]), 31.0 + step)
    assert made.outcome(51.0) is SettlingOutcome.SETTLED


def test_two_maps_of_one_stamp_show_that_stamps_do_not_count_frames():
    made = settling()
    mapped(made, 0, 6.0)
    made.message(30, b'a', 31.0)
    made.message(30, b'b', 32.0)
    made.end(31.0)
    # A node that stamps its maps with the time of /clock would seem to have mapped all.
    assert made.outcome(34.0) is SettlingOutcome.CHANGES
    assert made.frames_used == 0
    assert 'is unknown' in made.counted()


def test_a_map_that_never_stops_changing_is_cut_off_and_says_where():
    made = settling(timeout_s=5.0)
    for index in range(2):
        mapped(made, index, 30.0 + index)
    made.end(30.0)
    assert made.outcome(35.1) is SettlingOutcome.CUT_OFF
    assert 'settle_timeout_s' in made.why_cut_off(35.1)
    assert made.counted() == 'by the stamps of its maps it mapped 2 of 4 frames'


def test_gaps_between_the_stamps_of_maps_leave_the_count_unknown():
    made = settling()
    mapped(made, 0, 1.0)
    mapped(made, 2, 21.0)
    assert made.frames_used == 0
    assert 'the stamps of 2 of 4 frames, the newest that of frame 3' in made.counted()


def test_while_frames_go_on_a_map_of_the_last_one_is_enough():
    made = settling()
    made.end(30.0)
    made.frame(40, 31.0)
    mapped(made, 3, 32.0)
    mapped(made, 4, 32.5)
    assert made.outcome(32.6) is SettlingOutcome.SETTLED


def test_patience_has_an_end():
    made = MapSettling(1.0, 1000.0)
    made.frame(0, 0.0)
    made.message(99, b'only one, of another clock', 500.0)
    made.end(500.0)
    assert made.outcome(500.0 + MOST_PATIENCE_S - 1) is SettlingOutcome.CHANGES
    assert made.outcome(500.0 + MOST_PATIENCE_S + 1) is SettlingOutcome.SETTLED
