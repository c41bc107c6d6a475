"""When a map that was announced is given up."""

from types import SimpleNamespace

import pytest

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.announced_map import MapArrival

MESSAGE = SimpleNamespace(participant='mapper', chunk_count=10, payload_size=2**20)


def follow(missing_at, step_s=1.0):
    """Look once per step at a map; return when it was given up, or how long it was not."""
    arrival = MapArrival(MESSAGE, stall_s=5.0, now_s=100.0)
    now_s = 100.0
    for missing in missing_at:
        now_s += step_s
        try:
            arrival.check(missing, now_s)
        except ContractError:
            break
    return now_s - 100.0


@pytest.mark.parametrize(
    ('missing_at', 'step_s', 'given_up_s'),
    [
        ([10] * 50, 1.0, 6.0),  # nothing comes
        ([9, 8, 7] + [7] * 50, 1.0, 9.0),  # it ceases to come
        ([10, 5, 2, 1, 0], 1.0, 5.0),  # it comes: never given up
        ([10, 10], 3600.0, 7200.0),  # time of a stopped process does not count
    ],
)
def test_a_map_that_does_not_come_is_given_up(missing_at, step_s, given_up_s):
    assert follow(missing_at, step_s) == given_up_s


def test_the_error_names_what_did_not_come():
    with pytest.raises(
        ContractError, match=r'10 of the 10 chunks .* mapper .*no new one for 0.5 s'
    ):
        MapArrival(MESSAGE, stall_s=0.5, now_s=0.0).check(10, 1.0)
