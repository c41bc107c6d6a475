import numpy as np
import pytest

from osmabench_ros.metrics.message_timing import MessageTiming, StalenessMeter, message_timing

S = 10**9


def stamps(*seconds):
    return (np.array(seconds) * S).astype(np.int64)


def test_rate_gaps_and_latency():
    log = stamps(10, 11, 12, 16, 17)
    found = message_timing(log, log - stamps(0.1, 0.1, 0.2, 0.5, 0.1))
    assert (found.count, found.duration_s, found.gaps) == (5, 7, 1)
    assert found.rate_hz == pytest.approx(4 / 7)
    assert (found.median_interval_s, found.longest_interval_s) == (1, 4)
    assert found.latency_p50_s == pytest.approx(0.1)
    assert found.latency_max_s == pytest.approx(0.5)
    assert found.latency_p95_s == pytest.approx(np.percentile([0.1, 0.1, 0.2, 0.5, 0.1], 95))


def test_simulated_time_is_read_from_the_clock():
    """Half real time: a message stamped 3 s comes when the clock shows 4 s."""
    clock = stamps(1000, 1002, 1004, 1006, 1008), stamps(0, 1, 2, 3, 4)
    found = message_timing(stamps(1008.5), stamps(3), clock)
    assert found.latency_p50_s == pytest.approx(1.0)


def test_stamps_of_another_clock_or_none_give_no_latency():
    log = stamps(1000, 1001)
    assert message_timing(log, stamps(5, 6)).latency_p50_s is None
    assert message_timing(log, log + S).latency_p50_s is None
    assert message_timing(log, np.zeros(2, np.int64)).latency_p50_s is None
    assert message_timing(log, None).rate_hz == pytest.approx(1)
    assert message_timing(stamps(), None) == MessageTiming(0)
    assert message_timing(stamps(7), None).rate_hz is None


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
