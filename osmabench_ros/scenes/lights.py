"""Light sources of a scene."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

SPOT_INNER_SHARE = 0.8
"""A spot shines fully up to this share of its half angle, then ever less up to the edge."""


class LightKind(str, Enum):
    """How a light radiates."""

    POINT = 'point'
    DIRECTIONAL = 'directional'
    SPOT = 'spot'


@dataclass(frozen=True)
class Light:
    """One light source.

    Parameters
    ----------
    name : str
        Unique in the scene.
    kind : LightKind
        Point, directional or spot.
    position : tuple of float
        Metres; in the world, or in the optical frame if `attached_to_camera`.
    direction : tuple of float
        Direction the light travels along, same frame as position; unused by point lights.
    color : tuple of float
        Linear RGB in [0, 1].
    intensity : float
        Linear factor on the colour; the irradiance at 1 m of a point light. May be negative, as
        in ReplicaCAD's light set: it then takes from other lights, not from ambient light.
    spot_half_angle_rad : float
        From the axis to the edge of a spot's cone.
    attached_to_camera : bool
        Whether the light moves with the camera.
    lamp : bool
        True for the lamps of the scene that the dynamic condition switches off, false for fill
        lights.
    room_id : int, optional
        Id of the room the light belongs to.
    """

    name: str
    kind: LightKind = LightKind.POINT
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    direction: tuple[float, float, float] = (0.0, 0.0, -1.0)
    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    intensity: float = 1.0
    spot_half_angle_rad: float = math.pi / 4
    attached_to_camera: bool = False
    lamp: bool = True
    room_id: int | None = None


@dataclass(frozen=True)
class Lighting:
    """Everything that shines while one frame is rendered.

    Parameters
    ----------
    lights : tuple of Light
        Lights that are on.
    ambient : float
        Linear factor on the albedo; 1 without lights shows textures as they are.
    exposure : float
        Linear factor on the image before it is encoded.
    shadows : bool
        Whether lights cast shadows.
    compat : bool
        Whether the image is made as OSMa-Bench's are: clipped where it is brighter than white,
        even if the simulator has a tone curve, and with the settings of its generator if the
        simulator is Habitat-Sim.
    """

    lights: tuple[Light, ...] = ()
    ambient: float = 0.0
    exposure: float = 1.0
    shadows: bool = True
    compat: bool = False

    @classmethod
    def unlit(cls) -> Lighting:
        """Return the nominal light: textures as they are, no shading."""
        return cls(lights=(), ambient=1.0, shadows=False)
