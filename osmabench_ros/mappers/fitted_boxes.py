"""Boxes around observed points that a few stray points cannot blow up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose

TRIM = 0.002
"""Share of the points that may lie beyond each face of a box."""

_WORTHWHILE = 0.95
"""An oriented box is turned only if that makes its footprint smaller than this share."""


def _bounds(values: NDArray[np.floating], trim: float) -> NDArray[np.float64]:
    """Return the trimmed minimum and maximum of the columns of (N, D), shape (2, D)."""
    return np.quantile(np.asarray(values, np.float64), [trim, 1 - trim], axis=0)


def trimmed_box(points: NDArray[np.floating], trim: float = TRIM) -> AxisAlignedBox:
    """Return the axis-aligned box of points (N, 3), N >= 1, without the outermost `trim`."""
    low, high = _bounds(points, trim)
    return AxisAlignedBox(low, high)


def _hull_yaws(footprint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the headings of the convex hull's edges in [0, pi/2); one of them is optimal."""
    try:
        corners = footprint[ConvexHull(footprint).vertices]
    except (QhullError, ValueError):  # all points on one line
        spread = footprint - footprint.mean(axis=0)
        direction = np.linalg.eigh(spread.T @ spread)[1][:, 1]
        return np.array([float(np.arctan2(direction[1], direction[0])) % (np.pi / 2)])
    edges = np.roll(corners, -1, axis=0) - corners
    return np.asarray(np.unique(np.mod(np.arctan2(edges[:, 1], edges[:, 0]), np.pi / 2)))


def _turned(footprint: NDArray[np.float64], yaw_rad: float) -> NDArray[np.float64]:
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    return np.asarray(footprint @ np.array([[cos, -sin], [sin, cos]]))


def upright_box(points: NDArray[np.floating], trim: float = TRIM) -> OrientedBox:
    """Return the upright box of smallest footprint around points (N, 3), N >= 1.

    The best heading is that of an edge of the footprint's convex hull (Freeman and Shapira,
    1975). Headings lie in (-pi/4, pi/4]; the box stays along the world's axes unless turning it
    makes its footprint at least 5 % smaller.
    """
    inside = trimmed_box(points, trim).contains(points)
    footprint = (points[inside] if inside.any() else points)[:, :2].astype(np.float64)
    yaws = np.concatenate([[0.0], _hull_yaws(footprint)])
    areas = [float(np.prod(np.ptp(_turned(footprint, yaw), axis=0))) for yaw in yaws]
    best = int(np.argmin(areas))
    yaw = float(yaws[best]) if areas[best] < _WORTHWHILE * areas[0] else 0.0
    if yaw > np.pi / 4:
        yaw -= np.pi / 2
    pose = Pose.from_yaw(yaw)
    low, high = _bounds(pose.inverse().transform(points), trim)
    return OrientedBox(Pose(pose.rotation, pose.transform((low + high) / 2)), high - low)
