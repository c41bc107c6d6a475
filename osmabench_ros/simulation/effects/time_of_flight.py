"""Depth noise of time-of-flight cameras."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import ndimage

from osmabench_ros.simulation.effects.effect import Effect, Shot


class TimeOfFlightDepth(Effect):
    """Noise that grows with distance, a wiggling error, flying pixels and wrapped phases.

    The standard deviation is offset + factor z^2 (less light comes back); the systematic error is
    periodic in the distance, as of modulation that is no perfect sine (Foix, Alenya and Torras,
    IEEE Sensors Journal 2011). A pixel on an edge mixes both surfaces.

    Parameters
    ----------
    noise_offset_m, noise_factor : float
        Standard deviation at 0 m, and its growth with the square of the distance.
    wiggle_m, wiggle_period_m : float
        Amplitude and period of the systematic error.
    flying_share : float
        Share of the edge pixels that fly between the surfaces.
    flying_edge_m : float
        Step in depth from which on an edge makes pixels fly.
    unambiguous_m : float
        Distance at which the phase starts again from 0.
    near_m, far_m : float
        Range; NaN nearer, +inf farther.
    """

    kind: Literal['time_of_flight'] = 'time_of_flight'
    noise_offset_m: float = Field(0.002, ge=0)
    noise_factor: float = Field(0.0008, ge=0)
    wiggle_m: float = Field(0.003, ge=0)
    wiggle_period_m: float = Field(0.9, gt=0)
    flying_share: float = Field(0.7, ge=0, le=1)
    flying_edge_m: float = Field(0.1, gt=0)
    unambiguous_m: float = Field(15.0, gt=0)
    near_m: float = Field(0.2, ge=0)
    far_m: float = Field(10.0, gt=0)

    def depth(self, depth_m: NDArray[np.float32], shot: Shot) -> NDArray[np.float32]:
        """Apply the sensor."""
        rng = self.generator(shot)
        finite = np.isfinite(depth_m)
        z = np.where(finite, depth_m, 0.0).astype(np.float64)
        z = np.where(finite, self._mixed(z, finite, rng), z)
        z = z % self.unambiguous_m
        z += self.wiggle_m * np.sin(2 * np.pi * z / self.wiggle_period_m)
        z += (self.noise_offset_m + self.noise_factor * z**2) * rng.normal(size=z.shape)
        noisy = np.where(finite, z, np.inf)
        noisy[noisy > self.far_m] = np.inf
        noisy[noisy < self.near_m] = np.nan
        return noisy.astype(np.float32)

    def _mixed(
        self, z: NDArray[np.float64], finite: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        low = ndimage.minimum_filter(np.where(finite, z, np.inf), 3)
        high = ndimage.maximum_filter(np.where(finite, z, -np.inf), 3)
        flying = (high - low > self.flying_edge_m) & (rng.random(z.shape) < self.flying_share)
        share = rng.random(z.shape)
        with np.errstate(invalid='ignore'):
            mixed = low * share + high * (1 - share)
        return np.where(flying & finite, mixed, z)
