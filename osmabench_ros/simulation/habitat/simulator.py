"""Habitat-Sim as a simulator."""

import math
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError, MissingDependencyError, SimulationError, choose
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT, turn_camera_to_habitat
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.habitat.dataset import SUFFIX
from osmabench_ros.scenes.habitat.loader import load_habitat_scene
from osmabench_ros.scenes.scene import Light, Lighting, Scene, SceneObject
from osmabench_ros.scenes.solids import box, make_mesh
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED, LabelSet
from osmabench_ros.simulation.habitat.lights import (
    HEADROOM,
    combine_images,
    compute_cone_share,
    convert_light,
    convert_lights,
    make_point_light,
    select_spots,
)
from osmabench_ros.simulation.habitat.navigation import HabitatNavigation
from osmabench_ros.simulation.habitat.process import WorkerProcess
from osmabench_ros.simulation.habitat.worker.channel import map_images, memory_bytes
from osmabench_ros.simulation.simulator import Observation, check_movable, check_range

# Habitat-Sim's id of the stage, and of pixels that show nothing.
STAGE_PIXEL = 0

STAGE_NAME = 'stage'

# Name of the part of a semantic mesh without an annotation.
UNANNOTATED_NAME = 'unannotated'


class Identities:
    """Translates id images by the inventory of the worker; SimulationError if scenes differ."""

    def __init__(self, scene: Scene, inventory: Mapping[str, Any]) -> None:
        where = f'scene {scene.dataset}/{scene.name}'
        stage = [item for item in scene.objects if item.name == STAGE_NAME]
        placed = [item for item in scene.objects if item.name != STAGE_NAME]
        found = [*inventory['objects'], *inventory['articulated']]
        self._object_of: dict[int, SceneObject] = {}
        self._rest: SceneObject | None = None
        self.movable: dict[int, int] = {}
        if inventory['annotations']:
            self._match_annotations(scene, inventory['annotations'], where)
        else:
            _check_same(placed, found, where)
            for item, other in zip(placed, found, strict=True):
                self._object_of.update(dict.fromkeys(other['ids'], item))
            self._object_of.update((STAGE_PIXEL, item) for item in stage)
            rigid = len(inventory['objects'])
            self.movable = {
                item.instance_id: other['ids'][0]
                for item, other in zip(placed[:rigid], found[:rigid], strict=True)
            }
        # One more than the largest id means all ids that nothing was matched with.
        self._unknown = max(self._object_of, default=0) + 1
        rest = self._rest
        unknown = (NO_INSTANCE, UNLABELLED) if rest is None else (rest.instance_id, rest.class_id)
        self._instances = np.full(self._unknown + 1, unknown[0], np.int32)
        self._classes = np.full(self._unknown + 1, unknown[1], np.uint16)
        for pixel, item in self._object_of.items():
            self._instances[pixel], self._classes[pixel] = item.instance_id, item.class_id

    def _match_annotations(
        self, scene: Scene, annotations: Sequence[Mapping[str, Any]], where: str
    ) -> None:
        """Match a semantic mesh, which has the ids of its annotation as pixels."""
        known = {int(item['id']) for item in annotations}
        for item in scene.objects:
            if item.name == UNANNOTATED_NAME:
                self._rest = item
            elif item.instance_id in known:
                self._object_of[item.instance_id] = item
            else:
                raise SimulationError(
                    f'{where}: object "{item.name}" has instance id {item.instance_id}, which the '
                    'semantic annotation that Habitat-Sim loaded does not have'
                )

    def translate(
        self, pixels: NDArray[np.uint32], surface: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return instance and class images, (height, width), of Habitat-Sim's ids on `surface`."""
        index = np.minimum(pixels, self._unknown)
        instance = np.where(surface, self._instances[index], np.int32(NO_INSTANCE))
        return instance, np.where(surface, self._classes[index], np.uint16(UNLABELLED))


def _check_same(
    ours: Sequence[SceneObject], theirs: Sequence[Mapping[str, Any]], where: str
) -> None:
    for item, other in zip(ours, theirs, strict=False):
        # An object is called '<template>.<count>', in Habitat-Sim '<template>_:<count>'.
        if item.name.rpartition('.')[0] != other['handle'].rpartition('_:')[0]:
            raise SimulationError(
                f'{where}: object "{item.name}" is "{other["handle"]}" in Habitat-Sim; '
                'dataset_config must name the data set that the scene was loaded from'
            )
    if len(ours) != len(theirs):
        raise SimulationError(
            f'{where} has {len(ours)} objects, Habitat-Sim loaded {len(theirs)}; a file of the '
            'data set is missing or broken, or dataset_config names another version of it'
        )


# Environment variable that names the interpreter when no option does.
PYTHON_VARIABLE = 'OSMABENCH_HABITAT_PYTHON'

SHADINGS = ('pbr', 'phong', 'native', 'osma_bench')

# The look, a shading and whether corners are darkened, that the worker has from the start.
_LOADED = ('flat', False)


class HabitatSimulator:
    """Renders a Habitat scene data set with Habitat-Sim 0.3, in a process with its own Python.

    Implements `Simulator`. Lights cast no shadows. The scene's lights shine until
    `set_lighting`.

    Parameters
    ----------
    scene : Scene
        Gives instance ids, classes and lights their meaning. One that is not on disk as a data
        set, such as a changed scene, is written as one for as long as the worker lives.
    intrinsics : Intrinsics
        Square pixels, principal point in the middle: Habitat-Sim has no other pinhole.
    near_m, far_m : float
        Range of z that is seen; depth is +inf beyond.
    habitat_python : str
        Interpreter that can import habitat_sim; by default the one that the environment variable
        OSMABENCH_HABITAT_PYTHON names.
    dataset_config : str
        `*.scene_dataset_config.json`; by default the file the scene was loaded from.
    scene_id : str
        Habitat-Sim's name of the scene; by default the scene's name.
    shading : str
        'pbr': only the lights, physically based, plus `Lighting.ambient` on the textures, in
        linear colours, as the embedded simulator does; every spot costs one more image a frame.
        'phong': Habitat-Sim's Phong shader, with a fixed ambient share of 0.4.
        'native': the shaders and the environment map that the data set asks for, which mute
        changes of light; its first lit frame takes up to a minute.
        'osma_bench': as native, but phong for assets that the data set wants flat, on which lights
        would not act; OSMa-Bench asks its users for that edit of HM3D.
        '': 'osma_bench' where `Lighting.compat` is set, else 'pbr'.
        All but pbr ignore `Lighting.ambient` while lights shine, and have no spots.
    ambient_occlusion : bool, optional
        Darken corners of lit images (HBAO); by default where `Lighting.compat` is set, as
        OSMa-Bench does. Images without light have it only there.
    gpu_device_id : int
        CUDA device; -1 takes the first device EGL finds, which may be a processor.
    timeout_s : float
        Longest wait for one frame.
    load_timeout_s : float
        Longest wait for the scene, the first lit frame or a navigation mesh.

    Raises
    ------
    MissingDependencyError
        If there is no interpreter with habitat_sim.
    SceneError
        If `dataset_config` names other files than the scene has, and one is missing or broken.
    SimulationError
        If the camera cannot be simulated, or Habitat-Sim loads something else than the scene.
    """

    loads_scene_itself: Literal[True] = True
    # Nearest and farthest z that is seen.
    range_m: tuple[float, float]

    def __init__(
        self,
        scene: Scene,
        intrinsics: Intrinsics,
        *,
        near_m: float = 0.05,
        far_m: float = 50.0,
        habitat_python: str = '',
        dataset_config: str = '',
        scene_id: str = '',
        shading: str = '',
        ambient_occlusion: bool | None = None,
        gpu_device_id: int = -1,
        timeout_s: float = 60.0,
        load_timeout_s: float = 600.0,
    ) -> None:
        _check_camera(intrinsics, near_m, far_m)
        if shading:
            choose(shading, SHADINGS, ConfigError, f'unknown shading "{shading}"')
        self._scene = scene
        self.intrinsics, self.range_m = intrinsics, (near_m, far_m)
        self._asked = shading, ambient_occlusion
        self._timeout_s, self._load_timeout_s = timeout_s, load_timeout_s
        self._drawn: set[tuple[str, bool]] = set()
        size = (intrinsics.width, intrinsics.height)
        dataset, shown = _find_dataset_file(scene, dataset_config), scene
        if dataset is not None and dataset != Path(scene.source):
            # Habitat-Sim shows missing and broken files as grey; the loader refuses them.
            load_habitat_scene(dataset, scene_id or scene.name)
        self._worker = WorkerProcess(_find_interpreter(habitat_python), memory_bytes(*size))
        try:
            if dataset is None:
                dataset, shown = _write_shapes(scene, self._worker.folder / 'scene_on_disk')
                scene_id = shown.name
            inventory = self._worker.call(
                'open',
                load_timeout_s,
                dataset=str(dataset),
                scene=scene_id or scene.name,
                width=intrinsics.width,
                height=intrinsics.height,
                hfov_deg=math.degrees(intrinsics.hfov_rad),
                near_m=near_m,
                far_m=far_m,
                device=gpu_device_id,
                seed=0,
            )
            self._identities = Identities(shown, inventory)
            self._images = map_images(self._worker.frame_descriptor, *size)
            self.set_lighting(Lighting(scene.lights, scene.ambient))
        except BaseException:
            self._worker.kill()
            raise
        self.description = self._describe()

    @property
    def worker_pid(self) -> int:
        """Process id of the worker, e.g. to measure its memory."""
        return self._worker.pid

    def set_lighting(self, lighting: Lighting) -> None:
        """Make these lights shine from the next `render` on; SimulationError if it cannot."""
        spots = select_spots(lighting)
        shading = self._asked[0] or ('osma_bench' if lighting.compat else 'pbr')
        if spots and shading != 'pbr':
            raise SimulationError(
                f'light "{spots[0].name}" is a spot, which the shading "{shading}" does not '
                'have; set shading to pbr, or change the kind of the light'
            )
        # Lit images have 8 bits, so exposure comes before them where they are linear in light.
        before = lighting.exposure if shading == 'pbr' else 1.0
        lights = convert_lights(lighting, before)
        shines = bool(lights or spots)
        occlusion = lighting.compat if self._asked[1] is None else self._asked[1]
        self._worker.call(
            'set_lights',
            self._timeout_s,
            lights=lights,
            shading=shading,
            occlusion=occlusion,
            unlit_occlusion=occlusion and lighting.compat and not shines,
        )
        self._lit_factor = 1.0 if shading == 'pbr' else lighting.exposure
        self._look = (shading if shines else 'flat', occlusion and (shines or lighting.compat))
        self._lit, self._spots = bool(lights), spots
        self._lighting, self._shading = lighting, shading

    def render(self, camera_pose: Pose) -> Observation:
        """Render all images from an optical pose in the world."""
        shines = self._lit or bool(self._spots)
        ambient = self._lighting.ambient if self._shading == 'pbr' or not shines else 0.0
        unlit = not shines or ambient != 0.0
        ready = self._look == _LOADED or self._look in self._drawn
        timeout_s = self._timeout_s if ready else self._load_timeout_s
        camera = turn_camera_to_habitat(camera_pose).matrix.tolist()
        self._worker.call('render', timeout_s, camera=camera, unlit=unlit, lit=self._lit)
        lit = self._images['lit'].copy() if self._lit else None  # spots are drawn over it
        spots = [self._render_spot(spot, camera_pose, camera, timeout_s) for spot in self._spots]
        self._drawn.add(self._look)
        exposure = self._lighting.exposure
        color = combine_images(
            self._images['unlit'] if unlit else None,
            lit,
            spots,
            unlit_factor=ambient * exposure,
            lit_factor=self._lit_factor,
            lit_is_srgb=self._shading != 'pbr',
        )
        return self._make_observation(color)

    def _render_spot(
        self, spot: Light, camera_pose: Pose, camera: list[list[float]], timeout_s: float
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return the light a spot would add without its cone, and the fraction inside the cone."""
        light = convert_light(make_point_light(spot), self._lighting.exposure)
        self._worker.call('render_light', timeout_s, camera=camera, light=light)
        share = compute_cone_share(spot, self._images['depth'], self.intrinsics, camera_pose)
        return self._images['lit'].copy(), share * np.float32(HEADROOM)

    def _make_observation(self, color: NDArray[np.uint8]) -> Observation:
        images = self._images
        surface = images['depth'] > 0
        instance, semantic = self._identities.translate(images['ids'], surface)
        color[~surface] = 0
        depth_m = np.where(surface, images['depth'], np.float32(np.inf))
        return Observation(color, depth_m, semantic, instance)

    def move_objects(self, poses: Mapping[int, Pose]) -> None:
        """Put objects, by instance id, at other world poses; SimulationError for unknown ids."""
        check_movable(self._scene, poses, self._identities.movable)
        to_world = Pose(WORLD_FROM_HABITAT, np.zeros(3))
        for instance_id, pose in sorted(poses.items()):
            motion = pose @ self._scene.by_instance[instance_id].pose.inverse()
            turned = to_world.inverse() @ motion @ to_world
            self._worker.call(
                'move',
                self._timeout_s,
                object_id=self._identities.movable[instance_id],
                motion=turned.matrix.tolist(),
            )

    def navigation(self, *, radius_m: float, height_m: float, **options: Any) -> HabitatNavigation:
        """Return Habitat-Sim's navigation mesh for a robot; see `HabitatNavigation`."""
        return HabitatNavigation(
            self._worker,
            self._scene,
            radius_m=radius_m,
            height_m=height_m,
            timeout_s=self._load_timeout_s,
            **options,
        )

    def close(self) -> None:
        """End the worker; further calls raise SimulationError."""
        self._worker.close()

    def _describe(self) -> str:
        versions = self._worker.versions
        found = re.search(r'^Renderer: (.+)$', self._worker.log(), re.MULTILINE)
        device = found.group(1) if found else f'unnamed device on {platform.machine()}'
        return (
            f'habitat: habitat-sim {versions["habitat_sim"]} on Python {versions["python"]}, '
            f'{device}'
        )


def read_habitat_versions() -> dict[str, str]:
    """Return the versions of 'habitat_sim' and 'python' that the interpreter has."""
    worker = WorkerProcess(_find_interpreter(''), memory_bytes(1, 1))
    worker.close()
    return worker.versions


def render_first_frame() -> tuple[str, float]:
    """Render a box; return what did, and the seconds from the start of the worker to the frame."""
    thing = SceneObject(1, 'box', UNLABELLED, (make_mesh(box((1.0, 1.0, 1.0))),))
    scene = Scene('doctor', 'box', LabelSet.from_names('doctor', ['box']), (thing,))
    start = time.monotonic()
    simulator = HabitatSimulator(scene, Intrinsics.from_hfov(640, 480, math.pi / 2))
    try:
        seen = simulator.render(Pose(np.eye(3), np.array([0.0, 0.0, -2.0])))
    finally:
        simulator.close()
    if not (seen.instance == thing.instance_id).any():
        raise SimulationError(f'{simulator.description} renders nothing; check its OpenGL driver')
    return simulator.description.removeprefix('habitat: '), time.monotonic() - start


def _find_dataset_file(scene: Scene, dataset_config: str) -> Path | None:
    """Return the data set that has a scene, or None if the scene is not on disk as one."""
    path = Path(dataset_config or scene.source).expanduser()
    if path.name.endswith(SUFFIX) and path.is_file():
        return path.absolute()
    if dataset_config:
        raise SimulationError(
            f'dataset_config "{dataset_config}" is not a file *{SUFFIX}; name the one of the data '
            f'set with scene {scene.dataset}/{scene.name}, or leave it out'
        )
    return None


def _write_shapes(scene: Scene, directory: Path) -> tuple[Path, Scene]:
    """Write the shapes of a scene as a data set; return it, and the scene as loaded from there."""
    names = {item.instance_id: f'thing_{item.instance_id}' for item in scene.objects}
    # Classes, rooms and lights stay here: not all of them have a place in Habitat's format.
    shapes = Scene(
        'written',
        'scene',
        LabelSet.from_names('written', ['thing']),
        tuple(
            replace(item, name=names[item.instance_id], class_id=UNLABELLED, room_id=None)
            for item in scene.objects
        ),
    )
    loaded = tuple(replace(item, name=f'{names[item.instance_id]}.1') for item in scene.objects)
    return write_habitat_dataset(shapes, directory), replace(
        scene, name=shapes.name, objects=loaded
    )


def _check_camera(camera: Intrinsics, near_m: float, far_m: float) -> None:
    check_range(near_m, far_m)
    middle = ((camera.width - 1) / 2, (camera.height - 1) / 2)
    off = max(abs(camera.cx - middle[0]), abs(camera.cy - middle[1]))
    if off > 1e-6 or abs(camera.fx / camera.fy - 1) > 1e-9:
        raise SimulationError(
            f'Habitat-Sim has only cameras with square pixels and the principal point in the '
            f'middle, ({middle[0]}, {middle[1]}); asked for were fx {camera.fx}, fy {camera.fy}, '
            f'cx {camera.cx}, cy {camera.cy}. Change camera, or use the simulator "opengl"'
        )


def _find_interpreter(habitat_python: str) -> str:
    python = habitat_python or os.environ.get(PYTHON_VARIABLE, '')
    if not python:
        raise MissingDependencyError(
            'no interpreter with habitat_sim is known; set the simulator option habitat_python or '
            f'the environment variable {PYTHON_VARIABLE} to one (docs/habitat.md)'
        )
    return str(Path(python).expanduser())
