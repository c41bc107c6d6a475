"""Axis-aligned and oriented bounding boxes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.geometry.pose import Pose


@dataclass(frozen=True, eq=False)
class AxisAlignedBox:
    """Box along the axes of the world: opposite corners (3,) in metres, minimum <= maximum."""

    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]

    def __post_init__(self) -> None:
        minimum = np.array(self.minimum, dtype=np.float64)
        maximum = np.array(self.maximum, dtype=np.float64)
        if minimum.shape != (3,) or maximum.shape != (3,):
            raise ValueError('the corners of a box have shape (3,)')
        if not (minimum <= maximum).all():
            raise ValueError(f'box corners are not finite or not in order: {minimum}, {maximum}')
        object.__setattr__(self, 'minimum', minimum)
        object.__setattr__(self, 'maximum', maximum)

    @classmethod
    def around(cls, points: ArrayLike) -> AxisAlignedBox:
        """Return the smallest box around points of shape (N, 3), N >= 1."""
        points = np.asarray(points)
        return cls(points.min(axis=0), points.max(axis=0))

    @classmethod
    def holding(cls, boxes: Iterable[AxisAlignedBox]) -> AxisAlignedBox:
        """Return the smallest box around other boxes, of which there is at least one."""
        return cls.around([corner for box in boxes for corner in (box.minimum, box.maximum)])

    @property
    def center(self) -> NDArray[np.float64]:
        """Centre in metres, shape (3,)."""
        return (self.minimum + self.maximum) / 2

    @property
    def size(self) -> NDArray[np.float64]:
        """Edge lengths in metres, shape (3,)."""
        return self.maximum - self.minimum

    @property
    def volume(self) -> float:
        """Volume in cubic metres."""
        return float(np.prod(self.size))

    def measure_gap(self, other: AxisAlignedBox) -> float:
        """Return the shortest distance to another box in metres, 0 if they touch."""
        gap = np.maximum(self.minimum - other.maximum, other.minimum - self.maximum)
        return float(np.linalg.norm(np.maximum(gap, 0.0)))

    def measure_intersection(self, other: AxisAlignedBox) -> float:
        """Return the volume shared with another box in cubic metres."""
        shared = np.minimum(self.maximum, other.maximum) - np.maximum(self.minimum, other.minimum)
        return float(np.prod(np.maximum(shared, 0.0)))

    def iou(self, other: AxisAlignedBox) -> float:
        """Return intersection over union with another box, in [0, 1]."""
        shared = self.measure_intersection(other)
        union = self.volume + other.volume - shared
        return shared / union if union > 0 else 0.0

    def contains(self, points: NDArray[np.floating], margin_m: float = 0.0) -> NDArray[np.bool_]:
        """Return a mask of the points (..., 3) that lie inside the box grown by a margin."""
        inside = (points >= self.minimum - margin_m) & (points <= self.maximum + margin_m)
        return np.asarray(inside.all(axis=-1))


@dataclass(frozen=True, eq=False)
class OrientedBox:
    """Box with a pose: centre and axes in the world, full edge lengths (3,) in m."""

    pose: Pose
    size: NDArray[np.float64]

    def __post_init__(self) -> None:
        size = np.array(self.size, dtype=np.float64)
        if size.shape != (3,) or not (size >= 0).all():
            raise ValueError(f'the size of a box is three lengths >= 0, not {size}')
        object.__setattr__(self, 'size', size)

    def corners(self) -> NDArray[np.float64]:
        """Return the eight corners in the world, shape (8, 3)."""
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return self.pose.transform(signs * self.size / 2)

    def axis_aligned(self) -> AxisAlignedBox:
        """Return the axis-aligned box around this one."""
        return AxisAlignedBox.around(self.corners())
