"""Effects on the colour image: exposure, tone curve, white balance, motion blur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from osmabench_ros.base.color import LINEAR_OF_CODE, decoded_image, encoded_image
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.simulation.effects.effect import Effect, Shot


class Exposure(Effect):
    """Multiplies the light by 2^`stops`, and by a sine of `swing_stops`, before saturation."""

    kind: Literal['exposure'] = 'exposure'
    stops: float = 0.0
    swing_stops: float = Field(0.0, ge=0)
    swing_period_s: float = Field(4.0, gt=0)
    """Of the sine."""

    def lighting(self, lighting: Lighting, shot: Shot) -> Lighting:
        """Scale the exposure."""
        swing = self.swing_stops * math.sin(2 * math.pi * shot.time_s / self.swing_period_s)
        return replace(lighting, exposure=lighting.exposure * 2.0 ** (self.stops + swing))


class Gamma(Effect):
    """Raises encoded values to a power; above 1 darkens the middle tones, below 1 lightens."""

    kind: Literal['gamma'] = 'gamma'
    gamma: float = Field(gt=0, le=10)

    def color(self, color: NDArray[np.uint8], shot: Shot) -> NDArray[np.uint8]:  # noqa: ARG002
        """Apply the curve."""
        curve = np.rint(255.0 * (np.arange(256) / 255.0) ** self.gamma).astype(np.uint8)
        return curve[color]


class WhiteBalance(Effect):
    """Multiplies red, green and blue of linear light by `gains`; (1.2, 1, 0.8) is too warm."""

    kind: Literal['white_balance'] = 'white_balance'
    gains: tuple[float, float, float] = Field()

    @field_validator('gains')
    @classmethod
    def _positive(cls, gains: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(gains) <= 0:
            raise ValueError('gains must be positive')
        return gains

    def color(self, color: NDArray[np.uint8], shot: Shot) -> NDArray[np.uint8]:  # noqa: ARG002
        """Apply the gains."""
        curves = [encoded_image(LINEAR_OF_CODE * g) for g in self.gains]
        return np.stack([curve[color[..., i]] for i, curve in enumerate(curves)], axis=-1)


class MotionBlur(Effect):
    """Averages the linear light of `samples` images over `shutter_s`, centred on the stamp.

    The robot moves on meanwhile; depth and ids stay those of the middle of the exposure.
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
            total += decoded_image(image)
        return encoded_image(total / len(images))
