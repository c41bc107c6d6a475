"""The health of a run, as its bridge publishes it on /diagnostics."""

from __future__ import annotations

from osmabench_ros.ros.diagnostics import Health, Level
from osmabench_ros.ros.frame_player import FramePlayer
from osmabench_ros.ros.participant_statistics import ParticipantSummary
from osmabench_ros.ros.run_control import RunPhase

MIN_SPEED_SHARE = 0.9
"""Of the speed that was asked for; below, frames come late."""

MAX_DROPPED_SHARE = 0.05
"""Of the frames of a participant; the loss that a sweep over speeds allows too."""


RUNS_FREE = (
    'no participant acknowledges frames, so lockstep waits for nobody and frames follow as fast '
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
    """Return the figures of one participant; times that it has none of are left out."""
    values: dict[str, float | str] = {
        'frames_mapped': item.mapped,
        'frames_dropped': item.dropped,
    }
    if item.acknowledged:
        values |= {'latency_p50_s': item.latency_s[0], 'latency_p95_s': item.latency_s[1]}
    if item.processing_time_s == item.processing_time_s:
        values['processing_time_mean_s'] = item.processing_time_s
    return {f'{item.participant}.{name}': value for name, value in values.items()}
