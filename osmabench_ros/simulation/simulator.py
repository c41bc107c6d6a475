"""The protocol of simulators, and a check that one shows the scene that ground truth is from."""

import inspect
import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import SIMULATORS, extension_names, load_extension
from osmabench_ros.errors import ConfigError, SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Light, Lighting, LightKind, Scene
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.semantics.labels import NO_INSTANCE


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
        RGB of the surfaces without light, from simulators with `shows_albedo = True`.
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


def list_simulators() -> list[str]:
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

    `options` are its keyword arguments; a run gives `near_m` and `far_m` of the camera.
    Raises ConfigError if the name or an option is unknown.
    """
    factory = load_extension(SIMULATORS, name)
    try:
        inspect.signature(factory).bind(scene, intrinsics, **options)
    except TypeError as error:
        raise ConfigError(f'simulator "{name}": {error}; check simulator.options') from error
    simulator: Simulator = factory(scene, intrinsics, **options)
    return simulator


class Ownership:
    """Remembers the thread that made a simulator, because OpenGL fails silently on others."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._thread = threading.get_ident()
        self.closed = False

    def check(self) -> None:
        """Raise SimulationError if closed, or called from a thread that is not the owner."""
        if self.closed:
            raise SimulationError(f'{self._owner} is closed; make a new one')
        if threading.get_ident() != self._thread:
            raise SimulationError(
                f'{self._owner} belongs to the thread that made it and was called from '
                f'"{threading.current_thread().name}"; make and use it in one thread'
            )


def check_range(near_m: float, far_m: float) -> None:
    """Raise SimulationError if nothing is between two distances."""
    if not 0 < near_m < far_m:
        raise SimulationError(f'the range from {near_m} m to {far_m} m is empty')


def check_movable(scene: Scene, poses: Mapping[int, Pose], known: Collection[int]) -> None:
    """Raise SimulationError if one of the objects to move is not a `known` one."""
    if unknown := sorted(set(poses) - set(known)):
        raise SimulationError(
            f'scene {scene.dataset}/{scene.name} has no object that can be moved with instance id '
            f'{unknown[0]}'
        )


PROBES = 24
"""Pixels along the longer edge of an image."""

NEIGHBOURS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
"""A probe counts only if these pixels show the same object, so that edges do not matter."""

TOLERANCE_M, TOLERANCE_SHARE = 0.02, 0.01
"""Depths agree within the larger of a length and a share."""

WRONG_SHARE = 0.05
"""More disagreeing probes, of all or of those on one object, are a fault; painted semantic meshes
of scans have seams."""

FEWEST_PROBES = 4
"""An object that fewer probes meet is not judged on its own."""


@runtime_checkable
class LoadingSimulator(Simulator, Protocol):
    """A simulator that reads the scene's files itself, and sees surfaces within a range of z."""

    loads_scene_itself: Literal[True]

    @property
    def range_m(self) -> tuple[float, float]:
        """Nearest and farthest z that is seen."""
        ...


def check_agreement(
    scene: Scene, simulator: LoadingSimulator, camera_poses: Sequence[Pose]
) -> None:
    """Compare depth and instance at some pixels with rays cast into the scene.

    Objects must be where the scene has them. Raises SimulationError that names the object with
    most disagreeing pixels, with depths and ids, and MissingDependencyError without Open3D.
    """
    rays = RayCaster(scene)
    seen = [_probe_pixels(simulator, rays, pose) for pose in camera_poses]
    ours, theirs, depth_m, rendered_m = (np.concatenate(part) for part in zip(*seen, strict=True))
    limit_m = np.maximum(TOLERANCE_M, TOLERANCE_SHARE * depth_m)
    with np.errstate(invalid='ignore'):  # nothing is in range for both
        same_depth = (depth_m == rendered_m) | (np.abs(rendered_m - depth_m) <= limit_m)
    wrong = (ours != theirs) | ~same_depth
    worst = max(
        (item for item in np.unique(ours) if (ours == item).sum() >= FEWEST_PROBES),
        key=lambda item: float(wrong[ours == item].sum()),
        default=None,
    )
    if worst is None:
        return
    at = ours == worst
    of_one = wrong[at].mean() > 0.5
    if not of_one and wrong.mean() <= WRONG_SHARE:
        return
    first = int(np.flatnonzero(at & wrong)[0])
    raise SimulationError(
        f'{simulator.description} does not show scene {scene.dataset}/{scene.name} as it was '
        f'loaded: {int(wrong[at].sum())} of {int(at.sum())} pixels of '
        f'{_name_object(scene, int(worst))} differ ({int(wrong.sum())} of {len(wrong)} in all), '
        f'the first shows {_name_object(scene, int(theirs[first]))} at '
        f'{rendered_m[first]:.2f} m instead of {depth_m[first]:.2f} m; ground truth would be '
        'wrong. Check "up", "front", scale and place of it in the data set, and that no file was '
        'changed'
    )


def _probe_pixels(
    simulator: LoadingSimulator, rays: RayCaster, pose: Pose
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """Return instances and depths at the probes of one view, of the scene and then rendered."""
    observation = simulator.render(pose)
    directions = simulator.intrinsics.rays() @ pose.rotation.T.astype(np.float32)
    height, width = observation.depth_m.shape
    step = max(2, max(height, width) // PROBES)
    rows, columns = np.meshgrid(
        np.arange(1, height - 1, step), np.arange(1, width - 1, step), indexing='ij'
    )
    near_m, far_m = simulator.range_m

    def cast(row: int, column: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        ahead = directions[rows.ravel() + row, columns.ravel() + column]
        start = (pose.translation + near_m * ahead).astype(np.float32)
        beyond_m, instances = rays.find_first_hits(start, ahead)
        depth_m = beyond_m + np.float32(near_m)
        seen = depth_m <= far_m
        return (
            np.where(seen, depth_m, np.float32(np.inf)),
            np.where(seen, instances, np.int32(NO_INSTANCE)),
        )

    hits = [cast(row, column) for row, column in NEIGHBOURS]
    depth_m, ours = hits[0]
    inside = np.all([found == ours for _, found in hits], axis=0)
    rendered_m = observation.depth_m[rows, columns].ravel()
    theirs = observation.instance[rows, columns].ravel()
    return ours[inside], theirs[inside], depth_m[inside], rendered_m[inside]


def _name_object(scene: Scene, instance: int) -> str:
    return 'nothing' if instance == NO_INSTANCE else f'object "{scene.by_instance[instance].name}"'
