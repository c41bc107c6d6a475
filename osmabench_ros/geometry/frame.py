"""A pinhole camera, and one stamped observation of it in a sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose

MIN_FOCAL_PX, MAX_PX = 1e-3, 1e6
"""Of a camera matrix; beyond, directions of pixels are no longer exact."""


@dataclass(frozen=True)
class Intrinsics:
    """Pinhole intrinsics without distortion; integer pixel coordinates are pixel centres.

    Parameters
    ----------
    width, height : int
        Image size in pixels.
    fx, fy : float
        Focal lengths in pixels.
    cx, cy : float
        Principal point in pixels; the middle of the image is ((width-1)/2, (height-1)/2).
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f'an image of {self.width} x {self.height} pixels is empty')
        if not (self.fx > 0 and self.fy > 0 and math.isfinite(self.cx) and math.isfinite(self.cy)):
            raise ValueError('focal lengths must be positive, the principal point finite')

    @classmethod
    def from_hfov(cls, width: int, height: int, hfov_rad: float) -> Intrinsics:
        """Build a centred camera with square pixels from its horizontal field of view."""
        if not 0 < hfov_rad < math.pi:
            raise ValueError(f'a horizontal field of view must be in (0, pi), not {hfov_rad}')
        focal = width / 2 / math.tan(hfov_rad / 2)
        return cls(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)

    @classmethod
    def from_camera_info(cls, message: Any) -> Intrinsics:
        """Return the camera of a CameraInfo; ValueError if it is distorted or no pinhole."""
        if not all(abs(value) <= 1e-9 for value in message.d):
            distortion = [float(value) for value in message.d[:8]]
            raise ValueError(f'images must be rectified, D is {distortion}')
        k = [float(value) for value in message.k]
        lengths = all(MIN_FOCAL_PX <= k[place] <= MAX_PX for place in (0, 4))
        if not (lengths and all(abs(value) <= MAX_PX for value in k)):
            raise ValueError(
                f'K is {k}; focal lengths must lie in {MIN_FOCAL_PX:g} to {MAX_PX:g} pixels, and '
                'no entry may be larger. Calibrate the camera'
            )
        return cls(message.width, message.height, k[0], k[4], k[2], k[5])

    def make_camera_info_fields(self) -> dict[str, Any]:
        """Return the fields of a sensor_msgs/CameraInfo, save the header, by name."""
        return {
            'height': self.height,
            'width': self.width,
            'distortion_model': 'plumb_bob',
            'd': np.zeros(5),
            'k': self.matrix.ravel(),
            'r': np.eye(3).ravel(),
            'p': np.hstack([self.matrix, np.zeros((3, 1))]).ravel(),
        }

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Camera matrix K, shape (3, 3)."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @property
    def hfov_rad(self) -> float:
        """Horizontal field of view from the left edge of the image to the right edge."""
        left = (self.cx + 0.5) / self.fx
        right = (self.width - 0.5 - self.cx) / self.fx
        return math.atan(left) + math.atan(right)

    def rays(self) -> NDArray[np.float32]:
        """Return the direction of every pixel at z = 1, optical axes, shape (height, width, 3)."""
        u = (np.arange(self.width, dtype=np.float64) - self.cx) / self.fx
        v = (np.arange(self.height, dtype=np.float64) - self.cy) / self.fy
        rays = np.ones((self.height, self.width, 3), np.float32)
        rays[..., 0] = u
        rays[..., 1] = v[:, None]
        return rays

    def back_project(self, depth_m: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return points (height, width, 3), optical frame, of z-depth in metres or NaN."""
        if depth_m.shape != (self.height, self.width):
            raise ValueError(
                f'depth is {depth_m.shape}, the intrinsics say {(self.height, self.width)}'
            )
        with np.errstate(invalid='ignore'):
            points = self.rays() * depth_m[..., None].astype(np.float32)
        return np.asarray(points, np.float32)

    def project(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return pixel coordinates (..., 2) of points (..., 3) in the optical frame, z > 0."""
        z = points[..., 2]
        u = self.fx * points[..., 0] / z + self.cx
        v = self.fy * points[..., 1] / z + self.cy
        return np.stack([u, v], axis=-1)


@dataclass(frozen=True, eq=False)
class Frame:
    """Registered images of one instant with the pose they were taken from.

    Parameters
    ----------
    index : int
        0-based number in the sequence.
    stamp_ns : int
        Time of the exposure in nanoseconds.
    camera_pose : Pose
        Optical frame of the camera in the world.
    intrinsics : Intrinsics
        Shared by all images.
    color : ndarray of uint8, shape (height, width, 3)
        RGB.
    depth_m : ndarray of float32, shape (height, width)
        Metres along the optical axis; NaN invalid, +inf out of range (REP-118).
    semantic : ndarray of uint16, shape (height, width), optional
        Class id; UNLABELLED where there is none.
    instance : ndarray of int32, shape (height, width), optional
        Instance id; 0 where there is none.
    base_pose : Pose, optional
        base_link in the world.
    albedo : ndarray of uint8, shape (height, width, 3), optional
        RGB of the surfaces without light, ground truth.
    """

    index: int
    stamp_ns: int
    camera_pose: Pose
    intrinsics: Intrinsics
    color: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    semantic: NDArray[np.uint16] | None = None
    instance: NDArray[np.int32] | None = None
    base_pose: Pose | None = None
    albedo: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        shape: tuple[int, ...] = (self.intrinsics.height, self.intrinsics.width)
        for name in ('color', 'depth_m', 'semantic', 'instance', 'albedo'):
            image, expected = getattr(self, name), shape
            if name in ('color', 'albedo'):
                expected = (*shape, 3)
            if image is not None and image.shape != expected:
                raise ValueError(
                    f'frame {self.index}: {name} is {image.shape}, expected {expected}'
                )

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Pixels with a usable depth, shape (height, width)."""
        return np.isfinite(self.depth_m) & (self.depth_m > 0)

    def world_points(self, mask: NDArray[np.bool_] | None = None) -> NDArray[np.float32]:
        """Return world points (N, 3), row-major, of the valid pixels or a mask of some of them."""
        mask = self.valid if mask is None else mask
        points = self.intrinsics.back_project(self.depth_m)[mask]
        return self.camera_pose.transform(points).astype(np.float32)

    def colored_points(
        self, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return `world_points` (N, 3) with the RGB colours (N, 3) of their pixels."""
        mask = self.valid if mask is None else mask
        return self.world_points(mask), self.color[mask]
