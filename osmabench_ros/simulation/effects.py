"""Sensor effects: entry points in the group ``osmabench.effects``, and those that come along."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainValidator, SerializeAsAny, TypeAdapter, field_validator
from pydantic_core import PydanticKnownError

from osmabench_ros.base.configuration import EFFECTS, load_extension
from osmabench_ros.base.images import LINEAR_OF_CODE, decode_srgb_image, encode_srgb_image
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Lighting


@dataclass(frozen=True)
class Shot:
    """One exposure; `index` counts from 0, dropped frames included, `time_s` from the start."""

    index: int
    time_s: float
    intrinsics: Intrinsics
    seed: int = 0


class Effect(Strict):
    """Base of all effects: changes nothing.

    An effect is a pure function of its settings, the frame, and the seeds; it keeps no state.
    """

    kind: str
    """Its entry point in the group osmabench.effects."""
    seed: int = Field(0, ge=0)
    """Of its random numbers, in addition to the seed of the run."""

    def generator(self, shot: Shot) -> np.random.Generator:
        """Return the random numbers of this effect for one frame."""
        return np.random.default_rng(
            [self.seed, shot.seed, zlib.crc32(self.kind.encode()), shot.index]
        )

    def lighting(self, lighting: Lighting, shot: Shot) -> Lighting:  # noqa: ARG002
        """Change the light before it is rendered."""
        return lighting

    def color(self, color: NDArray[np.uint8], shot: Shot) -> NDArray[np.uint8]:  # noqa: ARG002
        """Change the colour image (height, width, 3)."""
        return color

    def depth(
        self,
        depth_m: NDArray[np.float32],
        shot: Shot,  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """Change the depth image (height, width); NaN is invalid, +inf out of range."""
        return depth_m

    def keeps(self, count: int, seed: int) -> NDArray[np.bool_]:  # noqa: ARG002
        """Return which of `count` frames arrive."""
        return np.ones(count, bool)

    def reported_poses(self, poses: Sequence[Pose], seed: int) -> list[Pose]:  # noqa: ARG002
        """Return the poses that the robot believes to have had."""
        return list(poses)


def _choose_effect(data: Any) -> Effect:
    """Return the effect of an entry of `effects:`, chosen by its `kind`."""
    if isinstance(data, Effect):
        return data
    if not isinstance(data, Mapping):
        raise PydanticKnownError('model_attributes_type')
    if 'kind' not in data:
        raise PydanticKnownError('union_tag_not_found', {'discriminator': "'kind'"})
    kind = str(data['kind'])
    try:
        effect = load_extension(EFFECTS, kind)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if not (isinstance(effect, type) and issubclass(effect, Effect)):
        raise ValueError(f'the entry point of effect "{kind}" names no subclass of Effect')
    # In a mapping, so that the places of faults begin with the kind.
    return TypeAdapter(dict[str, effect]).validate_python({kind: data})[kind]  # type: ignore[valid-type]


AnyEffect = Annotated[SerializeAsAny[Effect], PlainValidator(_choose_effect)]
"""One entry of `effects:`; its `kind` is the name of the entry point."""


class Exposure(Effect):
    """Multiplies the light by 2^`stops`, and by a sine of `swing_stops`, before saturation."""

    kind: Literal['exposure'] = 'exposure'
    stops: float = 0.0
    swing_stops: float = Field(0.0, ge=0)
    swing_period_s: float = Field(4.0, gt=0)
    """Of the sine."""

    def lighting(self, lighting: Lighting, shot: Shot) -> Lighting:
        """Scale the exposure."""
        swing = self.swing_stops * math.sin(2 * math.pi * shot.time_s / self.swing_period_s)
        return replace(lighting, exposure=lighting.exposure * 2.0 ** (self.stops + swing))


class Gamma(Effect):
    """Raises encoded values to a power; above 1 darkens the middle tones, below 1 lightens."""

    kind: Literal['gamma'] = 'gamma'
    gamma: float = Field(gt=0, le=10)

    def color(self, color: NDArray[np.uint8], shot: Shot) -> NDArray[np.uint8]:  # noqa: ARG002
        """Apply the curve."""
        curve = np.rint(255.0 * (np.arange(256) / 255.0) ** self.gamma).astype(np.uint8)
        return curve[color]


class WhiteBalance(Effect):
    """Multiplies red, green and blue of linear light by `gains`; (1.2, 1, 0.8) is too warm."""

    kind: Literal['white_balance'] = 'white_balance'
    gains: tuple[float, float, float] = Field()

    @field_validator('gains')
    @classmethod
    def _check_positive(cls, gains: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(gains) <= 0:
            raise ValueError('gains must be positive')
        return gains

    def color(self, color: NDArray[np.uint8], shot: Shot) -> NDArray[np.uint8]:  # noqa: ARG002
        """Apply the gains."""
        curves = [encode_srgb_image(LINEAR_OF_CODE * g) for g in self.gains]
        return np.stack([curve[color[..., i]] for i, curve in enumerate(curves)], axis=-1)


class MotionBlur(Effect):
    """Averages the linear light of `samples` images over `shutter_s`, centred on the stamp.

    The robot moves on meanwhile; depth and ids are taken at the middle of the exposure.
    """

    kind: Literal['motion_blur'] = 'motion_blur'
    shutter_s: float = Field(0.03, gt=0, le=1)
    samples: int = Field(8, ge=2, le=64)

    def sample_times_s(self, time_s: float) -> NDArray[np.float64]:
        """Return the middles of equal parts of the exposure around a stamp, shape (samples,)."""
        parts = (np.arange(self.samples) + 0.5) / self.samples - 0.5
        return np.asarray(time_s + parts * self.shutter_s)

    def average_images(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Return the image of the light of all the images."""
        total = np.zeros(images[0].shape, np.float32)
        for image in images:
            total += decode_srgb_image(image)
        return encode_srgb_image(total / len(images))


