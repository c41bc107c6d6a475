"""How a light changes while the robot drives: lives, ramps, flicker; data, read from YAML."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from pydantic import Field, model_validator

from osmabench_ros.base.strict import Strict


@dataclass(frozen=True)
class Moment:
    """When and where a frame is taken.

    `segment` is 0-based, its progress the share that is done, the time that since the start of
    the path, the position x, y, z in the world.
    """

    segment: int
    segment_progress: float
    time_s: float
    robot_position: Sequence[float] | None = None


class Span(Strict):
    """A part of the run, in goal segments or in seconds; an end of null is the end of the run."""

    segments: tuple[float, float | None] | None = None
    """Start and end in goals driven to, e.g. [0, 1.5]."""
    seconds: tuple[float, float | None] | None = None
    """Start and end in seconds of stamps."""

    @model_validator(mode='after')
    def _check_unit_and_order(self) -> Span:
        if (self.segments is None) == (self.seconds is None):
            raise ValueError('give either "segments" or "seconds"')
        start, end = self.limits
        if end is not None and end < start:
            raise ValueError(f'the end {end} comes before the start {start}')
        return self

    @property
    def limits(self) -> tuple[float, float | None]:
        """Start and end, in the unit that was given."""
        limits = self.segments if self.segments is not None else self.seconds
        assert limits is not None
        return limits

    def _get_now(self, moment: Moment) -> float:
        if self.segments is None:
            return moment.time_s
        return moment.segment + moment.segment_progress

    def contains(self, moment: Moment) -> bool:
        """Return whether the moment is in [start, end)."""
        start, end = self.limits
        now = self._get_now(moment)
        if self.segments is not None and moment.segment_progress >= 1.0:
            now = math.nextafter(now, -math.inf)  # a goal belongs to the segment that reached it
        return start <= now and (end is None or now < end)

    def progress(self, moment: Moment) -> float:
        """Return the share of the span that is over: 0 before, 1 after."""
        start, end = self.limits
        now = self._get_now(moment)
        if end is None or end == start:
            return float(now >= start)
        return min(max((now - start) / (end - start), 0.0), 1.0)


class Ramp(Strict):
    """A factor that goes linearly from one value to another during a span."""

    span: Span
    start_factor: float
    """Until the span begins."""
    end_factor: float
    """From its end on."""

    def factor(self, moment: Moment) -> float:
        """Return the factor at a moment."""
        done = self.span.progress(moment)
        return self.start_factor + done * (self.end_factor - self.start_factor)


class FlickerPattern(str, Enum):
    """How a flickering light varies."""

    SINE = 'sine'
    SQUARE = 'square'
    RANDOM = 'random'


class Flicker(Strict):
    """A factor between 1 - depth and 1 that depends only on the time."""

    pattern: FlickerPattern = FlickerPattern.SINE
    """How it varies."""
    frequency_hz: float = Field(gt=0)
    """Periods a second; with `random`, values a second."""
    depth: float = Field(ge=0, le=1)
    """Largest fraction that is taken away."""
    seed: int = Field(0, ge=0)
    """Of the pattern `random`."""

    def factor(self, name: str, time_s: float) -> float:
        """Return the factor of the light of this name."""
        turns = time_s * self.frequency_hz
        if self.pattern is FlickerPattern.SINE:
            dimmed = 0.5 - 0.5 * math.cos(2 * math.pi * turns)
        elif self.pattern is FlickerPattern.SQUARE:
            dimmed = float(turns % 1.0 >= 0.5)
        else:
            key = [self.seed, zlib.crc32(name.encode()), math.floor(turns)]
            dimmed = float(np.random.default_rng(key).random())
        return 1.0 - self.depth * dimmed


class Schedule(Strict):
    """A factor over the run: constant x alive (always without spans) or not x ramps x flicker."""

    factor: float = 1.0
    """On the light, all the time."""
    alive: tuple[Span, ...] = ()
    ramps: tuple[Ramp, ...] = ()
    flicker: Flicker | None = None

    def compute_factor(self, name: str, moment: Moment) -> float:
        """Return the factor on a light of this name at a moment."""
        if self.alive and not any(span.contains(moment) for span in self.alive):
            return 0.0
        factor = self.factor
        for ramp in self.ramps:
            factor *= ramp.factor(moment)
        if self.flicker is not None:
            factor *= self.flicker.factor(name, moment.time_s)
        return factor
