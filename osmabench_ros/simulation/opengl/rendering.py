"""How images are made from linear light: edges, tone curve, exposure."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from osmabench_ros.base.strict import Strict


class Rendering(str, Enum):
    """How the embedded simulator makes colour images.

    COMPAT takes one sample a pixel and clips what is brighter than white. STANDARD knows in four
    places of a pixel which surface covers it, shades meshes without normals flat, and has the tone
    curve of a film. Depth, classes, instances and surface colours are the same in both.
    """

    COMPAT = 'compat'
    STANDARD = 'standard'


class ExposureMode(str, Enum):
    """FIXED is that of the condition; AUTOMATIC brings each image to a medium grey before it."""

    FIXED = 'fixed'
    AUTOMATIC = 'automatic'


class RenderingOptions(Strict):
    """What the options of the embedded simulator say about its pictures."""

    rendering: Rendering = Rendering.COMPAT
    exposure: ExposureMode = ExposureMode.FIXED

    @model_validator(mode='after')
    def _exposure_is_possible(self) -> RenderingOptions:
        if self.rendering is Rendering.COMPAT and self.exposure is not ExposureMode.FIXED:
            raise ValueError('the rendering compat has a fixed exposure; choose standard')
        return self

    @property
    def in_words(self) -> str:
        """What differs from one sample and linear clipping, for a description; may be empty."""
        if self.rendering is Rendering.COMPAT:
            return ''
        return f', {self.rendering.value} rendering, {self.exposure.value} exposure'


MIDDLE_GREY = 0.18
"""The tone curve leaves it as it is, and automatic exposure aims at it."""

LARGEST_GAIN = 16.0
"""Of automatic exposure, either way: four stops."""


def automatic_gain(linear: NDArray[np.floating]) -> float:
    """Return the factor that brings the log-average luminance of colours (N, 3) to middle grey.

    Black does not count. As of Reinhard et al., Photographic tone reproduction for digital images,
    2002, eq. 1 and 2.
    """
    luminance = linear.reshape(-1, 3).astype(np.float64) @ [0.2126, 0.7152, 0.0722]
    seen = luminance[luminance > 0]
    if not len(seen):
        return 1.0
    average = np.exp(np.log(seen).mean())
    return float(np.clip(MIDDLE_GREY / average, 1 / LARGEST_GAIN, LARGEST_GAIN))
