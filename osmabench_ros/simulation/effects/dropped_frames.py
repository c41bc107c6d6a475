"""Frames that never arrive."""

from __future__ import annotations

import zlib
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.simulation.effects.effect import Effect


class DroppedFrames(Effect):
    """Loses an expected `share` of frames, `burst` in a row; the first one always arrives."""

    kind: Literal['dropped_frames'] = 'dropped_frames'
    share: float = Field(ge=0, lt=1)
    burst: int = Field(1, ge=1)

    def keeps(self, count: int, seed: int) -> NDArray[np.bool_]:
        """Draw which frames arrive."""
        rng = np.random.default_rng([self.seed, seed, zlib.crc32(self.kind.encode())])
        # Between two bursts lies a geometrically distributed number of frames that arrive.
        begins = self.share / (self.burst * (1 - self.share) + self.share) if self.share else 0.0
        starts = rng.random(count) < begins
        kept = np.ones(count, bool)
        index = 1
        while index < count:
            if starts[index]:
                kept[index : index + self.burst] = False
                index += self.burst
            else:
                index += 1
        return kept
