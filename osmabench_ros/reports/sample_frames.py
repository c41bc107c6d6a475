"""Frames of a run that were kept as pictures, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.reports.pictures import photo_uri
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import PATH_FILE
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.trajectory import CameraMount, sample_trajectory

FRAMES_FOLDER = 'frames'
MOST_FRAMES = 8
_WIDTH_PX = 400
_COARSE_WIDTH_PX = 96
_BEHIND_M = 0.1
_FEWEST_POINTS = 4

Rectangle = tuple[float, float, float, float]
"""Left, top, width and height in percent of the image."""


@dataclass(frozen=True)
class SampleFrame:
    """One kept frame, `time_s` after the start of the run; `uri` is the picture.

    `shows` has, by instance, the number of surface points in view and their bounds in percent.
    """

    index: int
    time_s: float
    uri: str
    shows: Mapping[int, tuple[int, Rectangle]] = field(default_factory=dict)


def sample_frames(plan: RunPlan, truth: GroundTruth) -> list[SampleFrame]:
    """Return the kept frames of a run, at most MOST_FRAMES evenly spread ones.

    The run's folder keeps them as `frames/<index>.png`; a run without that folder has none.
    """
    files = {
        int(path.stem): path
        for path in sorted((plan.directory / FRAMES_FOLDER).glob('*.png'))
        if path.stem.isdigit()
    }
    poses = camera_poses(plan) if files else ()
    return [
        SampleFrame(
            index,
            index / plan.config.trajectory.frame_rate_hz,
            photo_uri(files[index], _WIDTH_PX),
            shown_instances(truth, poses[index]) if index < len(poses) else {},
        )
        for index in _spread(sorted(files), MOST_FRAMES)
    ]


def _spread(indices: Sequence[int], most: int) -> list[int]:
    if len(indices) <= most:
        return list(indices)
    places = np.linspace(0, len(indices) - 1, most).round().astype(int)
    return [indices[place] for place in places]


def camera_poses(plan: RunPlan) -> tuple[Pose, ...]:
    """Return the pose of every frame of a run, none without its path."""
    file: Path = plan.shared_directory / PATH_FILE
    if not file.exists():
        return ()
    camera, rate_hz = plan.config.camera, plan.config.trajectory.frame_rate_hz
    motion = plan.condition.motion_at(rate_hz)
    mount = CameraMount(camera.mounting_height_m, camera.pitch_rad)
    return sample_trajectory(RobotPath.read(file), motion, rate_hz, mount).camera_poses


def shown_instances(truth: GroundTruth, pose: Pose) -> dict[int, tuple[int, Rectangle]]:
    """Return the instances that a camera sees, with how many points and where.

    `pose` is the optical frame in the world; the visible surface of `truth` hides what is behind
    it, on a coarse image.
    """
    camera = truth.intrinsics
    local = (truth.surface.points - pose.translation) @ pose.rotation
    ahead = np.flatnonzero(local[:, 2] > _BEHIND_M)
    pixels = camera.project(local[ahead])
    inside = (pixels > -0.5).all(axis=1) & (
        pixels < (camera.width - 0.5, camera.height - 0.5)
    ).all(axis=1)
    rows, pixels = ahead[inside], pixels[inside]
    seen = _in_front(pixels, local[rows, 2], camera)
    rows, pixels = rows[seen], pixels[seen]
    instances = truth.surface.instances[rows]
    return {
        int(instance): (count, _bounds(pixels[instances == instance], camera))
        for instance, count in _counts(instances)
        if count >= _FEWEST_POINTS
    }


def _counts(instances: NDArray[np.integer]) -> list[tuple[int, int]]:
    ids, counts = np.unique(instances, return_counts=True)
    return [(int(i), int(n)) for i, n in zip(ids, counts, strict=True) if i > 0]


def _in_front(
    pixels: NDArray[np.floating], depth_m: NDArray[np.floating], camera: Intrinsics
) -> NDArray[np.bool_]:
    """Return a mask of the points that are not behind others in the same coarse pixel."""
    scale = _COARSE_WIDTH_PX / camera.width
    height = max(1, round(camera.height * scale))
    columns, lines = ((pixels + 0.5) * scale).astype(int).T
    cells = np.minimum(lines, height - 1) * _COARSE_WIDTH_PX + columns
    nearest = np.full(height * _COARSE_WIDTH_PX, np.inf)
    np.minimum.at(nearest, cells, depth_m)
    return np.asarray(depth_m <= nearest[cells] * 1.05 + _BEHIND_M)


def _bounds(pixels: NDArray[np.floating], camera: Intrinsics) -> Rectangle:
    low = (pixels.min(axis=0) + 0.5) / (camera.width, camera.height)
    high = (pixels.max(axis=0) + 0.5) / (camera.width, camera.height)
    left, top, width, height = (round(100 * float(v), 1) for v in (*low, *(high - low)))
    return left, top, width, height
