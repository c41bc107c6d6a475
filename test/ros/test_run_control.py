import pytest

from osmabench_ros.ros.node.run_control import RunControl, RunPhase, WrongStateError


def running(start_paused: bool = False) -> RunControl:
    control = RunControl(start_paused)
    control.active = True
    if not start_paused:
        control.match()
    return control


def test_a_run_waits_until_everybody_is_matched() -> None:
    control = RunControl()
    assert control.phase is RunPhase.WAITING
    control.active = True
    assert control.phase is RunPhase.WAITING
    control.match()
    assert control.phase is RunPhase.RUNNING
    assert control.may_publish


def test_an_inactive_node_pauses_its_run() -> None:
    control = running()
    control.active = False
    assert control.phase is RunPhase.PAUSED
    for command in (control.start, control.pause, control.reset, lambda: control.step(1)):
        with pytest.raises(WrongStateError, match='not active'):
            command()
    control.active = True
    assert control.phase is RunPhase.RUNNING


def test_a_run_that_starts_paused_waits_for_participants_once_started() -> None:
    control = running(start_paused=True)
    assert control.phase is RunPhase.PAUSED
    control.start()
    assert control.phase is RunPhase.WAITING
    control.match()
    assert control.phase is RunPhase.RUNNING


def test_pause_and_start() -> None:
    control = running()
    with pytest.raises(WrongStateError, match='already'):
        control.start()
    control.pause()
    assert control.phase is RunPhase.PAUSED
    assert not control.may_publish
    with pytest.raises(WrongStateError, match='already'):
        control.pause()
    control.start()
    assert control.may_publish


def test_a_pause_while_waiting_holds_the_first_frame() -> None:
    control = RunControl()
    control.active = True
    control.pause()
    control.match()
    assert control.phase is RunPhase.PAUSED


@pytest.mark.parametrize(('asked', 'frames'), [(0, 1), (1, 1), (3, 3)])
def test_steps(asked: int, frames: int) -> None:
    control = running()
    with pytest.raises(WrongStateError, match='not paused'):
        control.step(asked)
    control.pause()
    control.step(asked)
    for _ in range(frames):
        assert control.may_publish
        assert not control.end_steps()
        control.count_frame()
    assert not control.may_publish
    assert control.phase is RunPhase.RUNNING
    assert control.end_steps()
    assert control.phase is RunPhase.PAUSED


def test_steps_that_are_asked_for_meanwhile_follow() -> None:
    control = running()
    control.pause()
    control.step(1)
    control.step(2)
    for _ in range(3):
        assert control.may_publish
        assert not control.end_steps()
        control.count_frame()
    # The last frame is out, but not yet mapped by everybody.
    assert not control.may_publish
    control.step(1)
    assert control.may_publish
    control.count_frame()
    assert control.end_steps()


def test_a_pause_cuts_steps_short_and_a_start_frees_them() -> None:
    control = running()
    control.pause()
    control.step(5)
    control.pause()
    assert control.phase is RunPhase.PAUSED
    control.step(1)
    control.start()
    control.count_frame()
    assert not control.end_steps()
    assert control.may_publish


def test_a_run_that_is_over_can_only_be_reset() -> None:
    control = running()
    control.finish()
    assert control.phase is RunPhase.FINISHED
    for command in (control.start, control.pause, lambda: control.step(1)):
        with pytest.raises(WrongStateError, match='reset'):
            command()
    control.reset()
    assert control.phase is RunPhase.WAITING
    control.match()
    assert control.phase is RunPhase.RUNNING


def test_a_paused_run_stays_paused_over_a_reset() -> None:
    control = running()
    control.pause()
    control.reset()
    assert control.phase is RunPhase.PAUSED
    control.step(2)
    control.reset()
    assert control.phase is RunPhase.PAUSED


def test_a_run_that_starts_paused_is_reset_to_its_pause() -> None:
    control = running(start_paused=True)
    control.start()
    control.match()
    control.finish()
    control.reset()
    assert control.phase is RunPhase.PAUSED


def test_a_failed_run_ends() -> None:
    control = running()
    control.fail()
    assert control.phase is RunPhase.FAILED
    for command in (control.start, control.reset):
        with pytest.raises(WrongStateError, match='failed'):
            command()
