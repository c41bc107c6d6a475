"""The reference that the user chose for the map of a bag."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.runs.bag_content import BagContent
from osmabench_ros.runs.bag_settings import BagSource
from osmabench_ros.runs.progress import Progress
from osmabench_ros.runs.recorded_trajectories import REFERENCE_TOPICS, bag_trajectory
from osmabench_ros.runs.references import (
    Reference,
    cloud_reference,
    run_reference,
    scene_reference,
)
from osmabench_ros.sequences.bag import Bag

_CAMERA_INFO = 'sensor_msgs/msg/CameraInfo'


def reference_of(
    source: BagSource, bag: Bag, content: BagContent, directory: Path, progress: Progress
) -> Reference | None:
    """Return the reference, made in a folder if it does not exist yet; None without one."""
    choice = source.reference
    if choice.scene:
        found = scene_reference(
            source.config,
            choice.scene,
            source.seed,
            directory,
            recorded_path(bag, content),
            progress,
        )
    elif choice.run is not None:
        found = run_reference(choice.run)
    elif choice.cloud is not None:
        progress('reading the reference', 0.0)
        found = cloud_reference(choice.cloud, source.label_set, directory)
    else:
        return None
    if choice.frame_id is not None:
        found = dataclasses.replace(found, frame_id=choice.frame_id)
    if source.questions_file is not None:
        found = dataclasses.replace(found, questions_file=source.questions_file)
    return found


def recorded_path(bag: Bag, content: BagContent) -> tuple[StampedTrajectory, Intrinsics] | None:
    """Return true camera poses and the camera of a recording, None if it lacks either."""
    topics = [topic for topic in content.types if topic.endswith(f'/{REFERENCE_TOPICS[0]}')]
    camera = _camera(bag, content)
    if len(topics) != 1 or camera is None:
        return None
    return bag_trajectory(bag, content, topics[0]), camera


def _camera(bag: Bag, content: BagContent) -> Intrinsics | None:
    info: Any = content.run_info.camera_info if content.run_info is not None else None
    if info is None:
        topics = sorted(topic for topic, kind in content.types.items() if kind == _CAMERA_INFO)
        first = next(bag.messages(topics[:1]), None) if topics else None
        info = None if first is None else first.deserialise()
    if info is None:
        return None
    k = [float(value) for value in info.k]
    try:
        return Intrinsics(int(info.width), int(info.height), k[0], k[4], k[2], k[5])
    except ValueError:
        # An uncalibrated camera says so by zeros.
        return None
