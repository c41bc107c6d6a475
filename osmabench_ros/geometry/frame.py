"""One stamped observation of a sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose


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
        shape = (self.intrinsics.height, self.intrinsics.width)
        for name, expected in (
            ('color', (*shape, 3)),
            ('depth_m', shape),
            ('semantic', shape),
            ('instance', shape),
            ('albedo', (*shape, 3)),
        ):
            image = getattr(self, name)
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
