"""A wrong tone curve."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.simulation.effects.effect import Effect, Shot


class Gamma(Effect):
    """Raises encoded values to a power; above 1 darkens the middle tones, below 1 lightens."""

    kind: Literal['gamma'] = 'gamma'
    gamma: float = Field(gt=0, le=10)

    def color(self, color: NDArray[np.uint8], shot: Shot) -> NDArray[np.uint8]:  # noqa: ARG002
        """Apply the curve."""
        curve = np.rint(255.0 * (np.arange(256) / 255.0) ** self.gamma).astype(np.uint8)
        return curve[color]
