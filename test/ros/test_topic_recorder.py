import time

import pytest

from osmabench_ros.nodes.bag_recorder_node import steady_time_ns

HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize('set_by_ns', [-HOUR_NS, HOUR_NS])
def test_a_clock_that_is_set_while_recording_leaves_the_order_of_messages(set_by_ns, monkeypatch):
    real = time.time_ns
    log_ns = steady_time_ns()
    before = log_ns()
    assert abs(before - real()) < HOUR_NS
    monkeypatch.setattr(time, 'time_ns', lambda: real() + set_by_ns)
    assert before <= log_ns() < before + HOUR_NS
