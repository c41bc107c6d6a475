"""What every simulator offers to the bridge."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.extensions import SIMULATORS, extension_names, load_extension
from osmabench_ros.errors import ConfigError, SimulationError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.lights import Light, Lighting, LightKind
from osmabench_ros.scenes.scene import Scene


@dataclass(frozen=True, eq=False)
class Observation:
    """Images of one pose, consistent with each other pixel by pixel.

    Parameters
    ----------
    color : ndarray of uint8, shape (height, width, 3)
        RGB.
    depth_m : ndarray of float32, shape (height, width)
        Metres along the optical axis; +inf where nothing is in range.
    semantic : ndarray of uint16, shape (height, width)
        Class id; UNLABELLED where there is none.
    instance : ndarray of int32, shape (height, width)
        Instance id; 0 where there is none.
    albedo : ndarray of uint8, shape (height, width, 3), optional
        RGB of the surfaces without light, from simulators whose class says `shows_albedo = True`.
    """

    color: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    semantic: NDArray[np.uint16]
    instance: NDArray[np.int32]
    albedo: NDArray[np.uint8] | None = None


class Simulator(Protocol):
    """Renders a loaded scene. A simulator belongs to the thread that made it.

    One that reads the scene's files itself, instead of the meshes that it is given, is a
    `LoadingSimulator`; before a run it is compared with the scene.
    """

    @property
    def description(self) -> str:
        """Name, version and device for the manifest, e.g. the OpenGL renderer."""
        ...

    @property
    def intrinsics(self) -> Intrinsics:
        """Camera shared by all images."""
        ...

    def set_lighting(self, lighting: Lighting) -> None:
        """Make these lights shine from the next `render` on."""
        ...

    def move_objects(self, poses: Mapping[int, Pose]) -> None:
        """Put objects, by instance id, at other poses from the next `render` on."""
        ...

    def render(self, camera_pose: Pose) -> Observation:
        """Render all images from an optical pose in the world."""
        ...

    def close(self) -> None:
        """Free memory, contexts and worker processes; further calls are errors."""
        ...


MAX_LIGHTS = 64
"""Of both renderers; more do not fit into the uniforms that every OpenGL driver grants."""


def simulator_names() -> list[str]:
    """Return the names of all registered simulators."""
    return extension_names(SIMULATORS)


def check_lights(lighting: Lighting, lights: Sequence[Light], renderer: str) -> None:
    """Raise SimulationError if `lights` of a lighting are too many, or a number is not finite."""
    if len(lights) > MAX_LIGHTS:
        raise SimulationError(
            f'{len(lights)} lights are more than the {MAX_LIGHTS} {renderer} renders; take some '
            'out of the condition or the scene'
        )
    if not (math.isfinite(lighting.ambient) and math.isfinite(lighting.exposure)):
        raise SimulationError('ambient light and exposure must be finite')
    for light in lights:
        numbers = (*light.position, *light.direction, *light.color, light.intensity)
        if not all(math.isfinite(number) for number in numbers):
            raise SimulationError(f'light "{light.name}" holds NaN or infinity')
        if light.kind is not LightKind.POINT and not any(light.direction):
            raise SimulationError(f'light "{light.name}" needs a direction that is not zero')


def make_simulator(
    name: str, scene: Scene, intrinsics: Intrinsics, options: dict[str, Any]
) -> Simulator:
    """Start a simulator, an entry point in the group ``osmabench.simulators``, on a scene.

    `options` are its keyword arguments; those of a run have `near_m` and `far_m` of the camera.
    Raises ConfigError if the name or an option is unknown.
    """
    factory = load_extension(SIMULATORS, name)
    try:
        inspect.signature(factory).bind(scene, intrinsics, **options)
    except TypeError as error:
        raise ConfigError(f'simulator "{name}": {error}; check simulator.options') from error
    simulator: Simulator = factory(scene, intrinsics, **options)
    return simulator
