import numpy as np
import pytest

from osmabench_ros.metrics.message_timing import StalenessMeter

S = 10**9


def test_it_is_the_mean_of_a_staircase_over_wall_time():
    # Frames of one second each come every half second; maps after the second and the fifth.
    frames = [(0.5 * i, i) for i in range(5)]
    maps = [(0.7, 1), (3.0, 4)]
    meter = StalenessMeter()
    events = sorted([(t, 'f', s) for t, s in frames] + [(t, 'm', s) for t, s in maps])
    for wall_s, kind, stamp_s in events:
        (meter.published if kind == 'f' else meter.mapped)(stamp_s * S, wall_s)
    found = meter.result()
    # The same, sampled finely.
    walls = np.arange(0.0, 3.0, 0.001) + 0.0005
    newest = [max(s for t, s in frames if t <= wall) for wall in walls]
    mapped = [max([s for t, s in maps if t <= wall], default=0) for wall in walls]
    lag = np.array(newest) - np.array(mapped)
    assert found.mean_s == pytest.approx(lag.mean(), abs=1e-3)
    assert (found.max_s, found.final_s, found.maps) == (3.0, 0.0, 2)


def test_a_map_that_lacks_the_last_frames_stays_stale():
    meter = StalenessMeter()
    for i in range(4):
        meter.published((10 + i) * S, float(i))
    meter.mapped(12 * S, 4.0)
    found = meter.result()
    assert found.final_s == 1.0
    assert found.max_s == 3.0


def test_without_a_map_or_a_frame_there_is_no_staleness():
    meter = StalenessMeter()
    meter.mapped(5 * S, 0.0)
    assert meter.result() is None
    meter.published(5 * S, 1.0)
    assert meter.result() is None


def test_a_stamp_from_the_future_does_not_make_a_map_fresher_than_now():
    meter = StalenessMeter()
    meter.published(1 * S, 0.0)
    meter.mapped(99 * S, 1.0)
    meter.published(3 * S, 2.0)
    meter.mapped(1 * S, 3.0)
    found = meter.result()
    assert found.final_s == 2.0
