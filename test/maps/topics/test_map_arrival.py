"""When a map that was announced is given up."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.topics.announced_map import MapArrival

MIB = 2**20


def follow(missing_at: Iterable[int], chunks: int = 10, step_s: float = 1.0) -> float:
    """Look once a step at a map of 10 MiB; return when it was given up, or how long it was not."""
    message: Any = SimpleNamespace(participant='mapper', chunk_count=chunks, payload_size=10 * MIB)
    arrival = MapArrival(message, stall_s=5.0, bytes_per_s=MIB, now_s=100.0)
    now_s = 100.0
    for missing in missing_at:
        now_s += step_s
        try:
            arrival.check(missing, now_s)
        except ContractError:
            break
    return now_s - 100.0


@pytest.mark.parametrize(
    ('missing_at', 'given_up_s'),
    [
        ([10] * 50, 6.0),  # nothing comes
        ([9, 8, 7] + [7] * 50, 9.0),  # it ceases to come
        ([10 - second // 4 for second in range(50)], 16.0),  # it trickles
        ([10, 5, 2, 1, 0], 5.0),  # it comes: never given up
    ],
)
def test_a_map_that_does_not_come_is_given_up(missing_at: list[int], given_up_s: float) -> None:
    assert follow(missing_at) == given_up_s


def test_time_between_distant_checks_does_not_count() -> None:
    """Such as that of a process that was stopped."""
    assert follow([10, 10], step_s=3600.0) == 2 * 3600.0


def test_what_did_not_come_is_told() -> None:
    message: Any = SimpleNamespace(
        participant='mapper', chunk_count=256, payload_size=2**31, is_final=True
    )
    arrival = MapArrival(message, stall_s=0.5, bytes_per_s=MIB, now_s=0.0)
    with pytest.raises(ContractError) as reported:
        arrival.check(256, 1.0)
    assert '256 of the 256 chunks did not come of the map that mapper announced' in str(
        reported.value
    )
    assert 'chunk_timeout_s' in str(reported.value)
