import numpy as np
import pytest

from osmabench_ros.metrics.message_timing import MessageTiming, message_timing

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
