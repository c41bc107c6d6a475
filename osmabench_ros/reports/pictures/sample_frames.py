"""Sample frames of a run as pictures, and the instances in them."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.base.images import encode_image, read_image, select_evenly
from osmabench_ros.errors import RunError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.runs.plan import PATH_FILE, RunPlan
from osmabench_ros.runs.shared_path import driven_trajectory
from osmabench_ros.sequences.ground_truth import GroundTruth

_COLORS = 255
_PHOTO_QUALITY = 75


def encode_drawing(image: NDArray[np.uint8]) -> str:
    """Return RGBA (height, width, 4) as WebP of 255 colours; alpha is all or nothing."""
    indexed = Image.fromarray(np.ascontiguousarray(image[..., :3])).quantize(
        _COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
    )
    flat = indexed.convert('RGBA')
    flat.putalpha(Image.fromarray(np.where(image[..., 3] > 0, 255, 0).astype(np.uint8)))
    return _make_uri(encode_image(flat, 'WEBP', lossless=True))


def encode_photo(path: Path, width: int) -> str:
    """Return an image file as WebP at most `width` pixels wide."""
    photo = read_image(path, RunError).convert('RGB')
    if photo.width > width:
        height = max(1, round(photo.height * width / photo.width))
        photo = photo.resize((width, height), Image.Resampling.LANCZOS)
    return _make_uri(encode_image(photo, 'WEBP', quality=_PHOTO_QUALITY))


def _make_uri(image: bytes) -> str:
    return f'data:image/webp;base64,{base64.b64encode(image).decode()}'


MOST_FRAMES = 8
_WIDTH_PX = 400
_COARSE_WIDTH_PX = 96
_BEHIND_M = 0.1
_FEWEST_POINTS = 4

# Left, top, width and height in percent of the image.
Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True)
class SampleFrame:
    """One kept frame, and by instance how many points are in view and where, in percent."""

    index: int
    time_s: float
    uri: str
    shows: Mapping[int, tuple[int, Rectangle]] = field(default_factory=dict)


def pick_sample_frames(plan: RunPlan, truth: GroundTruth) -> list[SampleFrame]:
    """Return the kept frames of a run, at most MOST_FRAMES evenly spread ones."""
    files = {int(x.stem): x for x in plan.frames_directory.glob('*.png') if x.stem.isdigit()}
    poses = read_camera_poses(plan) if files else ()
    return [
        SampleFrame(
            index,
            index / plan.config.trajectory.frame_rate_hz,
            encode_photo(files[index], _WIDTH_PX),
            find_shown_instances(truth, poses[index]) if index < len(poses) else {},
        )
        for index in select_evenly(sorted(files), MOST_FRAMES)
    ]


def read_camera_poses(plan: RunPlan) -> tuple[Pose, ...]:
    """Return the pose of every frame of a run, none without its path."""
    there = (plan.shared_directory / PATH_FILE).exists()
    return driven_trajectory(plan).camera_poses if there else ()


def find_shown_instances(truth: GroundTruth, pose: Pose) -> dict[int, tuple[int, Rectangle]]:
    """Return the instances that a camera, optical in the world, sees; how many points, where."""
    rows, pixels = select_rows_in_view(truth, pose)
    instances, shown = truth.surface.instances[rows], {}
    size = truth.intrinsics.width, truth.intrinsics.height
    for instance, count in zip(*np.unique(instances, return_counts=True), strict=True):
        if instance > 0 and count >= _FEWEST_POINTS:
            own = (pixels[instances == instance] + 0.5) / size
            low = own.min(axis=0)
            high = own.max(axis=0)
            left, top, width, height = (round(100 * float(v), 1) for v in (*low, *(high - low)))
            shown[int(instance)] = int(count), (left, top, width, height)
    return shown


def select_rows_in_view(
    truth: GroundTruth, pose: Pose
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Return the rows of the visible surface that a camera sees, and their pixels (N, 2)."""
    camera = truth.intrinsics
    local = (truth.surface.points - pose.translation) @ pose.rotation
    ahead = np.flatnonzero(local[:, 2] > _BEHIND_M)
    pixels = camera.project(local[ahead])
    upper = (camera.width - 0.5, camera.height - 0.5)
    inside = ((pixels > -0.5) & (pixels < upper)).all(axis=1)
    rows = ahead[inside]
    pixels = pixels[inside]
    seen = _select_in_front(pixels, local[rows, 2], camera)
    return rows[seen], pixels[seen]


def _select_in_front(
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
