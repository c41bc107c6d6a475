"""The cloud of OSMa-Bench and the colours of objects, from rendered frames of a scene.

The cloud is used only in mode compat. It comes from the very images that the method saw and is as
dense as they overlap; strict metrics use the cloud sampled on the meshes instead.
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


def fused_cloud(frames: Iterable[Frame]) -> LabelledCloud:
    """Fuse the frames of a sequence as OSMa-Bench does; SequenceError without semantic images."""
    points, labels, instances = (
        [np.zeros((0, 3), np.float32)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)],
    )  # fmt: skip
    for frame in frames:
        if frame.index % FRAME_STRIDE:
            continue
        if frame.semantic is None:
            raise SequenceError(
                f'frame {frame.index} has no semantic image; a ground-truth cloud needs one'
            )
        usable = frame.valid & (frame.depth_m < SATURATION_M)
        mask = np.zeros(usable.shape, bool)
        mask.flat[np.flatnonzero(usable)[::POINT_STRIDE]] = True
        points.append(frame.world_points(mask))
        labels.append(frame.semantic[mask].astype(np.int32))
        ids = np.zeros(mask.shape, np.int32) if frame.instance is None else frame.instance
        instances.append(ids[mask])
    return LabelledCloud(np.concatenate(points), np.concatenate(labels), np.concatenate(instances))


_STRIDE = 4
"""Every how many-th row and column is looked at; objects of a few pixels are not asked about."""


class VisibleColors:
    """Counts the colours of the pixels of each instance, of frames that no light changes."""

    def __init__(self) -> None:
        self._pixels: dict[int, NDArray[np.int64]] = defaultdict(
            lambda: np.zeros(len(COLOR_EXAMPLES), np.int64)
        )

    def watching(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield the frames, and count their colours."""
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
