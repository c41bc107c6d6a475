"""When an acknowledgement arrived, whatever the middleware and the system clock say."""

import pytest

pytest.importorskip('rclpy')

from osmabench_ros.ros.ack_listener import age_s
from osmabench_ros.ros.pacing import Acknowledgements

NOW_NS = 1_763_000_000_000_000_000


def test_the_age_counts_from_the_arrival() -> None:
    assert age_s(NOW_NS - 250_000_000, NOW_NS) == 0.25


def test_a_middleware_that_does_not_say_makes_nobody_late() -> None:
    assert age_s(0, NOW_NS) == 0.0


def test_a_system_clock_that_was_set_back_makes_nobody_early() -> None:
    assert age_s(NOW_NS + 10**12, NOW_NS) == 0.0


def test_a_system_clock_that_was_set_forward_makes_nobody_late() -> None:
    acks = Acknowledgements(['mapper'], timeout_s=5.0)
    acks.expect(100, now_s=1000.0)
    acks.expect(200, now_s=1001.0)
    acks.receive('mapper', 100, now_s=1002.0 - 3600.0)
    acks.check(1002.0, 1)
