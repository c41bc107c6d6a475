"""Camera images and poses of a run, from its bag or else its sample pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.reports.pictures.sample_frames import read_camera_poses
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.sequences.recorded import open_sequence

MOST_FRAMES = 2000
JPEG_QUALITY = 85
DEPTH_PER_M = 1000


@dataclass(frozen=True, eq=False)
class TrackedFrame:
    """One frame for a viewer: its time, optical pose, PNG or JPEG, and depth as a PNG of mm."""

    index: int
    time_s: float
    pose: Pose
    picture: bytes = b''
    depth: bytes = b''


def track_of_run(plan: RunPlan) -> Iterator[TrackedFrame]:
    """Yield the frames of a run in order; of a long bag every n-th, at most MOST_FRAMES."""
    bag = plan.bag_directory
    yield from _read_recorded(bag) if bag.exists() else _read_kept(plan)


def _read_kept(plan: RunPlan) -> Iterator[TrackedFrame]:
    rate_hz = plan.config.trajectory.frame_rate_hz
    for index, pose in enumerate(read_camera_poses(plan)):
        file = plan.frames_directory / f'{index:06d}.png'
        picture = file.read_bytes() if file.exists() else b''
        yield TrackedFrame(index, index / rate_hz, pose, picture)


def _read_recorded(bag: Path) -> Iterator[TrackedFrame]:
    sequence = open_sequence(bag)
    first_ns = sequence.stamps_ns[0]
    every = math.ceil(len(sequence) / MOST_FRAMES)
    for frame in islice(sequence, 0, None, every):
        yield encode_frame(frame, (frame.stamp_ns - first_ns) / 1e9)


def encode_frame(frame: Frame, time_s: float) -> TrackedFrame:
    """Return a frame with its images encoded."""
    return TrackedFrame(
        frame.index,
        time_s,
        frame.camera_pose,
        _encode_image(frame.color, 'JPEG', quality=JPEG_QUALITY),
        _encode_image(_convert_to_millimetres(frame.depth_m), 'PNG', compress_level=1),
    )


def _convert_to_millimetres(depth_m: NDArray[np.floating]) -> NDArray[np.uint16]:
    finite = np.where(np.isfinite(depth_m), depth_m, 0.0) * DEPTH_PER_M
    return np.where(finite < np.iinfo(np.uint16).max, finite, 0).round().astype(np.uint16)


def _encode_image(image: NDArray[np.integer], kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind, **options)
    return buffer.getvalue()
