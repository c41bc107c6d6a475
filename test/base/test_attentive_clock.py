from osmabench_ros.base.processes import AttentiveClock


def test_time_between_distant_readings_counts_little() -> None:
    steady = iter([100.0, 100.25, 100.5, 4100.0, 4100.25])
    clock = AttentiveClock(0.5, lambda: next(steady))
    assert [clock.now_s() for _ in range(4)] == [0.25, 0.5, 1.0, 1.25]
