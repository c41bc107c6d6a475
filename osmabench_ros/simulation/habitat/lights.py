"""Lights as Habitat-Sim wants them, and pictures out of textures and light."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.images import LINEAR_OF_CODE, encode_srgb_image
from osmabench_ros.geometry.axes import OPENGL_FROM_OPTICAL, turn_to_habitat
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import SPOT_INNER_SHARE, Light, Lighting, LightKind
from osmabench_ros.simulation.simulator import check_lights

# Habitat-Sim's shader encodes with this power instead of the sRGB curve.
LIT_GAMMA = 2.2

# Linear values are encoded by a table over their square root, within half a level.
ENCODED_STEPS = 4096


_LIT_LINEAR = ((np.arange(256) / 255.0) ** LIT_GAMMA).astype(np.float32)
_ENCODED = encode_srgb_image((np.arange(ENCODED_STEPS + 1) / ENCODED_STEPS) ** 2)


def encoded(linear: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Encode linear colours; values beyond 1 saturate."""
    steps = np.sqrt(np.clip(linear, 0.0, 1.0)) * ENCODED_STEPS + 0.5
    return _ENCODED[steps.astype(np.int16)]


def combine_images(
    unlit: NDArray[np.uint8] | None,
    lit: NDArray[np.uint8] | None,
    spots: Sequence[tuple[NDArray[np.uint8], NDArray[np.float32]]] = (),
    *,
    unlit_factor: float,
    lit_factor: float = 1.0,
    lit_is_srgb: bool = False,
) -> NDArray[np.uint8]:
    """Add ambient light on the textures, the lit image and the spots, in linear colours, as sRGB.

    Images are (height, width, 3), a spot is an image and its factor (height, width). `unlit` holds
    the textures in sRGB and `unlit_factor` is the ambient light on them; lit images are in sRGB if
    `lit_is_srgb`, else encoded with `LIT_GAMMA`.
    """
    if unlit is not None and lit is None and not spots and unlit_factor == 1.0:
        return unlit.copy()
    if lit is not None and unlit is None and not spots and lit_is_srgb and lit_factor == 1.0:
        return lit.copy()
    table = LINEAR_OF_CODE if lit_is_srgb else _LIT_LINEAR
    parts = []
    if unlit is not None:
        parts.append((LINEAR_OF_CODE * np.float32(unlit_factor))[unlit])
    if lit is not None:
        parts.append((table * np.float32(lit_factor))[lit])
    parts += [table[image] * share[..., None] for image, share in spots]
    total = parts[0]
    for part in parts[1:]:
        total += part
    return encoded(total)


def convert_lights(lighting: Lighting, factor: float = 1.0) -> list[dict[str, Any]]:
    """Convert the lights but spots, times `factor`, for the worker; may raise SimulationError."""
    return [
        convert_light(light, factor)
        for light in _select_shining(lighting)
        if light.kind is not LightKind.SPOT
    ]


def select_spots(lighting: Lighting) -> list[Light]:
    """Return the spots that shine, which Habitat-Sim does not have; raises as `convert_lights`."""
    return [light for light in _select_shining(lighting) if light.kind is LightKind.SPOT]


def convert_light(light: Light, factor: float = 1.0) -> dict[str, Any]:
    """Convert a point or directional light to the worker's form, y up, linear colours."""
    radiates_from = light.kind is LightKind.POINT
    given = np.array(light.position if radiates_from else light.direction, np.float64)
    turned = OPENGL_FROM_OPTICAL @ given if light.attached_to_camera else turn_to_habitat(given)
    if not radiates_from:
        turned = turned / np.linalg.norm(turned)
    return {
        'vector': [*(float(value) for value in turned), 1.0 if radiates_from else 0.0],
        'color': [float(channel * light.intensity * factor) for channel in light.color],
        'on_camera': light.attached_to_camera,
    }


def _select_shining(lighting: Lighting) -> list[Light]:
    lights = [light for light in lighting.lights if light.intensity and any(light.color)]
    check_lights(lighting, lights, 'Habitat-Sim')
    return lights


# Spots are rendered this much darker, because their images saturate before the cone is applied: at
# the edge of the cone, light that is too bright for the image may be dark in the end.
HEADROOM = 4.0


def make_point_light(spot: Light) -> Light:
    """Return the point light that, multiplied by `compute_cone_share`, looks like a spot."""
    return replace(spot, kind=LightKind.POINT, intensity=spot.intensity / HEADROOM)


def compute_cone_share(
    spot: Light, depth_m: NDArray[np.float32], intrinsics: Intrinsics, camera_pose: Pose
) -> NDArray[np.float32]:
    """Return the share, 0 to 1, of a spot's light that falls on each pixel, shape (height, width).

    Full up to `SPOT_INNER_SHARE` of the half angle, then smoothly to nothing at the half angle:
    the embedded simulator's cone. `depth_m` is z along the optical axis; the share is 0 where it
    is 0 or infinite. `camera_pose` is the optical frame in the world.
    """
    position = np.array(spot.position)
    direction = np.array(spot.direction)
    if not spot.attached_to_camera:
        into_camera = camera_pose.inverse()
        position, direction = into_camera.transform(position), into_camera.rotation @ direction
    direction = (direction / np.linalg.norm(direction)).astype(np.float32)
    surface = np.isfinite(depth_m) & (depth_m > 0)
    z = np.where(surface, depth_m, np.float32(1.0))
    offset = intrinsics.rays().astype(np.float32) * z[..., None] - position.astype(np.float32)
    cosine = offset @ direction / np.maximum(np.linalg.norm(offset, axis=-1), 1e-6)
    outer = math.cos(spot.spot_half_angle_rad)
    inner = math.cos(SPOT_INNER_SHARE * spot.spot_half_angle_rad)
    t = np.clip((cosine - outer) / (inner - outer), 0.0, 1.0)
    return np.where(surface, t * t * (3 - 2 * t), 0.0).astype(np.float32)
