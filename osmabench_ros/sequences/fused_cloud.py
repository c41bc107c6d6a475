"""What the rendered frames of a scene show: OSMa-Bench's cloud, and the colours of objects.

The cloud is used only in mode compat. It comes from the very images that the method saw and is as
dense as they overlap; figures that should be right use the cloud sampled on the meshes instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import (
    COLOR_EXAMPLES,
    NO_INSTANCE,
    color_indices,
    most_frequent_color,
)

FRAME_STRIDE = 5
POINT_STRIDE = 10
SATURATION_M = 10.0
"""Depth from which on OSMa-Bench's 16-bit images (6553.5 a metre) say no more."""


class FusedCloudBuilder:
    """Collects every `point_stride`-th valid pixel of every `frame_stride`-th frame, from 0 on."""

    def __init__(
        self,
        frame_stride: int = FRAME_STRIDE,
        point_stride: int = POINT_STRIDE,
        saturation_m: float | None = SATURATION_M,
    ) -> None:
        if frame_stride < 1 or point_stride < 1:
            raise SequenceError(
                f'strides of a fused cloud must be at least 1, not {frame_stride}, {point_stride}'
            )
        self._frame_stride, self._point_stride = frame_stride, point_stride
        self._saturation_m = saturation_m
        self._points: list[NDArray[np.float32]] = []
        self._labels: list[NDArray[np.int32]] = []
        self._instances: list[NDArray[np.int32]] = []

    def add(self, frame: Frame) -> None:
        """Add a frame unless its index is left out; SequenceError if it has no semantic image."""
        if frame.index % self._frame_stride:
            return
        if frame.semantic is None:
            raise SequenceError(
                f'frame {frame.index} has no semantic image; a ground-truth cloud needs one'
            )
        mask = self._kept(frame)
        self._points.append(frame.world_points(mask))
        self._labels.append(frame.semantic[mask].astype(np.int32))
        instances = np.zeros(mask.shape, np.int32) if frame.instance is None else frame.instance
        self._instances.append(instances[mask])

    def _kept(self, frame: Frame) -> NDArray[np.bool_]:
        valid = frame.valid
        if self._saturation_m is not None:
            valid &= frame.depth_m < self._saturation_m
        mask = np.zeros(valid.size, bool)
        mask[np.flatnonzero(valid)[:: self._point_stride]] = True
        return mask.reshape(valid.shape)

    def cloud(self) -> LabelledCloud:
        """Return the points collected so far; empty without frames."""
        return LabelledCloud(
            np.concatenate([np.zeros((0, 3), np.float32), *self._points]),
            np.concatenate([np.zeros(0, np.int32), *self._labels]),
            np.concatenate([np.zeros(0, np.int32), *self._instances]),
        )


def fused_cloud(frames: Iterable[Frame]) -> LabelledCloud:
    """Fuse the frames of a sequence as OSMa-Bench does."""
    builder = FusedCloudBuilder()
    for frame in frames:
        builder.add(frame)
    return builder.cloud()


_STRIDE = 4
"""Every how many-th row and column is looked at; objects of a few pixels are not asked about."""


class VisibleColors:
    """Counts the colours of the pixels of each instance, of frames that no light changes."""

    def __init__(self) -> None:
        self._pixels: dict[int, NDArray[np.int64]] = defaultdict(
            lambda: np.zeros(len(COLOR_EXAMPLES), np.int64)
        )

    def watching(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield the frames, and count what they show."""
        for frame in frames:
            self._count(frame)
            yield frame

    def _count(self, frame: Frame) -> None:
        if frame.instance is None:
            return
        instances = frame.instance[::_STRIDE, ::_STRIDE].ravel()
        colors = color_indices(frame.color[::_STRIDE, ::_STRIDE].reshape(-1, 3))
        for key in np.setdiff1d(instances, [NO_INSTANCE]).tolist():
            own = colors[instances == key]
            self._pixels[key] += np.bincount(own, minlength=len(COLOR_EXAMPLES))

    def names(self) -> dict[int, str]:
        """Return the name of the colour that most pixels of each instance have."""
        every = np.arange(len(COLOR_EXAMPLES))
        return {key: most_frequent_color(every, counts) for key, counts in self._pixels.items()}
