"""Wrong exposure: a fixed number of stops, or one that swings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from pydantic import Field

from osmabench_ros.scenes.lights import Lighting
from osmabench_ros.simulation.effects.effect import Effect, Shot


class Exposure(Effect):
    """Multiplies the light by 2 to the power of `stops` before the sensor saturates.

    A sine of amplitude `swing_stops` is added, as of an automatic exposure that hunts.
    """

    kind: Literal['exposure'] = 'exposure'
    stops: float = 0.0
    swing_stops: float = Field(0.0, ge=0)
    swing_period_s: float = Field(4.0, gt=0)

    def lighting(self, lighting: Lighting, shot: Shot) -> Lighting:
        """Scale the exposure."""
        swing = self.swing_stops * math.sin(2 * math.pi * shot.time_s / self.swing_period_s)
        return replace(lighting, exposure=lighting.exposure * 2.0 ** (self.stops + swing))
