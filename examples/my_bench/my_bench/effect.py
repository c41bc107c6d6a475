# my_bench/my_bench/effect.py
from typing import Literal

import numpy as np
from pydantic import Field

from osmabench_ros.simulation.effects import Effect


class ColorNoise(Effect):
    """Adds normal noise to the colour image."""

    kind: Literal['color_noise'] = 'color_noise'
    sigma: float = Field(8.0, gt=0)

    def color(self, color, shot):
        noise = self.generator(shot).normal(0.0, self.sigma, color.shape)
        return np.clip(color + noise, 0, 255).astype(np.uint8)
