"""The light of a condition at one moment, daylight through windows included."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Light, Lighting, LightKind, Scene
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.light_sections import Daylight, LightingSection, SceneLightRule
from osmabench_ros.simulation.schedule import Moment, Schedule

TWILIGHT_RAD = math.radians(6.0)
"""The sky is dark once the sun is this far below the horizon (end of civil twilight)."""


def hour_at(daylight: Daylight, time_s: float) -> float:
    """Return the hour of the day, 0 to 24, at a time of the run."""
    return (daylight.hour + daylight.hours_per_s * time_s) % 24.0


def sun_position(daylight: Daylight, hour: float) -> tuple[float, float, float]:
    """Return the unit vector towards the sun at an equinox: x east, y north, z up."""
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


def lighting_at(condition: Condition, scene: Scene, moment: Moment) -> Lighting:
    """Return the lighting at a moment of the run; a pure function of its arguments.

    Raises SimulationError if neither the scene nor the condition has any light, or the condition
    asks for the robot's room and the moment has no position.
    """
    section = condition.lighting
    require_light(condition, scene)
    if section.unlit:
        return replace(Lighting.unlit(), exposure=section.exposure, compat=section.compat)
    base = section.base_lights(scene)
    lights = [
        *_scene_lights(condition.name, section, base, scene, moment),
        *_extra_lights(section, moment),
    ]
    ambient = scene.ambient * section.ambient.factor_at('ambient', moment)
    if section.daylight is not None:
        ambient += sky_ambient(section.daylight, moment.time_s)
        shining = sun(section.daylight, moment.time_s)
        lights += [shining] if shining is not None else []
    return Lighting(tuple(lights), ambient, section.exposure, section.shadows, section.compat)


def require_light(condition: Condition, scene: Scene) -> None:
    """Raise SimulationError if neither the scene nor the condition has any light."""
    section = condition.lighting
    if not (section.unlit or section.base_lights(scene) or section.lights or section.daylight):
        raise SimulationError(
            f'scene {scene.dataset}/{scene.name} has no lights and condition "{condition.name}" '
            'adds none; use "nominal" or "nominal_velocity", which show textures as they are, or '
            '"camera"'
        )


def _scene_lights(
    name: str,
    section: LightingSection,
    base: Sequence[tuple[Light, Schedule]],
    scene: Scene,
    moment: Moment,
) -> Iterator[Light]:
    for light, schedule in base:
        factor = schedule.factor_at(light.name, moment)
        for rule in section.scene_lights:
            if rule.select.matches(light, scene):
                factor *= _rule_factor(name, rule, light, scene, moment)
        if factor != 0.0:
            yield replace(light, intensity=light.intensity * factor)


def _rule_factor(
    condition: str, rule: SceneLightRule, light: Light, scene: Scene, moment: Moment
) -> float:
    if rule.only_in_robots_room and light.room_id is not None:
        if moment.robot_position is None:
            raise SimulationError(
                f'condition "{condition}" switches lights by the room of the robot, whose '
                'position is not known here'
            )
        room = next((room for room in scene.rooms if room.id == light.room_id), None)
        x, y, _ = moment.robot_position
        if room is not None and not (
            room.box.minimum[0] <= x <= room.box.maximum[0]
            and room.box.minimum[1] <= y <= room.box.maximum[1]
        ):
            return 0.0
    return rule.schedule.factor_at(light.name, moment)


def _extra_lights(section: LightingSection, moment: Moment) -> Iterator[Light]:
    for item in section.lights:
        factor = item.schedule.factor_at(item.name, moment)
        if factor != 0.0:
            yield replace(item.light(), intensity=item.intensity * factor)
