from osmabench_ros.sequences.bags.recording_report import SETTLE_S, FrameLedger

POSE, COLOR, DEPTH = '/pose', '/color', '/depth'


def ledger() -> FrameLedger:
    made = FrameLedger(POSE)
    made.expect([POSE, COLOR, DEPTH])
    return made


def heard(made: FrameLedger, stamps: range, *names: str) -> list[bool]:
    return [made.receive(name, stamp, 0.0) for stamp in stamps for name in names]


def test_a_frame_is_complete_when_all_its_topics_are() -> None:
    made = ledger()
    assert heard(made, range(1, 3), POSE, COLOR, DEPTH) == [False, False, True] * 2
    assert not made.receive(DEPTH, 3, 0.0)
    assert not made.receive(POSE, 4, 0.0)
    assert not made.receive(COLOR, 3, 0.0)
    assert made.receive(POSE, 3, 0.0)


def test_topics_that_carry_nothing_are_not_waited_for() -> None:
    made = ledger()
    assert heard(made, range(1, 2), POSE, COLOR) == [False, False]
    assert made.settle(SETTLE_S / 2) == []
    assert made.settle(SETTLE_S + 0.1) == [1]
    assert heard(made, range(2, 4), POSE, COLOR) == [False, True] * 2


def test_a_frame_that_is_sent_again_is_acknowledged_again_but_counted_once() -> None:
    made = ledger()
    heard(made, range(1, 2), POSE, COLOR, DEPTH)
    assert heard(made, range(1, 2), POSE, COLOR, DEPTH) == [True, False, False]
    made.run_state(0, 0)
    made.run_state(1, 1)
    assert made.losses().missed == {POSE: 0, COLOR: 0, DEPTH: 0}


def test_losses_are_those_of_the_runs_own_count() -> None:
    made = ledger()
    made.run_state(0, 0)
    heard(made, range(1, 11), POSE, COLOR)
    heard(made, range(1, 8), DEPTH)
    made.run_state(12, 12)
    losses = made.losses()
    assert (losses.expected, losses.source) == (12, 'run_state')
    assert losses.missed == {POSE: 2, COLOR: 2, DEPTH: 5}
    assert sum(losses.missed.values()) == 9


def test_who_comes_late_misses_nothing_before() -> None:
    made = ledger()
    heard(made, range(95, 101), POSE)
    made.run_state(100, 100)
    heard(made, range(101, 111), POSE, COLOR)
    made.run_state(110, 110)
    losses = made.losses()
    assert (losses.expected, losses.missed) == (10, {POSE: 0, COLOR: 0})


def test_without_a_run_the_topics_are_compared_with_each_other() -> None:
    made = ledger()
    heard(made, range(1, 11), POSE)
    heard(made, range(3, 11), COLOR)
    losses = made.losses()
    assert (losses.expected, losses.source) == (10, 'stamps')
    assert losses.missed == {POSE: 0, COLOR: 2}
    assert FrameLedger(POSE).losses().expected == 0
