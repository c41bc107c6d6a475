"""Effects on the depth image: noise of structured-light and time-of-flight cameras."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import ndimage

from osmabench_ros.simulation.effects.effect import Effect, Shot


class StructuredLightDepth(Effect):
    """Lateral jitter, axial noise that grows with the square of the distance, quantised disparity.

    Axial: sigma = 1.2 mm + 1.9 mm ((z - 0.4 m) / 1 m)^2 and lateral: 0.8 pixels, after Nguyen,
    Izadi and Lovell (3DIMPVT 2012); disparity in eighths of a pixel over a baseline of 75 mm.
    Surfaces seen at a grazing angle, the projector's shadow beside near edges and everything out
    of range have no depth.

    Parameters
    ----------
    scale : float
        Factor on both standard deviations.
    baseline_m : float
        From projector to camera.
    disparity_step_px : float
        Resolution of the matching; 0 for none.
    near_m, far_m : float
        Range; NaN nearer, +inf farther.
    grazing_deg : float
        Angle to the surface below which nothing comes back.
    """

    kind: Literal['structured_light'] = 'structured_light'
    scale: float = Field(1.0, ge=0)
    baseline_m: float = Field(0.075, gt=0)
    disparity_step_px: float = Field(0.125, ge=0)
    near_m: float = Field(0.4, ge=0)
    far_m: float = Field(8.0, gt=0)
    grazing_deg: float = Field(8.0, ge=0, lt=90)

    def depth(self, depth_m: NDArray[np.float32], shot: Shot) -> NDArray[np.float32]:
        """Apply the sensor."""
        rng = self.generator(shot)
        noisy = self._jittered(depth_m.astype(np.float64), rng)
        finite = np.isfinite(noisy)
        z = np.where(finite, noisy, 1.0)
        sigma = self.scale * (0.0012 + 0.0019 * (z - 0.4) ** 2)
        z = self._quantised(z + sigma * rng.normal(size=z.shape), shot.intrinsics.fx)
        noisy = np.where(finite, z, noisy)
        lost = grazing(depth_m, shot.intrinsics.fx, self.grazing_deg)
        lost |= self.in_shadow(depth_m, shot.intrinsics.fx) | (noisy < self.near_m)
        noisy[noisy > self.far_m] = np.inf
        noisy[lost & np.isfinite(depth_m)] = np.nan
        return noisy.astype(np.float32)

    def _jittered(
        self, depth_m: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        height, width = depth_m.shape
        shift = np.rint(0.8 * self.scale * rng.normal(size=(2, height, width))).astype(int)
        rows = np.clip(np.arange(height)[:, None] + shift[0], 0, height - 1)
        columns = np.clip(np.arange(width) + shift[1], 0, width - 1)
        return np.asarray(depth_m[rows, columns])

    def _quantised(self, z: NDArray[np.float64], focal_px: float) -> NDArray[np.float64]:
        if self.disparity_step_px == 0:
            return z
        step = self.disparity_step_px
        disparity = np.rint(self.baseline_m * focal_px / np.maximum(z, 1e-3) / step) * step
        return np.asarray(self.baseline_m * focal_px / np.maximum(disparity, step))

    def in_shadow(self, depth_m: NDArray[np.float32], focal_px: float) -> NDArray[np.bool_]:
        """Find what the projector, left of the camera, does not see."""
        column = np.arange(depth_m.shape[1]) + self.baseline_m * focal_px / np.maximum(
            depth_m, 0.1
        )
        farthest = np.maximum.accumulate(column, axis=1)
        before = np.concatenate([np.full((len(column), 1), -np.inf), farthest[:, :-1]], axis=1)
        return np.asarray(before > column + 0.5)


def grazing(depth_m: NDArray[np.floating], focal_px: float, angle_deg: float) -> NDArray[np.bool_]:
    """Return which pixels see their surface at less than an angle, by the slope of the depth."""
    finite = np.isfinite(depth_m)
    z = np.where(finite, depth_m, 0.0).astype(np.float64)
    slope = np.hypot(ndimage.sobel(z, 0), ndimage.sobel(z, 1)) / 8.0
    with np.errstate(divide='ignore', invalid='ignore'):
        tangent = np.where(slope > 0, z / focal_px / slope, np.inf)
    return np.asarray(finite & (np.degrees(np.arctan(tangent)) < angle_deg))


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
