import pytest

from osmabench_ros.nodes.ack_listener import age_s

NOW_NS = 1_763_000_000_000_000_000


@pytest.mark.parametrize(
    ('received_ns', 'age'),
    [(NOW_NS - 250_000_000, 0.25), (0, 0.0), (NOW_NS + 10**12, 0.0)],
    ids=['usual', 'middleware without arrival times', 'system clock set back'],
)
def test_the_age_counts_from_the_arrival_if_it_is_known(received_ns, age):
    assert age_s(received_ns, NOW_NS) == age