class StructuredLightDepth(Effect):
    """Lateral jitter, axial noise that grows with the square of the distance, quantised disparity.

    Axial: sigma = 1.2 mm + 1.9 mm ((z - 0.4 m) / 1 m)^2 and lateral: 0.8 pixels, after Nguyen,
    Izadi and Lovell (3DIMPVT 2012); disparity in eighths of a pixel over a baseline of 75 mm.
    Surfaces seen at a grazing angle, the projector's shadow next to near edges and everything out
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
        noisy = self._jitter_depth(depth_m.astype(np.float64), rng)
        finite = np.isfinite(noisy)
        z = np.where(finite, noisy, 1.0)
        sigma = self.scale * (0.0012 + 0.0019 * (z - 0.4) ** 2)
        z = self._round_depth(z + sigma * rng.normal(size=z.shape), shot.intrinsics.fx)
        noisy = np.where(finite, z, noisy)
        lost = self.find_grazing(depth_m, shot.intrinsics.fx)
        lost |= self.find_shadow(depth_m, shot.intrinsics.fx) | (noisy < self.near_m)
        noisy[noisy > self.far_m] = np.inf
        noisy[lost & np.isfinite(depth_m)] = np.nan
        return noisy.astype(np.float32)

    def _jitter_depth(
        self, depth_m: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        height, width = depth_m.shape
        shift = np.rint(0.8 * self.scale * rng.normal(size=(2, height, width))).astype(int)
        rows = np.clip(np.arange(height)[:, None] + shift[0], 0, height - 1)
        columns = np.clip(np.arange(width) + shift[1], 0, width - 1)
        return np.asarray(depth_m[rows, columns])

    def _round_depth(self, z: NDArray[np.float64], focal_px: float) -> NDArray[np.float64]:
        if self.disparity_step_px == 0:
            return z
        step = self.disparity_step_px
        disparity = np.rint(self.baseline_m * focal_px / np.maximum(z, 1e-3) / step) * step
        return np.asarray(self.baseline_m * focal_px / np.maximum(disparity, step))

    def find_grazing(self, depth_m: NDArray[np.floating], focal_px: float) -> NDArray[np.bool_]:
        """Find the pixels that see their surface at a grazing angle, by the slope of the depth."""
        from scipy import ndimage

        finite = np.isfinite(depth_m)
        z = np.where(finite, depth_m, 0.0).astype(np.float64)
        slope = np.hypot(ndimage.sobel(z, 0), ndimage.sobel(z, 1)) / 8.0
        with np.errstate(divide='ignore', invalid='ignore'):
            tangent = np.where(slope > 0, z / focal_px / slope, np.inf)
        return np.asarray(finite & (np.degrees(np.arctan(tangent)) < self.grazing_deg))

    def find_shadow(self, depth_m: NDArray[np.float32], focal_px: float) -> NDArray[np.bool_]:
        """Find the pixels that the projector, left of the camera, does not reach."""
        column = np.arange(depth_m.shape[1]) + self.baseline_m * focal_px / np.maximum(
            depth_m, 0.1
        )
        farthest = np.maximum.accumulate(column, axis=1)
        before = np.concatenate([np.full((len(column), 1), -np.inf), farthest[:, :-1]], axis=1)
        return np.asarray(before > column + 0.5)


class TimeOfFlightDepth(Effect):
    """Noise that grows with distance, a wiggling error, flying pixels and wrapped phases.

    The standard deviation is offset + factor z^2 (less light comes back); the systematic error is
    periodic in the distance, as of modulation that is not a perfect sine (Foix, Alenya and Torras,
    IEEE Sensors Journal 2011). A pixel on an edge mixes both surfaces.

    Parameters
    ----------
    noise_offset_m, noise_factor : float
        Standard deviation at 0 m, and its growth with the square of the distance.
    wiggle_m, wiggle_period_m : float
        Amplitude and period of the systematic error.
    flying_share : float
        Fraction of the edge pixels that fly between the surfaces.
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
        z = np.where(finite, self._mix_depth(z, finite, rng), z)
        z = z % self.unambiguous_m
        z += self.wiggle_m * np.sin(2 * np.pi * z / self.wiggle_period_m)
        z += (self.noise_offset_m + self.noise_factor * z**2) * rng.normal(size=z.shape)
        noisy = np.where(finite, z, np.inf)
        noisy[noisy > self.far_m] = np.inf
        noisy[noisy < self.near_m] = np.nan
        return noisy.astype(np.float32)

    def _mix_depth(
        self, z: NDArray[np.float64], finite: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        from scipy import ndimage

        low = ndimage.minimum_filter(np.where(finite, z, np.inf), 3)
        high = ndimage.maximum_filter(np.where(finite, z, -np.inf), 3)
        flying = (high - low > self.flying_edge_m) & (rng.random(z.shape) < self.flying_share)
        share = rng.random(z.shape)
        with np.errstate(invalid='ignore'):
            mixed = low * share + high * (1 - share)
        return np.where(flying & finite, mixed, z)


class DroppedFrames(Effect):
    """Loses an expected `share` of frames, `burst` in a row; the first one always arrives."""

    kind: Literal['dropped_frames'] = 'dropped_frames'
    share: float = Field(ge=0, lt=1)
    burst: int = Field(1, ge=1)

    def keeps(self, count: int, seed: int) -> NDArray[np.bool_]:
        """Draw which frames arrive."""
        rng = np.random.default_rng([self.seed, seed, zlib.crc32(self.kind.encode())])
        # The number of frames that arrive between two bursts is geometrically distributed.
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


class PoseDrift(Effect):
    """Odometry that drifts: every step's error adds to all later poses.

    Parameters
    ----------
    translation_per_m : float
        Standard deviation of the position's error after 1 m, metres; it grows with the square
        root of the way.
    rotation_per_m_deg, rotation_per_turn_deg : float
        Standard deviation of the heading's error after 1 m and after a full turn, degrees.
    """

    kind: Literal['pose_drift'] = 'pose_drift'
    translation_per_m: float = Field(0.01, ge=0)
    rotation_per_m_deg: float = Field(0.5, ge=0)
    rotation_per_turn_deg: float = Field(2.0, ge=0)

    def reported_poses(self, poses: Sequence[Pose], seed: int) -> list[Pose]:
        """Chain the noisy steps from the true first pose; errors lie in the horizontal plane."""
        from scipy.spatial.transform import Rotation

        rng = np.random.default_rng([self.seed, seed, zlib.crc32(self.kind.encode())])
        believed = list(poses[:1])
        for before, after in pairwise(poses):
            step = after.translation - before.translation
            length = float(np.linalg.norm(step))
            turned = Rotation.from_matrix(before.rotation.T @ after.rotation).magnitude()
            variance = self.rotation_per_m_deg**2 * length
            variance += self.rotation_per_turn_deg**2 * turned / (2 * np.pi)
            yaw = np.radians(np.sqrt(variance)) * rng.normal()
            slip = self.translation_per_m * np.sqrt(length) * rng.normal(size=2)
            believed.append(_moved(believed[-1], before, after, yaw, np.append(slip, 0.0)))
        return believed


def _moved(last: Pose, before: Pose, after: Pose, yaw_rad: float, slip_m: np.ndarray) -> Pose:
    """Add a true step, turned as the belief is turned, and this step's own errors."""
    from scipy.spatial.transform import Rotation

    turned = last.rotation @ before.rotation.T
    error = Rotation.from_euler('z', yaw_rad).as_matrix()
    step = turned @ (after.translation - before.translation)
    rotation = Rotation.from_matrix(error @ turned @ after.rotation).as_matrix()
    return Pose(rotation, last.translation + step + slip_m)
