"""What a bridge says about its run: its identity once, its state again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from osmabench_ros.errors import ContractError
from osmabench_ros.msg import ParticipantState, RunInfo, RunState
from osmabench_ros.ros import topics
from osmabench_ros.ros.frame_player import FramePlayer
from osmabench_ros.ros.frame_source_parameters import BridgeSource
from osmabench_ros.ros.images import camera_info_message
from osmabench_ros.ros.participant_statistics import ParticipantSummary
from osmabench_ros.ros.participants import Participant
from osmabench_ros.ros.poses import transform_message
from osmabench_ros.ros.run_control import RunPhase
from osmabench_ros.ros.stamps import stamp_to_message
from osmabench_ros.version import version

MAX_RATE, MAX_NAME = 1e6, 1000
"""Of a run_info: frames a second or times the speed, and characters of a name."""


def run_info_message(
    source: BridgeSource,
    values: Mapping[str, Any],
    participants: Sequence[Participant],
    stamp_ns: int,
) -> RunInfo:
    """Return the identity and the fixed settings of a run; `stamp_ns` is that of frame 0."""
    frames = source.frames
    lockstep = values['pacing'] == 'lockstep'
    stamp = stamp_to_message(stamp_ns)
    info = RunInfo(
        run_id=values['run_id'],
        dataset=source.dataset,
        scene=source.scene,
        condition=source.condition,
        mapper=values['mapper'],
        simulator=source.simulator,
        seed=values['seed'],
        pacing=RunInfo.PACING_LOCKSTEP if lockstep else RunInfo.PACING_REALTIME,
        frame_rate=frames.frame_rate_hz,
        speed_factor=values['speed_factor'],
        frame_count=len(frames),
        participants=[item.name for item in participants],
        acking_participants=[item.name for item in participants if item.acks],
        world_frame=topics.WORLD_FRAME,
        base_frame=topics.BASE_FRAME,
        camera_frame=topics.CAMERA_FRAME,
        base_to_camera=transform_message(frames.base_to_camera),
        camera_info=camera_info_message(frames.intrinsics, stamp, topics.CAMERA_FRAME),
        config_sha256=values['config_sha256'],
        software_version=version(),
    )
    info.header.stamp = stamp
    info.header.frame_id = topics.WORLD_FRAME
    return info


def check_run_info(message: RunInfo) -> None:
    """Raise ContractError if a rate is none, or a name too long or not printable."""
    for name in ('frame_rate', 'speed_factor'):
        value = getattr(message, name)
        if not 0 <= value <= MAX_RATE:
            raise ContractError(
                f'topic "{topics.RUN_INFO}": {name} is {value}; must be in 0 to {MAX_RATE:g}'
            )
    for name, kind in message.get_fields_and_field_types().items():
        text = getattr(message, name) if kind == 'string' else ''
        if len(text) > MAX_NAME or not (not text or text.isprintable()):
            raise ContractError(
                f'topic "{topics.RUN_INFO}": {name} is {text[:40]!r}, of {len(text)} characters; '
                f'at most {MAX_NAME} printable ones are allowed'
            )


def run_state_message(
    run_id: str,
    phase: RunPhase,
    player: FramePlayer,
    frames_total: int,
    text: str,
    acks_ignored: int,
) -> RunState:
    """Return how far a run is; `text` says what is awaited, or why it failed."""
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
