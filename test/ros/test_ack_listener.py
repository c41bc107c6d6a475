"""When an acknowledgement arrived, whatever the middleware and the system clock say."""

import pytest

pytest.importorskip('rclpy')

from osmabench_ros.nodes.simulator_bridge.ack_listener import age_s

NOW_NS = 1_763_000_000_000_000_000


def test_the_age_counts_from_the_arrival() -> None:
    assert age_s(NOW_NS - 250_000_000, NOW_NS) == 0.25


def test_a_middleware_without_arrival_times_makes_no_participant_late() -> None:
    assert age_s(0, NOW_NS) == 0.0


def test_a_system_clock_that_was_set_back_makes_no_participant_early() -> None:
    assert age_s(NOW_NS + 10**12, NOW_NS) == 0.0
