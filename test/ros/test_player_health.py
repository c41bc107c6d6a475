from types import SimpleNamespace

import pytest
from osmabench_ros.msg import ParticipantState

from osmabench_ros.nodes.frame_player import player_health
from osmabench_ros.ros.node.diagnostics import Level
from osmabench_ros.ros.node.run_control import RunPhase

NAN = float('nan')


def player(*states, real_time_factor=1.0, runs_free=False):
    """Return the state of a run as a player has it."""
    return SimpleNamespace(
        real_time_factor=real_time_factor, rate_hz=10.0, published=100, runs_free=runs_free,
        participants=lambda: states,
    )  # fmt: skip


def mapper(acknowledged, dropped, processing_s=0.02):
    median, p95 = (0.05, 0.08) if acknowledged else (NAN, NAN)
    return ParticipantState(
        participant='mapper', frames_acknowledged=acknowledged, frames_mapped=acknowledged,
        frames_dropped=dropped, latency_p50=median, latency_p95=p95,
        processing_time_mean=processing_s,
    )  # fmt: skip


def test_a_run_that_goes_well_is_ok_with_every_figure():
    health = player_health(player(mapper(100, 0)), RunPhase.RUNNING, 1.0)
    assert (health.level, health.message) == (Level.OK, 'running')
    assert health.values == {
        'rate_hz': 10.0,
        'real_time_factor': 1.0,
        'frames_published': 100,
        'frames_dropped': 0,
        'mapper.frames_mapped': 100,
        'mapper.frames_dropped': 0,
        'mapper.latency_p50_s': 0.05,
        'mapper.latency_p95_s': 0.08,
        'mapper.processing_time_mean_s': 0.02,
    }


def test_lockstep_that_does_not_wait_is_a_warning_with_the_remedy():
    health = player_health(player(runs_free=True), RunPhase.RUNNING, None)
    assert health.level is Level.WARN
    assert health.message.startswith('running: no participant acknowledges frames')
    assert 'NAME:acks' in health.message


@pytest.mark.parametrize(
    ('dropped', 'level'), [(0, Level.OK), (5, Level.OK), (6, Level.WARN), (50, Level.WARN)]
)
def test_more_than_five_percent_of_loss_is_a_warning(dropped, level):
    health = player_health(player(mapper(100 - dropped, dropped)), RunPhase.FINISHED, 2.0)
    assert health.level is level
    if level is Level.WARN:
        assert health.message == f'finished: mapper dropped {dropped}% of its frames'


@pytest.mark.parametrize(
    ('factor', 'asked', 'phase', 'level'),
    [
        (0.89, 1.0, RunPhase.RUNNING, Level.WARN),
        (0.91, 1.0, RunPhase.RUNNING, Level.OK),
        (0.5, 0.5, RunPhase.RUNNING, Level.OK),
        (0.5, None, RunPhase.RUNNING, Level.OK),
        (0.5, 1.0, RunPhase.FINISHED, Level.OK),
        (0.0, 1.0, RunPhase.RUNNING, Level.OK),
    ],
)
def test_a_bridge_that_cannot_keep_the_speed_warns(factor, asked, phase, level):
    assert player_health(player(real_time_factor=factor), phase, asked).level is level


def test_unknown_figures_are_left_out():
    health = player_health(player(mapper(0, 0, NAN)), RunPhase.RUNNING, None)
    known = [name for name in health.values if name.startswith('mapper.')]
    assert known == ['mapper.frames_mapped', 'mapper.frames_dropped']
