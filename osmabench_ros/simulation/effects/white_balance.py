"""A wrong white balance."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from osmabench_ros.simulation.effects.effect import Effect, Shot
from osmabench_ros.simulation.effects.srgb import to_linear, to_srgb


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
        curves = [to_srgb(to_linear(np.arange(256, dtype=np.uint8)) * g) for g in self.gains]
        return np.stack([curve[color[..., i]] for i, curve in enumerate(curves)], axis=-1)
