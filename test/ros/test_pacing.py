import pytest

from osmabench_ros.errors import ParticipantError
from osmabench_ros.nodes.frame_player import Acknowledgements, RealtimeClock


def test_an_older_frame_is_not_the_one_that_is_owed():
    acks = Acknowledgements(['a'], timeout_s=10.0)
    acks.expect(50, 0.0)
    acks.expect(100, 0.0)
    acks.receive('a', 50, 9.0)
    assert not acks.complete
    acks.check(18.0, 1)
    with pytest.raises(ParticipantError, match='frame 1 from a within 10 s'):
        acks.check(19.5, 1)


def test_a_pause_delays_no_participant():
    acks = Acknowledgements(['a'], timeout_s=5.0)
    acks.expect(100, 0.0)
    acks.resume(100.0)
    acks.check(104.0, 0)
    with pytest.raises(ParticipantError, match='frame 0 from a within 5 s'):
        acks.check(105.5, 0)


def test_a_pause_is_not_caught_up_with():
    clock = RealtimeClock(speed_factor=1.0)
    assert clock.due(1_000_000_000, now_s=0.0)
    clock.resume()
    assert clock.due(2_000_000_000, now_s=100.0)
    assert not clock.due(3_000_000_000, now_s=100.9)
    assert clock.due(3_000_000_000, now_s=101.0)
