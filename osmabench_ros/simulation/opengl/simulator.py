"""The embedded simulator."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from osmabench_ros.base.strict import validated
from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED
from osmabench_ros.simulation.opengl.color_image import (
    ExposureMode,
    Rendering,
    RenderingOptions,
    make_color_image,
)
from osmabench_ros.simulation.opengl.geometry import SceneGeometry
from osmabench_ros.simulation.opengl.passes import GeometryPass, LightingPass
from osmabench_ros.simulation.opengl.shadows import ShadowAtlas
from osmabench_ros.simulation.opengl.textures import (
    Ownership,
    SurfaceImages,
    create_context,
    read_color,
    renderer_name,
)
from osmabench_ros.simulation.simulator import Observation, check_lights

RENDERER = 'the embedded simulator'

LARGEST_OBJECT_COUNT = 2**24 - 1
"""Object numbers travel as float32, which holds integers exactly up to here."""


class OpenGLSimulator:
    """Renders colour, depth, classes and instances of a scene in one pass over its triangles.

    Implements `Simulator`. The lights are those of the scene until `set_lighting`. Surfaces are
    two-sided and diffuse; light falls off with the square of the
    distance and is blocked by every object. Frames of the same input are bit-identical on one
    machine. `near_m` and `far_m` are the range of z that is seen; depth is +inf beyond.
    `rendering` and `exposure` name a `Rendering` and an `ExposureMode`. Raises
    MissingDependencyError if there is no OpenGL through EGL, ConfigError for an unknown name,
    SimulationError if the range is empty or the scene has no triangles.
    """

    shows_albedo = True

    def __init__(
        self,
        scene: Scene,
        intrinsics: Intrinsics,
        *,
        near_m: float = 0.05,
        far_m: float = 50.0,
        rendering: str = Rendering.COMPAT,
        exposure: str = ExposureMode.FIXED,
    ) -> None:
        _check(scene, near_m, far_m)
        chosen = {'rendering': rendering, 'exposure': exposure}
        options = validated(RenderingOptions, chosen, 'simulator "opengl", simulator.options')
        self._ownership = Ownership('OpenGLSimulator')
        self._scene = scene
        self._intrinsics = intrinsics
        self._lighting = Lighting(scene.lights, scene.ambient)
        check_lights(self._lighting, scene.lights, RENDERER)
        self._row_of = {item.instance_id: row for row, item in enumerate(scene.objects)}
        self._class_of = np.array(
            [UNLABELLED, *(item.class_id for item in scene.objects)], np.uint16
        )
        self._instance_of = np.array(
            [NO_INSTANCE, *(item.instance_id for item in scene.objects)], np.int32
        )
        self._context = create_context()
        self._description = f'opengl: {renderer_name(self._context)}{options.in_words}'
        with self._context:
            flat = options.rendering is not Rendering.COMPAT
            self._geometry = SceneGeometry(self._context, scene, flat_without_normals=flat)
            self._surfaces = SurfaceImages(self._context, intrinsics.width, intrinsics.height)
            self._shadows = ShadowAtlas(self._context, self._geometry)
            drawing = self._context, self._geometry, intrinsics, (near_m, far_m)
            self._geometry_pass = GeometryPass(*drawing)
            lighting_pass = LightingPass(self._context, intrinsics, self._shadows)
            self._color = make_color_image(lighting_pass, drawing, options)

    @property
    def description(self) -> str:
        """Backend and device, e.g. ``'opengl: llvmpipe (LLVM 15.0.6, 256 bits), OpenGL 4.5'``."""
        return self._description

    @property
    def intrinsics(self) -> Intrinsics:
        """Camera shared by all images."""
        return self._intrinsics

    def set_lighting(self, lighting: Lighting) -> None:
        """Make these lights shine from the next `render` on; SimulationError if too many."""
        self._ownership.check()
        check_lights(lighting, lighting.lights, RENDERER)
        self._lighting = lighting

    def move_objects(self, poses: Mapping[int, Pose]) -> None:
        """Put objects, by instance id, at other world poses; SimulationError for unknown ids."""
        self._ownership.check()
        unknown = sorted(set(poses) - set(self._row_of))
        if unknown:
            raise SimulationError(
                f'scene {self._scene.dataset}/{self._scene.name} has no object with instance id '
                f'{unknown[0]}; it cannot be moved'
            )
        rows = {self._row_of[key]: pose for key, pose in poses.items()}
        with self._context:
            self._shadows.forget(*self._geometry.boxes_of(rows))
            self._geometry.place(rows)
            self._shadows.forget(*self._geometry.boxes_of(rows))

    def render(self, camera_pose: Pose) -> Observation:
        """Render all images from an optical pose in the world."""
        self._ownership.check()
        with self._context:
            self._geometry_pass.render(self._surfaces.all, camera_pose)
            albedo = color = read_color(self._surfaces.all)
            if not self._color.copies_albedo(self._lighting):
                self._color.render(self._surfaces, camera_pose, self._lighting)
                color = self._color.read()
            depth_m, number = self._surfaces.read_depth_and_number()
        classes, instances = self._class_of[number], self._instance_of[number]
        return Observation(color, depth_m, classes, instances, albedo)

    def profile(self, camera_pose: Pose) -> dict[str, float]:
        """Render one frame step by step; return seconds a step, triangles and shadow faces."""
        self._ownership.check()
        faces = self._shadows.faces_rendered
        times = [time.perf_counter()]
        with self._context:
            for step in (
                lambda: self._geometry_pass.render(self._surfaces.all, camera_pose),
                lambda: self._color.render(self._surfaces, camera_pose, self._lighting),
                lambda: (self._color.read(), self._surfaces.read_depth_and_number()),
            ):
                step()
                self._context.finish()
                times.append(time.perf_counter())
        geometry, lighting, read_back = np.diff(times).tolist()
        return {
            'geometry': geometry,
            'lighting': lighting,
            'read_back': read_back,
            'triangles': float(self._geometry.triangles_drawn),
            'shadow_faces': float(self._shadows.faces_rendered - faces),
        }

    def close(self) -> None:
        """Free the context and all it holds; further calls raise SimulationError."""
        if self._ownership.closed:
            return
        self._ownership.check()
        with self._context:
            for part in (
                self._color,
                self._geometry_pass,
                self._shadows,
                self._surfaces,
                self._geometry,
            ):
                part.release()
        self._context.release()
        self._ownership.closed = True


def _check(scene: Scene, near_m: float, far_m: float) -> None:
    if not 0 < near_m < far_m:
        raise SimulationError(f'the range from {near_m} m to {far_m} m is empty')
    if not any(len(mesh.faces) for item in scene.objects for mesh in item.meshes):
        raise SimulationError(f'scene {scene.dataset}/{scene.name} has no triangles to render')
    if len(scene.objects) > LARGEST_OBJECT_COUNT:
        raise SimulationError(
            f'scene {scene.dataset}/{scene.name} has more than {LARGEST_OBJECT_COUNT} objects'
        )
