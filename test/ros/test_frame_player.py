"""A player with a clock of the test: pacing, steps, restart, accounts."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.world.frames import FRAMES

from osmabench_ros.errors import ParticipantError
from osmabench_ros.nodes.ack_listener import Acknowledgement, ParticipantStatistics, age_s
from osmabench_ros.nodes.frame_player import Acknowledgements, FramePlayer, RealtimeClock
from osmabench_ros.ros.node.run_control import RunControl, RunPhase
from osmabench_ros.runs.config import PacingConfig, PacingMode
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.simulation.frame_source import SimulatedFrame


class Source:
    """Four recorded frames, 40 ms apart."""

    def __len__(self):
        return len(FRAMES)

    def frame(self, index):
        return SimulatedFrame(FRAMES[index], Lighting.unlit(), 0)


@dataclass
class Stage:
    """A player with everything around it."""

    lockstep: bool
    participants: tuple[str, ...] = ('mapper',)
    now_s: float = 50.0
    sent: list[int] = field(default_factory=list)
    changes: list[RunPhase] = field(default_factory=list)

    def __post_init__(self):
        self.control = RunControl()
        self.control.active = True
        self.control.match()
        mode = PacingMode.LOCKSTEP if self.lockstep else PacingMode.REALTIME
        pacing = PacingConfig(mode=mode, ack_timeout_s=5.0)
        self.player = FramePlayer(
            Source(), self.control, self.participants, pacing,
            lambda frame: self.sent.append(frame.frame.index), lambda: self.now_s,
        )  # fmt: skip

    def tick(self, seconds=0.0):
        self.now_s += seconds
        self.player.tick(lambda: self.changes.append(self.control.phase))

    def wait(self, seconds):
        for _ in range(round(seconds / 0.1)):
            self.tick(0.1)

    def acknowledge(self, index, participant='mapper', age_s=0.0):
        word = Acknowledgement(participant, FRAMES[index].stamp_ns)
        return self.player.acknowledge(word, age_s)

    def run_to_the_end(self):
        while self.control.phase is RunPhase.RUNNING:
            self.tick()
            if self.sent:
                self.acknowledge(self.sent[-1])


def test_lockstep_waits_for_every_acknowledgement():
    stage = Stage(lockstep=True, participants=('mapper', 'recorder'))
    stage.tick()
    stage.tick(1.0)
    assert stage.sent == [0]
    assert stage.acknowledge(0)
    stage.tick()
    assert stage.sent == [0]
    assert stage.acknowledge(0, 'recorder')
    stage.tick()
    assert stage.sent == [0, 1]


def test_a_run_finishes_after_the_last_acknowledgement():
    stage = Stage(lockstep=True)
    stage.run_to_the_end()
    assert stage.sent == [0, 1, 2, 3]
    assert stage.changes == [RunPhase.RUNNING] * 4 + [RunPhase.FINISHED]
    assert stage.player.participants()[0].frames_acknowledged == 4


def test_the_first_frame_is_repeated_for_who_matched_late():
    stage = Stage(lockstep=True)
    stage.tick()
    stage.tick(2.9)
    assert stage.sent == [0]
    stage.tick(0.2)
    assert stage.sent == [0, 0]
    assert stage.player.published == 1


def test_who_hangs_is_named():
    stage = Stage(lockstep=True)
    stage.tick()
    with pytest.raises(ParticipantError, match='frame 0 from mapper'):
        stage.wait(5.2)


def test_an_hour_in_which_the_player_was_stopped_delays_no_participant():
    stage = Stage(lockstep=True)
    stage.tick()
    # Timers come before messages: it looks at the clock before it takes waiting messages.
    stage.tick(3600.0)
    stage.acknowledge(0)
    stage.tick()
    assert stage.sent == [0, 0, 1]


def test_an_arrival_far_from_now_by_a_clock_that_was_set_makes_no_participant_late():
    stage = Stage(lockstep=True, participants=('mapper', 'recorder'))
    stage.tick()
    stage.acknowledge(0, age_s=3600.0)
    stage.tick(0.1)
    assert stage.player.participants()[0].latency_max == 0.0


@pytest.mark.parametrize(
    ('lockstep', 'participants', 'free'),
    [(True, (), True), (True, ('mapper',), False), (False, (), False)],
)
def test_only_lockstep_without_who_acknowledges_runs_free(lockstep, participants, free):
    assert Stage(lockstep, participants).player.runs_free is free


def test_realtime_follows_the_stamps_and_counts_drops():
    stage = Stage(lockstep=False)
    for _ in range(5):
        stage.tick(0.02)
    assert stage.sent == [0, 1, 2]
    stage.acknowledge(0)
    stage.acknowledge(2)
    assert stage.player.participants()[0].frames_dropped == 1
    stage.tick(0.1)
    stage.tick()
    assert stage.control.phase is RunPhase.FINISHED
    assert stage.acknowledge(3)
    assert stage.player.participants()[0].frames_acknowledged == 3


def test_rate_and_real_time_factor():
    stage = Stage(lockstep=True)
    assert stage.player.rate_hz == 0
    for index in range(3):
        stage.tick(0.08)
        stage.acknowledge(index)
    assert stage.player.rate_hz == pytest.approx(12.5)
    assert stage.player.real_time_factor == pytest.approx(0.5)
    stage.player.resume()
    assert stage.player.rate_hz == 0


@pytest.mark.parametrize('lockstep', [True, False])
def test_steps_are_over_when_their_frames_are_done(lockstep):
    stage = Stage(lockstep)
    stage.control.pause()
    stage.tick(1.0)
    assert stage.sent == []
    stage.control.step(2)
    for index in range(2):
        stage.tick(0.1)
        stage.tick(0.0)
        assert stage.sent[-1] == index
        assert stage.control.phase is RunPhase.RUNNING or not lockstep
        stage.acknowledge(index)
    stage.tick(0.1)
    assert stage.control.phase is RunPhase.PAUSED
    assert stage.changes[-1] is RunPhase.PAUSED
    stage.tick(1.0)
    assert stage.sent == [0, 1]


def test_a_restart_publishes_the_same_frames_and_forgets_the_past():
    stage = Stage(lockstep=True)
    stage.tick()
    stage.acknowledge(0)
    stage.tick()
    stage.control.reset()
    stage.player.restart()
    stage.control.match()
    assert stage.player.published == 0
    assert stage.player.newest is None
    stage.tick()
    # Of the first time, still under way: frame 1 is not out yet this time.
    assert not stage.acknowledge(1)
    assert stage.player.participants()[0].frames_acknowledged == 0
    assert stage.sent == [0, 1, 0]
    stage.acknowledge(0)
    stage.run_to_the_end()
    assert stage.sent == [0, 1, 0, 1, 2, 3]
    assert stage.player.participants()[0].frames_acknowledged == 4


def test_latency_leaves_out_the_time_a_word_waited():
    stage = Stage(lockstep=True)
    stage.tick()
    stage.now_s += 1.0
    stage.player.acknowledge(Acknowledgement('mapper', FRAMES[0].stamp_ns), age_s=0.9)
    assert stage.player.participants()[0].latency_p50 == pytest.approx(0.1)


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


def test_percentiles_are_those_of_numpy():
    rng = np.random.default_rng(4)
    latencies, processing = rng.gamma(2.0, 0.1, 157), rng.uniform(0.01, 0.2, 157)
    statistics = ParticipantStatistics(['mapper'])
    for frame, (latency_s, spent_s) in enumerate(zip(latencies, processing, strict=True)):
        statistics.publish(frame, 10.0 * frame)
        word = Acknowledgement('mapper', frame, float(spent_s))
        assert statistics.receive(word, 10.0 * frame + float(latency_s))
        statistics.states()
    (summary,) = statistics.states()
    expected = [float(np.quantile(latencies, level)) for level in (0.5, 0.95, 0.99)]
    found = [summary.latency_p50, summary.latency_p95, summary.latency_p99, summary.latency_max]
    assert found == pytest.approx([*expected, latencies.max()], rel=1e-9)
    assert summary.processing_time_mean == pytest.approx(processing.mean())
    counts = summary.frames_acknowledged, summary.frames_mapped, summary.frames_dropped
    assert counts == (157, 157, 0)


def test_drops_are_the_gaps_before_the_newest_acknowledgement():
    statistics = ParticipantStatistics(['mapper', 'recorder'])
    for stamp in (100, 200, 300, 400, 500):
        statistics.publish(stamp, 0.0)
    for stamp in (100, 400):
        statistics.receive(Acknowledgement('mapper', stamp, mapped=stamp == 400), 1.0)
    mapper, recorder = statistics.states()
    assert (mapper.frames_acknowledged, mapper.frames_mapped, mapper.frames_dropped) == (2, 1, 2)
    assert (recorder.frames_acknowledged, recorder.frames_dropped) == (0, 0)
    # A mapper with several threads may acknowledge out of order.
    statistics.receive(Acknowledgement('mapper', 300), 1.0)
    assert statistics.states()[0].frames_dropped == 1


def test_repeated_foreign_and_unpublished_acknowledgements_say_nothing():
    statistics = ParticipantStatistics(['mapper'])
    statistics.publish(100, 0.0)
    assert not statistics.receive(Acknowledgement('undeclared', 100), 1.0)
    assert not statistics.receive(Acknowledgement('mapper', 999), 1.0)
    assert statistics.receive(Acknowledgement('mapper', 100), 1.0)
    assert not statistics.receive(Acknowledgement('mapper', 100), 2.0)
    assert statistics.states()[0].frames_acknowledged == 1


def test_the_latency_of_a_repeated_frame_counts_from_the_repetition():
    statistics = ParticipantStatistics(['mapper'])
    statistics.publish(100, 0.0)
    statistics.publish(100, 3.0)
    statistics.receive(Acknowledgement('mapper', 100), 3.25)
    summary = statistics.states()[0]
    assert summary.latency_p50 == summary.latency_max == pytest.approx(0.25)
    assert summary.frames_dropped == 0


def test_what_is_unknown_is_not_zero():
    statistics = ParticipantStatistics(['mapper'])
    summary = statistics.states()[0]
    assert math.isnan(summary.latency_p50)
    assert math.isnan(summary.latency_max)
    statistics.publish(1, 0.0)
    statistics.receive(Acknowledgement('mapper', 1, processing_time_s=0.0), 0.5)
    assert math.isnan(statistics.states()[0].processing_time_mean)


NOW_NS = 1_763_000_000_000_000_000


@pytest.mark.parametrize(
    ('received_ns', 'age'),
    [(NOW_NS - 250_000_000, 0.25), (0, 0.0), (NOW_NS + 10**12, 0.0)],
    ids=['usual', 'middleware without arrival times', 'system clock set back'],
)
def test_the_age_counts_from_the_arrival_if_it_is_known(received_ns, age):
    assert age_s(received_ns, NOW_NS) == age
