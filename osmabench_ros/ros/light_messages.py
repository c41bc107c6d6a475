"""Lighting to messages."""

from __future__ import annotations

from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA

from osmabench_ros.msg import Light as LightMessage
from osmabench_ros.msg import LightingState
from osmabench_ros.scenes.lights import Light, Lighting, LightKind

KINDS = {
    LightKind.POINT: LightMessage.KIND_POINT,
    LightKind.DIRECTIONAL: LightMessage.KIND_DIRECTIONAL,
    LightKind.SPOT: LightMessage.KIND_SPOT,
}


def _light_to_message(light: Light) -> LightMessage:
    red, green, blue = light.color
    return LightMessage(
        kind=KINDS[light.kind],
        name=light.name,
        position=Point(**dict(zip('xyz', light.position, strict=True))),
        direction=Vector3(**dict(zip('xyz', light.direction, strict=True))),
        color=ColorRGBA(r=red, g=green, b=blue, a=1.0),
        intensity=light.intensity,
        spot_half_angle=light.spot_half_angle_rad if light.kind is LightKind.SPOT else 0.0,
        attached_to_camera=light.attached_to_camera,
    )


def lighting_to_message(lighting: Lighting, condition: str, path_segment: int) -> LightingState:
    """Return the message of a lighting in a 0-based goal segment, without its header."""
    return LightingState(
        condition=condition,
        path_segment=path_segment,
        ambient=lighting.ambient,
        exposure=lighting.exposure,
        lights=[_light_to_message(light) for light in lighting.lights],
    )
