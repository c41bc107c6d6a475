"""Spots, which Habitat-Sim does not have: point lights behind a cone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.lights import SPOT_INNER_SHARE, Light, LightKind

HEADROOM = 4.0
"""Spots are rendered this much darker, because their images saturate before the cone is applied:
at the edge of the cone what is too bright for the image may be dark in the end."""


def as_point(spot: Light) -> Light:
    """Return the point light whose image becomes a spot's by `cone_share`."""
    return replace(spot, kind=LightKind.POINT, intensity=spot.intensity / HEADROOM)


def cone_share(
    spot: Light, depth_m: NDArray[np.float32], intrinsics: Intrinsics, camera_pose: Pose
) -> NDArray[np.float32]:
    """Return the share, 0 to 1, of a spot's light that falls on each pixel, shape (height, width).

    Full up to `SPOT_INNER_SHARE` of the half angle, then smoothly to nothing at the half angle:
    the embedded simulator's cone. `depth_m` is z along the optical axis; the share is 0 where it
    is 0 or infinite. `camera_pose` is the optical frame in the world.
    """
    position, direction = np.array(spot.position), np.array(spot.direction)
    if not spot.attached_to_camera:
        into_camera = camera_pose.inverse()
        position, direction = into_camera.transform(position), into_camera.rotation @ direction
    direction = (direction / np.linalg.norm(direction)).astype(np.float32)
    surface = np.isfinite(depth_m) & (depth_m > 0)
    z = np.where(surface, depth_m, np.float32(1.0))
    offset = intrinsics.rays().astype(np.float32) * z[..., None] - position.astype(np.float32)
    cosine = offset @ direction / np.maximum(np.linalg.norm(offset, axis=-1), 1e-6)
    outer = math.cos(spot.spot_half_angle_rad)
    inner = math.cos(SPOT_INNER_SHARE * spot.spot_half_angle_rad)
    t = np.clip((cosine - outer) / (inner - outer), 0.0, 1.0)
    return np.where(surface, t * t * (3 - 2 * t), 0.0).astype(np.float32)
