"""The bag of a run: everything that was published, so that it can be evaluated by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from osmabench_ros.base.owned_folder import move_ours
from osmabench_ros.bringup.node_spec import NodeSpec
from osmabench_ros.bringup.recording import RecordingSettings
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.runs.config import PacingMode
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.sequences.recording_options import Compression
from osmabench_ros.sequences.recording_report import read_report

BAG_FOLDER = 'bag'


def bag_recorder(plan: RunPlan, own_topics: Sequence[str]) -> list[NodeSpec]:
    """Return the node that records a run, the topics of the method too; none if not asked for.

    In lockstep it acknowledges every frame, so that none is lost; in realtime it must not delay
    the others, and counts what it misses.
    """
    settings = plan.config.recording
    if not settings.enabled:
        return []
    return [
        RecordingSettings(
            bag_directory(plan),
            settings.topics,
            more_topics=tuple(own_topics),
            exclude=settings.exclude,
            compression=Compression(settings.compression),
            max_file_bytes=round(settings.split_size_mb * 1e6),
            max_file_s=settings.split_duration_s,
            acks=plan.pacing is PacingMode.LOCKSTEP,
        ).node()
    ]


def bag_directory(plan: RunPlan) -> Path:
    """Return the folder of the bag of a run."""
    return plan.directory / BAG_FOLDER


def make_room_for_bag(plan: RunPlan) -> None:
    """Put the bag of an attempt that was cut off aside; it may be all that is left of it."""
    directory = bag_directory(plan)
    if plan.config.recording.enabled and directory.exists():
        for number in count(1):
            aside = directory.with_name(f'{BAG_FOLDER}_interrupted_{number}')
            if not aside.exists():
                move_ours(directory, aside)
                return


def check_bag(plan: RunPlan) -> None:
    """Raise RunError if the bag of a run that is over was not finished."""
    if not plan.config.recording.enabled:
        return
    directory = bag_directory(plan)
    try:
        report = read_report(directory)
    except SequenceError as error:
        raise RunError(
            f'run {plan.identity.run_id} was not recorded: {error}; start over with --fresh'
        ) from error
    if not report.complete:
        raise RunError(
            f'the bag of run {plan.identity.run_id} is not complete: '
            f'{report.error or "its recorder was killed before it had written everything"}; '
            'start over with --fresh'
        )
