from osmabench_ros.sequences.bags.recording_report import SETTLE_S, FrameLedger

POSE, COLOR, DEPTH = '/pose', '/color', '/depth'


def ledger():
    made = FrameLedger(POSE)
    made.expect([POSE, COLOR, DEPTH])
    return made


def receive(made, stamps, *names):
    return [made.receive(name, stamp, 0.0) for stamp in stamps for name in names]


def test_a_frame_is_complete_when_all_its_topics_are():
    made = ledger()
    assert receive(made, range(1, 3), POSE, COLOR, DEPTH) == [False, False, True] * 2
    assert not made.receive(DEPTH, 3, 0.0)
    assert not made.receive(POSE, 4, 0.0)
    assert not made.receive(COLOR, 3, 0.0)
    assert made.receive(POSE, 3, 0.0)


def test_topics_that_carry_nothing_are_not_waited_for():
    made = ledger()
    assert receive(made, range(1, 2), POSE, COLOR) == [False, False]
    assert made.settle(SETTLE_S / 2) == []
    assert made.settle(SETTLE_S + 0.1) == [1]
    assert receive(made, range(2, 4), POSE, COLOR) == [False, True] * 2


def test_a_frame_that_is_sent_again_is_acknowledged_again_but_counted_once():
    made = ledger()
    receive(made, range(1, 2), POSE, COLOR, DEPTH)
    assert receive(made, range(1, 2), POSE, COLOR, DEPTH) == [True, False, False]
    made.run_state(0, 0)
    made.run_state(1, 1)
    assert made.losses()[2] == {POSE: 0, COLOR: 0, DEPTH: 0}


def test_losses_are_counted_by_the_run_from_when_the_recorder_joined():
    made = ledger()
    receive(made, range(95, 101), POSE)
    made.run_state(100, 100)
    receive(made, range(101, 111), POSE, COLOR)
    receive(made, range(101, 108), DEPTH)
    made.run_state(112, 112)
    assert made.losses() == (12, 'run_state', {POSE: 2, COLOR: 2, DEPTH: 5})


def test_without_a_run_the_topics_are_compared_with_each_other():
    made = ledger()
    receive(made, range(1, 11), POSE)
    receive(made, range(3, 11), COLOR)
    assert made.losses() == (10, 'stamps', {POSE: 0, COLOR: 2})
    assert FrameLedger(POSE).losses()[0] == 0
