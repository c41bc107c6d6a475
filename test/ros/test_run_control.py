"""The states of a run after commands, and the commands that each state refuses."""

import pytest

from osmabench_ros.ros.node.run_control import RunControl, RunPhase, WrongStateError

WAITING, RUNNING, PAUSED = RunPhase.WAITING, RunPhase.RUNNING, RunPhase.PAUSED
FINISHED, FAILED = RunPhase.FINISHED, RunPhase.FAILED


def after(words):
    """Return a run of an active node after commands, such as 'match pause step:2 frame'."""
    control = RunControl('held' in words.split())
    control.active = True
    for word in words.split():
        apply(control, word)
    return control


def apply(control, word):
    name, _, number = word.partition(':')
    if name == 'inactive':
        control.active = False
    elif name == 'frame':
        assert control.may_publish
        assert not control.end_steps()
        control.count_frame()
    elif name == 'end':
        assert control.end_steps()
    elif name == 'step':
        control.step(int(number))
    elif name != 'held':
        getattr(control, name)()


@pytest.mark.parametrize(
    ('words', 'phase', 'may_publish'),
    [
        ('', WAITING, False),
        ('match', RUNNING, True),
        ('match inactive', PAUSED, False),
        ('held', PAUSED, False),
        ('held start', WAITING, False),
        ('held start match', RUNNING, True),
        ('match pause', PAUSED, False),
        ('match pause start', RUNNING, True),
        # A pause while the run waits holds the first frame.
        ('pause match', PAUSED, False),
        ('match pause step:0 frame', RUNNING, False),
        ('match pause step:3 frame frame', RUNNING, True),
        ('match pause step:3 frame frame frame', RUNNING, False),
        ('match pause step:1 frame end', PAUSED, False),
        # Steps that are asked for meanwhile follow, also while the last frame is mapped.
        ('match pause step:1 step:2 frame frame frame', RUNNING, False),
        ('match pause step:1 frame step:1 frame end', PAUSED, False),
        ('match pause step:5 pause', PAUSED, False),
        ('match pause step:1 start frame frame', RUNNING, True),
        ('match finish', FINISHED, False),
        ('match finish reset', WAITING, False),
        ('match finish reset match', RUNNING, True),
        ('match pause reset', PAUSED, False),
        ('match pause step:2 reset', PAUSED, False),
        ('held start match finish reset', PAUSED, False),
        ('match fail', FAILED, False),
    ],
)
def test_commands_lead_to_a_state(words, phase, may_publish):
    control = after(words)
    assert (control.phase, control.may_publish) == (phase, may_publish)


@pytest.mark.parametrize(
    ('words', 'refused', 'reason'),
    [
        ('match inactive', 'start pause reset step:1', 'not active'),
        ('match', 'start', 'already'),
        ('match', 'step:1', 'not paused'),
        ('match pause', 'pause', 'already'),
        ('match finish', 'start pause step:1', 'reset'),
        ('match fail', 'start reset', 'failed'),
    ],
)
def test_a_state_refuses_commands_with_the_reason(words, refused, reason):
    for word in refused.split():
        control = after(words)
        with pytest.raises(WrongStateError, match=reason):
            apply(control, word)
