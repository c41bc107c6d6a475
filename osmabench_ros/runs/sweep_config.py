"""What a configuration says about sweeps over speeds."""

from __future__ import annotations

import math

from pydantic import Field, field_validator, model_validator

from osmabench_ros.simulation.section import Section


class SweepConfig(Section):
    """Which speed factors `osmabench sweep` tries: those listed, or a search on a grid."""

    speeds: tuple[float, ...] = ()
    lowest: float = Field(0.25, ge=0.001, le=1000)
    highest: float = Field(16.0, ge=0.001, le=1000)
    steps_per_octave: int = Field(2, ge=1, le=24)
    max_loss: float = Field(0.05, ge=0.0, lt=1.0)

    @field_validator('speeds')
    @classmethod
    def _ascending(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0.001 <= speed <= 1000 for speed in value):
            raise ValueError('speed factors must be between 0.001 and 1000')
        return tuple(sorted(set(value)))

    @model_validator(mode='after')
    def _a_range(self) -> SweepConfig:
        if self.highest < self.lowest:
            raise ValueError('highest must not be below lowest')
        return self

    @property
    def grid(self) -> tuple[float, ...]:
        """Speed factors from the lowest to the highest, geometric, to three digits."""
        octaves = math.log2(self.highest / self.lowest)
        steps = max(0, math.ceil(octaves * self.steps_per_octave - 1e-9))
        speeds = [
            self.lowest * 2 ** min(octaves, i / self.steps_per_octave) for i in range(steps + 1)
        ]
        return tuple(dict.fromkeys(float(f'{speed:.3g}') for speed in speeds))
