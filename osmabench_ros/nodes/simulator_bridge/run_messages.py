"""Messages of the bridge about its run: identity, state, health."""

from __future__ import annotations

from osmabench_ros.base import contract as topics
from osmabench_ros.base.configuration import version
from osmabench_ros.msg import ParticipantState, RunInfo, RunState
from osmabench_ros.nodes.simulator_bridge.ack_listener import ParticipantSummary
from osmabench_ros.nodes.simulator_bridge.bridge_source import BridgeSource
from osmabench_ros.nodes.simulator_bridge.frame_player import FramePlayer
from osmabench_ros.ros.messages.images import camera_info_message
from osmabench_ros.ros.messages.poses import stamp_to_message, transform_message
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.run_control import RunPhase
from osmabench_ros.ros.node.settings import BridgeSettings

MIN_SPEED_SHARE = 0.9
"""Of the speed that was asked for; below, frames come late."""

MAX_DROPPED_SHARE = 0.05
"""Of the frames of a participant; the loss that a sweep over speeds allows too."""


RUNS_FREE = (
    'no participant acknowledges frames, so lockstep does not wait and frames follow as fast '
    'as they are made; declare one that does (participants: NAME:acks), or set pacing: realtime'
)


def player_health(
    player: FramePlayer, phase: RunPhase, speed_factor: float | None, acks_ignored: int = 0
) -> Health:
    """Return the health of a run; its `speed_factor` is None in lockstep."""
    summaries = player.summaries()
    message, level = phase.name.lower(), Level.OK
    faults = [_loss(item) for item in summaries if _share_dropped(item) > MAX_DROPPED_SHARE]
    factor = player.real_time_factor
    too_slow = speed_factor is not None and 0 < factor < MIN_SPEED_SHARE * speed_factor
    if too_slow and phase is RunPhase.RUNNING:
        faults.insert(0, f'frames come at {factor:.2g} of real time instead of {speed_factor:g}')
    if player.runs_free:
        faults.insert(0, RUNS_FREE)
    if acks_ignored:
        faults.append(f'{acks_ignored} acknowledgements without the run token ignored')
    if faults:
        message, level = f'{message}: {"; ".join(faults)}', Level.WARN
    values: dict[str, float | str] = {
        'rate_hz': player.rate_hz,
        'real_time_factor': factor,
        'frames_published': player.published,
        'frames_dropped': sum(item.dropped for item in summaries),
        'acks_ignored': acks_ignored,
    }
    for item in summaries:
        values |= _values(item)
    return Health(level, message, values)


def _share_dropped(item: ParticipantSummary) -> float:
    due = item.acknowledged + item.dropped
    return item.dropped / due if due else 0.0


def _loss(item: ParticipantSummary) -> str:
    return f'{item.participant} dropped {_share_dropped(item):.0%} of its frames'


def _values(item: ParticipantSummary) -> dict[str, float | str]:
    """Return the figures of one participant; unknown times are left out."""
    values: dict[str, float | str] = {'frames_mapped': item.mapped, 'frames_dropped': item.dropped}
    if item.acknowledged:
        values |= {'latency_p50_s': item.latency_s[0], 'latency_p95_s': item.latency_s[1]}
    if item.processing_time_s == item.processing_time_s:
        values['processing_time_mean_s'] = item.processing_time_s
    return {f'{item.participant}.{name}': value for name, value in values.items()}


def run_info_message(source: BridgeSource, settings: BridgeSettings, stamp_ns: int) -> RunInfo:
    """Return run_info, the identity and settings of a run; `stamp_ns` is that of frame 0."""
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
    run_id: str,
    phase: RunPhase,
    player: FramePlayer,
    frames_total: int,
    text: str,
    acks_ignored: int,
) -> RunState:
    """Return run_state; `text` says what the run waits for, or why it failed."""
    summaries = player.summaries()
    state = RunState(
        state=int(phase),
        run_id=run_id,
        frames_published=player.published,
        frames_total=frames_total,
        frames_dropped=sum(item.dropped for item in summaries),
        rate=player.rate_hz,
        message=text,
        acks_ignored=acks_ignored,
        participants=[_participant_state(item) for item in summaries],
    )
    if player.newest is not None:
        state.header.stamp = stamp_to_message(player.newest.frame.stamp_ns)
    return state


def _participant_state(summary: ParticipantSummary) -> ParticipantState:
    median, p95, p99, longest = summary.latency_s
    return ParticipantState(
        participant=summary.participant,
        frames_acknowledged=summary.acknowledged,
        frames_mapped=summary.mapped,
        frames_dropped=summary.dropped,
        latency_p50=median,
        latency_p95=p95,
        latency_p99=p99,
        latency_max=longest,
        processing_time_mean=summary.processing_time_s,
    )
