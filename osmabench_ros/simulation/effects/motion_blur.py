"""Blur of a moving camera, integrated over the time the shutter is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.simulation.effects.effect import Effect
from osmabench_ros.simulation.effects.srgb import to_linear, to_srgb


class MotionBlur(Effect):
    """Averages the linear light of `samples` images rendered while the shutter is open.

    The exposure of `shutter_s` is centred on the stamp, and the robot moves on at its own speed.
    Depth and ids stay those of the middle of the exposure.
    """

    kind: Literal['motion_blur'] = 'motion_blur'
    shutter_s: float = Field(0.03, gt=0, le=1)
    samples: int = Field(8, ge=2, le=64)

    def sample_times_s(self, time_s: float) -> NDArray[np.float64]:
        """Return the middles of equal parts of the exposure around a stamp, shape (samples,)."""
        parts = (np.arange(self.samples) + 0.5) / self.samples - 0.5
        return np.asarray(time_s + parts * self.shutter_s)

    def averaged(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Return the image of the light of all the images."""
        total = np.zeros(images[0].shape, np.float32)
        for image in images:
            total += to_linear(image)
        return to_srgb(total / len(images))
