"""Sun and sky over a day."""

from __future__ import annotations

import math

from osmabench_ros.scenes.lights import Light, LightKind
from osmabench_ros.simulation.light_sections import Daylight

TWILIGHT_RAD = math.radians(6.0)
"""The sky is dark once the sun is this far below the horizon (end of civil twilight)."""


def hour_at(daylight: Daylight, time_s: float) -> float:
    """Return the hour of the day, 0 to 24, at a time of the run."""
    return (daylight.hour + daylight.hours_per_s * time_s) % 24.0


def sun_position(daylight: Daylight, hour: float) -> tuple[float, float, float]:
    """Return the unit vector towards the sun: x east, y north, z up.

    At an equinox the declination is 0, so the sun rises in the east at 6 and culminates at 12 at
    90 degrees less the latitude.
    """
    angle = math.radians(15.0 * (hour - 12.0))
    latitude = math.radians(daylight.latitude_deg)
    return (
        -math.sin(angle),
        -math.sin(latitude) * math.cos(angle),
        math.cos(latitude) * math.cos(angle),
    )


def sun(daylight: Daylight, time_s: float) -> Light | None:
    """Return the sun as a directional light, redder and weaker when low; None at night."""
    east, north, up = sun_position(daylight, hour_at(daylight, time_s))
    if up <= 0 or daylight.sun_intensity == 0:
        return None
    haze = math.exp(-0.12 / max(up, 0.02))  # the light's way through the air grows as 1 / sin
    color = (1.0, 0.55 + 0.45 * haze, 0.3 + 0.7 * haze)
    return Light(
        'sun',
        LightKind.DIRECTIONAL,
        direction=(-east, -north, -up),
        color=color,
        intensity=daylight.sun_intensity * haze,
        lamp=False,
    )


def sky_ambient(daylight: Daylight, time_s: float) -> float:
    """Return the ambient light of the sky: full at noon at the equator, none after twilight."""
    up = sun_position(daylight, hour_at(daylight, time_s))[2]
    dusk = math.sin(TWILIGHT_RAD)
    return daylight.sky_ambient * max(0.0, (up + dusk) / (1.0 + dusk))
