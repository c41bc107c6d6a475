"""The bag of a run, with every topic, so that it can be evaluated without the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from osmabench_ros.base.contract import BAG_RECORDER
from osmabench_ros.base.owned_folder import move_ours
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.errors import RunError, SequenceError
from osmabench_ros.runs.config import PacingMode
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.sequences.bags.recording_report import (
    RecordedTopics,
    RecordingSettings,
    read_report,
)

BAG_FOLDER = 'bag'


def recorder_node(directory: Path, settings: RecordingSettings) -> NodeSpec:
    """Return the node that records to a folder."""
    here = settings.model_copy(update={'bag_directory': directory.absolute()})
    return NodeSpec(BAG_RECORDER, 'bag_recorder_node', here, acks=settings.acks)


def bag_recorder(plan: RunPlan, own_topics: Sequence[str]) -> list[NodeSpec]:
    """Return the node that records a run, lossless in lockstep; none if not asked for."""
    settings = plan.config.recording
    if not settings.enabled:
        return []
    chosen = {name: getattr(settings, name) for name in RecordedTopics.model_fields}
    recording = RecordingSettings(
        **chosen,
        more_topics=tuple(own_topics),
        max_file_bytes=round(settings.split_size_mb * 1e6),
        max_file_s=settings.split_duration_s,
        acks=plan.pacing is PacingMode.LOCKSTEP,
    )
    return [recorder_node(bag_directory(plan), recording)]


def bag_directory(plan: RunPlan) -> Path:
    """Return the folder of the bag of a run."""
    return plan.directory / BAG_FOLDER


def make_room_for_bag(plan: RunPlan) -> None:
    """Move the bag of an interrupted attempt aside; it may be its only result."""
    directory = bag_directory(plan)
    if plan.config.recording.enabled and directory.exists():
        for number in count(1):
            aside = directory.with_name(f'{BAG_FOLDER}_interrupted_{number}')
            if not aside.exists():
                move_ours(directory, aside)
                return


def check_bag(plan: RunPlan) -> None:
    """Raise RunError if the run ended but its bag was not finished."""
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
