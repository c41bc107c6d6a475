"""The colours that objects show to a camera, which may be those of a part of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.semantics.color_names import (
    COLOR_EXAMPLES,
    color_indices,
    most_frequent_color,
)
from osmabench_ros.semantics.labels import NO_INSTANCE

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
