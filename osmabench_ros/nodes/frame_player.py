"""Plays frames of a simulation or a sequence, as pacing and run control allow."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from osmabench_ros.base import contract as topics
from osmabench_ros.base.configuration import version
from osmabench_ros.base.processes import AttentiveClock
from osmabench_ros.base.settings import settings_of
from osmabench_ros.errors import ConfigError, ParticipantError
from osmabench_ros.msg import ParticipantState, RunInfo, RunState
from osmabench_ros.nodes.ack_listener import Acknowledgement, ParticipantStatistics
from osmabench_ros.ros.messages.images import camera_info_message
from osmabench_ros.ros.messages.poses import stamp_to_message, transform_message
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.run_control import RunControl, RunPhase
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.runs.config import PacingConfig
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.recorded import RECORDED, RecordedFrames, names_of, open_sequence
from osmabench_ros.sequences.topics import SequenceReading
from osmabench_ros.simulation.conditions import parse_condition_text
from osmabench_ros.simulation.frame_source import FrameSource, SimulatedFrame, SimulatedFrames
from osmabench_ros.simulation.robot_path import RobotPath, sample_trajectory
from osmabench_ros.simulation.strategies import Strategy, plan_with_strategy
from osmabench_ros.simulation.walkable_grid import WalkableGrid

OF_SIMULATIONS = ('scene', 'simulator', 'camera', 'robot', 'trajectory', 'path_file')
# A reader may not have matched yet when the writer has, and then misses the first frame.
REPEAT_FIRST_AFTER_S = 3.0


@dataclass
class Acknowledgements:
    """Outstanding acknowledgements of the newest frame; `timeout_s` holds for one frame."""

    participants: Sequence[str]
    timeout_s: float
    _owing: set[str] = field(default_factory=set, init=False)
    _stamp_ns: int = field(default=-1, init=False)
    _since_s: float = field(default=0.0, init=False)
    _received_s: dict[str, float] = field(default_factory=dict, init=False)

    def expect(self, stamp_ns: int, now_s: float) -> None:
        """Start to wait for a frame that was just published."""
        for name in self.participants:
            self._received_s.setdefault(name, now_s)
        self._owing = set(self.participants)
        self._stamp_ns = stamp_ns
        self._since_s = now_s

    def receive(self, participant: str, stamp_ns: int, now_s: float) -> None:
        """Take a new acknowledgement."""
        self._received_s[participant] = now_s
        if stamp_ns == self._stamp_ns:
            self._owing.discard(participant)

    def resume(self, now_s: float) -> None:
        """Restart all timeouts after a pause."""
        self._since_s = now_s
        self._received_s = dict.fromkeys(self._received_s, now_s)

    @property
    def complete(self) -> bool:
        """Whether every participant acknowledged the newest frame."""
        return not self._owing

    def check(self, now_s: float, frame_index: int) -> None:
        """Raise ParticipantError if a participant was silent for too long, even in realtime."""
        late = [name for name in self._owing if now_s - self._received_s[name] > self.timeout_s]
        if late and now_s > self._since_s:
            raise ParticipantError(
                f'no acknowledgement of frame {frame_index} from {", ".join(sorted(late))} within '
                f'{self.timeout_s:g} s; the node hangs, is too slow (raise pacing.ack_timeout_s), '
                'or does not acknowledge (declare it with acks: false)'
            )


@dataclass
class RealtimeClock:
    """Due times of frames on the steady clock, at `speed_factor` stamp seconds per wall second."""

    speed_factor: float
    _start_s: float | None = field(default=None, init=False)
    _start_stamp_ns: int = field(default=0, init=False)

    def resume(self) -> None:
        """Restart with the next frame, so that a pause is not caught up."""
        self._start_s = None

    def due(self, stamp_ns: int, now_s: float) -> bool:
        """Return whether the frame of a stamp may be published; the first one starts the clock."""
        if self._start_s is None:
            self._start_s, self._start_stamp_ns = now_s, stamp_ns
        elapsed = (stamp_ns - self._start_stamp_ns) / 1e9 / self.speed_factor
        return now_s - self._start_s >= elapsed


# Over so many frames the rate is smoothed.
RATE_FRAMES = 10


class FramePlayer:
    """Publishes the frames of a source and keeps their statistics.

    It asks for one frame ahead, so that rendering overlaps with the work of the participants, of
    which only those that acknowledge are given. `now_s` is steady time.
    """

    def __init__(
        self,
        frames: FrameSource,
        control: RunControl,
        participants: Sequence[str],
        pacing: PacingConfig,
        publish: Callable[[SimulatedFrame], None],
        now_s: Callable[[], float],
    ) -> None:
        self._frames, self._control = frames, control
        self._participants = tuple(participants)
        self._pacing = pacing
        self._publish = publish
        self._now_s = now_s
        self.restart()

    def restart(self) -> None:
        """Go back to frame 0 and forget every acknowledgement."""
        pacing = self._pacing
        self._acks = Acknowledgements(self._participants, pacing.ack_timeout_s)
        self._watch = AttentiveClock(self._now_s)
        self._clock = RealtimeClock(pacing.speed_factor)
        self._statistics = ParticipantStatistics(self._participants)
        self._recent: deque[tuple[float, int]] = deque(maxlen=RATE_FRAMES + 1)
        self.published = 0
        self.newest: SimulatedFrame | None = None
        self._next: SimulatedFrame | None = self._frames.frame(0)

    @property
    def first_stamp_ns(self) -> int:
        """Stamp of the next frame; of frame 0 after a start."""
        return 0 if self._next is None else self._next.frame.stamp_ns

    @property
    def settled(self) -> bool:
        """Whether no acknowledgement is outstanding."""
        return not self._pacing.lockstep or self.newest is None or self._acks.complete

    @property
    def runs_free(self) -> bool:
        """Whether frames follow without waiting: lockstep without acknowledging participants."""
        return self._pacing.lockstep and not self._participants

    @property
    def rate_hz(self) -> float:
        """Published frames per second of wall time, smoothed; 0 before the second frame."""
        return (len(self._recent) - 1) / elapsed_s if (elapsed_s := self._recent_s()) else 0.0

    @property
    def real_time_factor(self) -> float:
        """Stamp seconds per second of wall time, smoothed; 0 before the second frame."""
        if not (elapsed_s := self._recent_s()):
            return 0.0
        return (self._recent[-1][1] - self._recent[0][1]) / 1e9 / elapsed_s

    def _recent_s(self) -> float:
        return self._recent[-1][0] - self._recent[0][0] if self._recent else 0.0

    def participants(self) -> list[ParticipantState]:
        """Return the statistics of every participant."""
        return self._statistics.states()

    def resume(self) -> None:
        """Resume after a pause, which does not count as a delay of any participant."""
        self._acks.resume(self._watch.now_s())
        self._clock.resume()
        self._recent.clear()

    def acknowledge(self, ack: Acknowledgement, age_s: float = 0.0) -> bool:
        """Take an acknowledgement that arrived `age_s` ago; return whether it is new."""
        new = self._statistics.receive(ack, self._now_s() - age_s)
        if new:
            self._acks.receive(ack.participant, ack.stamp_ns, self._watch.now_s())
        return new

    def tick(self, changed: Callable[[], None]) -> None:
        """Publish, repeat, pause or finish as is due; ParticipantError if a participant hangs."""
        if self._control.phase is not RunPhase.RUNNING:
            return
        now_s = self._now_s()
        if self.newest is not None:
            self._acks.check(self._watch.now_s(), self.published - 1)
        if not self.settled:
            # A reader may discover this writer later than the writer the reader, and miss a frame.
            if self.published == 1 and now_s - self._sent_s > REPEAT_FIRST_AFTER_S:
                assert self.newest is not None
                self._send(self.newest)
        elif self._next is None:
            self._control.finish()
            changed()
        elif self._control.end_steps():
            changed()
        elif self._control.may_publish and (
            self._pacing.lockstep or self._clock.due(self._next.frame.stamp_ns, now_s)
        ):
            self._publish_next(self._next, changed)

    def _publish_next(self, frame: SimulatedFrame, changed: Callable[[], None]) -> None:
        now_s = self._send(frame)
        self._acks.expect(frame.frame.stamp_ns, self._watch.now_s())
        self._recent.append((now_s, frame.frame.stamp_ns))
        self.newest = frame
        self.published += 1
        self._control.count_frame()
        changed()
        more = self.published < len(self._frames)
        self._next = self._frames.frame(self.published) if more else None

    def _send(self, frame: SimulatedFrame) -> float:
        self._sent_s = self._now_s()
        self._statistics.publish(frame.frame.stamp_ns, self._sent_s)
        self._publish(frame)
        return self._now_s()


# Fraction of the speed that was asked for; below, frames come late.
MIN_SPEED = 0.9

# Fraction of the frames of a participant; the loss that a sweep over speeds allows too.
MAX_DROPPED = 0.05


RUNS_FREE = (
    'no participant acknowledges frames, so lockstep does not wait and frames follow as fast '
    'as they are made; declare one that does (participants: NAME:acks), or set pacing: realtime'
)


def player_health(player: FramePlayer, phase: RunPhase, speed_factor: float | None) -> Health:
    """Return the health of a run; its `speed_factor` is None in lockstep."""
    participants = player.participants()
    message, level = phase.name.lower(), Level.OK
    faults = [
        f'{item.participant} dropped {_fraction_dropped(item):.0%} of its frames'
        for item in participants
        if _fraction_dropped(item) > MAX_DROPPED
    ]
    factor = player.real_time_factor
    too_slow = speed_factor is not None and 0 < factor < MIN_SPEED * speed_factor
    if too_slow and phase is RunPhase.RUNNING:
        faults.insert(0, f'frames come at {factor:.2g} of real time instead of {speed_factor:g}')
    if player.runs_free:
        faults.insert(0, RUNS_FREE)
    if faults:
        message, level = f'{message}: {"; ".join(faults)}', Level.WARN
    values: dict[str, float | str] = {
        'rate_hz': player.rate_hz,
        'real_time_factor': factor,
        'frames_published': player.published,
        'frames_dropped': sum(item.frames_dropped for item in participants),
    }
    for item in participants:
        known = {
            'frames_mapped': item.frames_mapped,
            'frames_dropped': item.frames_dropped,
            'latency_p50_s': item.latency_p50,
            'latency_p95_s': item.latency_p95,
            'processing_time_mean_s': item.processing_time_mean,
        }
        # Unknown times are left out.
        values |= {f'{item.participant}.{k}': v for k, v in known.items() if not math.isnan(v)}
    return Health(level, message, values)


def _fraction_dropped(item: ParticipantState) -> float:
    due = item.frames_acknowledged + item.frames_dropped
    return item.frames_dropped / due if due else 0.0


def run_info_message(source: BridgeSource, settings: BridgeSettings, stamp_ns: int) -> RunInfo:
    """Return run_info, the identity and settings of a run; `stamp_ns` is the stamp of frame 0."""
    frames = source.frames
    pacing, participants = settings.pacing, settings.participants
    stamp = stamp_to_message(stamp_ns)
    info = RunInfo(
        run_id=settings.run_id,
        dataset=source.dataset,
        scene=source.scene,
        condition=source.condition,
        mapper=settings.mapper,
        simulator=source.simulator,
        seed=settings.scene.seed,
        pacing=RunInfo.PACING_LOCKSTEP if pacing.lockstep else RunInfo.PACING_REALTIME,
        frame_rate=frames.frame_rate_hz,
        speed_factor=pacing.speed_factor,
        frame_count=len(frames),
        participants=[item.name for item in participants],
        acking_participants=[item.name for item in participants if item.acks],
        world_frame=topics.WORLD_FRAME,
        base_frame=topics.BASE_FRAME,
        camera_frame=topics.CAMERA_FRAME,
        base_to_camera=transform_message(frames.base_to_camera),
        camera_info=camera_info_message(frames.intrinsics, stamp, topics.CAMERA_FRAME),
        config_sha256=settings.config_sha256,
        software_version=version(),
    )
    info.header.stamp = stamp
    info.header.frame_id = topics.WORLD_FRAME
    return info


def run_state_message(
    run_id: str, phase: RunPhase, player: FramePlayer, frames_total: int, text: str
) -> RunState:
    """Return run_state; `text` says why the run waits, or why it failed."""
    participants = player.participants()
    state = RunState(
        state=int(phase),
        run_id=run_id,
        frames_published=player.published,
        frames_total=frames_total,
        frames_dropped=sum(item.frames_dropped for item in participants),
        rate=player.rate_hz,
        message=text,
        participants=participants,
    )
    if player.newest is not None:
        state.header.stamp = stamp_to_message(player.newest.frame.stamp_ns)
    return state


@dataclass(frozen=True)
class BridgeSource:
    """Frames, with dataset, scene and condition of their source."""

    frames: FrameSource
    dataset: str
    scene: str
    condition: str
    simulator: str
    lighting_known: bool = True


def open_source(settings: BridgeSettings) -> BridgeSource:
    """Open the source that settings name; ConfigError if they contradict each other."""
    if settings.sequence is not None:
        return _open_sequence(settings, settings.sequence)
    if settings.sequence_topics != SequenceReading():
        raise ConfigError('parameter "sequence_topics" is about a bag; name it in "sequence"')
    frames = open_frames(settings)
    condition = frames.condition.name
    return BridgeSource(frames, frames.dataset, frames.scene, condition, settings.simulator.name)


def _open_sequence(settings: BridgeSettings, path: Path) -> BridgeSource:
    for item in settings_of(BridgeSettings):
        changed = item.of(settings) != item.of(BridgeSettings())
        if item.path[0] in OF_SIMULATIONS and item.name != 'seed' and changed:
            problem = 'describes a simulation, but "sequence" plays a recorded one'
            raise ConfigError(f'parameter "{item.name}" {problem}; leave one of them out')
    sequence = open_sequence(path, settings.sequence_topics)
    frames, info = RecordedFrames(sequence), sequence.info
    condition = str(settings.condition)
    default = BridgeSettings.model_fields['condition'].default
    if info.condition and condition not in (default, info.condition):
        recorded = f'{path} was recorded under "{info.condition}"; leave the parameter out'
        raise ConfigError(f'parameter "condition" is "{condition}", but {recorded}')
    return BridgeSource(
        frames,
        *names_of(sequence, path),
        info.condition or condition,
        RECORDED,
        lighting_known=False,
    )


def open_frames(settings: BridgeSettings) -> SimulatedFrames:
    """Load a scene and start its simulator."""
    # Cheap look-ups come first, so that a misspelt name does not cost the time of a scene.
    condition = settings.condition
    if isinstance(condition, str):
        condition = parse_condition_text(condition)
    chosen = settings.scene
    camera = settings.camera
    rate_hz = settings.trajectory.frame_rate_hz
    scene = chosen.load()
    motion = condition.make_motion(rate_hz)
    trajectory = sample_trajectory(_path(settings, scene), motion, rate_hz, camera.mount)
    start = partial(settings.simulator.simulator, camera=camera)
    return SimulatedFrames(scene, start(scene), condition, trajectory, chosen.seed_of_path, start)


def _path(settings: BridgeSettings, scene: Scene) -> RobotPath:
    if settings.path_file is not None:
        return RobotPath.read(settings.path_file)
    robot = settings.robot
    navigation = WalkableGrid.of_scene(scene, radius_m=robot.radius_m, height_m=robot.height_m)
    return plan_with_strategy(
        Strategy.FOLLOW,
        scene,
        navigation,
        goals=settings.trajectory.goals,
        seed=settings.scene.seed_of_path,
        camera_height_m=settings.camera.mounting_height_m,
    )
