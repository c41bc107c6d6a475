"""The embedded simulator."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED
from osmabench_ros.simulation import simulator
from osmabench_ros.simulation.opengl.geometry import SceneGeometry
from osmabench_ros.simulation.opengl.passes import EdgesPass, GeometryPass, LightingPass
from osmabench_ros.simulation.opengl.shadows import ShadowAtlas
from osmabench_ros.simulation.opengl.textures import (
    SRGB8_ALPHA8,
    SurfaceImages,
    create_context,
    get_renderer_name,
    read_color,
)


class Rendering(str, Enum):
    """How the embedded simulator makes colour images.

    COMPAT takes one sample per pixel and clips colours brighter than white. STANDARD knows in four
    places of a pixel which surface covers it, shades meshes without normals flat, and has the tone
    curve of a film. Depth, classes, instances and surface colours are the same in both.
    """

    COMPAT = 'compat'
    STANDARD = 'standard'


class ExposureMode(str, Enum):
    """FIXED takes the condition's exposure; AUTOMATIC first brings each image to a medium grey."""

    FIXED = 'fixed'
    AUTOMATIC = 'automatic'


class RenderingOptions(Strict):
    """Options of the embedded simulator for its images."""

    rendering: Rendering = Rendering.COMPAT
    exposure: ExposureMode = ExposureMode.FIXED

    @model_validator(mode='after')
    def _check_exposure(self) -> RenderingOptions:
        if self.rendering is Rendering.COMPAT and self.exposure is not ExposureMode.FIXED:
            raise ValueError('the rendering compat has a fixed exposure; choose standard')
        return self

    @property
    def in_words(self) -> str:
        """Differences from one sample and linear clipping, for a description; may be empty."""
        if self.rendering is Rendering.COMPAT:
            return ''
        return f', {self.rendering.value} rendering, {self.exposure.value} exposure'


# The tone curve leaves it as it is, and automatic exposure aims at it.
MIDDLE_GREY = 0.18

# Of automatic exposure, either way: four stops.
LARGEST_GAIN = 16.0


def compute_automatic_gain(linear: NDArray[np.floating]) -> float:
    """Return the factor that brings the log-average luminance of colours (N, 3) to middle grey.

    Black does not count. As of Reinhard et al., Photographic tone reproduction for digital images,
    2002, eq. 1 and 2.
    """
    luminance = linear.reshape(-1, 3).astype(np.float64) @ [0.2126, 0.7152, 0.0722]
    seen = luminance[luminance > 0]
    if not len(seen):
        return 1.0
    average = np.exp(np.log(seen).mean())
    return float(np.clip(MIDDLE_GREY / average, 1 / LARGEST_GAIN, LARGEST_GAIN))


# The input of a geometry pass.
Drawing = tuple[Any, SceneGeometry, Intrinsics, tuple[float, float]]

# Places in a pixel; a pixel at an edge has the mean colour of the surfaces there.
PLACES = 4

# Automatic exposure looks at every so many-th pixel, both ways.
METER_STRIDE = 8


class CompatImage:
    """The image of one sample per pixel, clipped where it is brighter than white."""

    def __init__(self, context: Any, intrinsics: Intrinsics, lighting_pass: LightingPass) -> None:
        self._context, self._lighting_pass = context, lighting_pass
        self._size = intrinsics.width, intrinsics.height
        self._color = context.texture(self._size, 4, internal_format=SRGB8_ALPHA8)
        self._image = context.framebuffer([self._color])

    def render(self, surfaces: SurfaceImages, camera_pose: Pose, lighting: Lighting) -> None:
        """Fill the image from the surfaces of a geometry pass."""
        self._lighting_pass.render(surfaces, self._image, camera_pose, lighting)

    def is_albedo_copy(self, lighting: Lighting) -> bool:
        """Return whether the image under this light would be a copy of the surface colours."""
        return _is_plain(lighting)

    def read(self) -> NDArray[np.uint8]:
        """Return the image, shape (height, width, 3)."""
        return read_color(self._image)

    def release(self) -> None:
        """Free images and programs."""
        for item in (self._lighting_pass, self._image, self._color):
            item.release()


def _is_plain(lighting: Lighting) -> bool:
    dark = not any(light.intensity and any(light.color) for light in lighting.lights)
    return dark and lighting.ambient * lighting.exposure == 1.0


class StandardImage(CompatImage):
    """The image with the tone curve of a film, and a mean of the surfaces at edges."""

    def __init__(
        self, drawing: Drawing, lighting_pass: LightingPass, exposure: ExposureMode
    ) -> None:
        context, _, intrinsics, _ = drawing
        super().__init__(context, intrinsics, lighting_pass)
        self._lit = context.texture(self._size, 4, dtype='f2')
        self._linear = context.framebuffer([self._lit])
        self._meter = _Meter(context, self._size) if exposure is ExposureMode.AUTOMATIC else None
        self._covering = context.texture(self._size, 1, samples=PLACES, dtype='f2')
        self._depth = context.depth_renderbuffer(self._size, samples=PLACES)
        self._places = context.framebuffer([self._covering], self._depth)
        self._coverage_pass = GeometryPass(*drawing, coverage=True)
        self._edges_pass = EdgesPass(context)

    def render(self, surfaces: SurfaceImages, camera_pose: Pose, lighting: Lighting) -> None:
        """Fill the image; textures as they are have neither curve nor shading."""
        if lighting.compat:
            super().render(surfaces, camera_pose, lighting)
            return
        plain = _is_plain(lighting)
        if self._meter is not None and not plain:
            lighting = self._meter.measure(self._lighting_pass, surfaces, camera_pose, lighting)
        self._lighting_pass.render(surfaces, self._linear, camera_pose, lighting, tone=not plain)
        self._coverage_pass.render(self._places, camera_pose)
        self._edges_pass.render(self._covering, surfaces.normal, self._lit, self._image)

    def is_albedo_copy(self, lighting: Lighting) -> bool:
        """Return whether the image under this light would be a copy of the surface colours."""
        return lighting.compat and super().is_albedo_copy(lighting)

    def release(self) -> None:
        """Free images and programs."""
        if self._meter is not None:
            self._meter.release()
        for item in (
            *(self._edges_pass, self._coverage_pass),
            *(self._places, self._depth, self._covering, self._linear, self._lit),
        ):
            item.release()
        super().release()


class _Meter:
    """Automatic exposure by the light on a few pixels."""

    def __init__(self, context: Any, size: tuple[int, int]) -> None:
        few = [-(-edge // METER_STRIDE) for edge in size]
        self._received = context.texture(few, 4, dtype='f4')
        self._image = context.framebuffer([self._received])

    def measure(
        self,
        lighting_pass: LightingPass,
        surfaces: SurfaceImages,
        camera_pose: Pose,
        lighting: Lighting,
    ) -> Lighting:
        """Return the light with an exposure for this image, times the condition's exposure."""
        before = replace(lighting, exposure=1.0)
        lighting_pass.render(surfaces, self._image, camera_pose, before, stride=METER_STRIDE)
        raw = self._image.read(components=3, dtype='f4')
        gain = compute_automatic_gain(np.frombuffer(raw, np.float32).reshape(-1, 3))
        return replace(lighting, exposure=lighting.exposure * gain)

    def release(self) -> None:
        """Free the image."""
        self._image.release()
        self._received.release()


RENDERER = 'the embedded simulator'

# Object numbers travel as float32, which holds integers exactly up to here.
LARGEST_OBJECT_COUNT = 2**24 - 1


class OpenGLSimulator:
    """Renders colour, depth, classes and instances of a scene in one pass over its triangles.

    Implements `Simulator`. The scene's lights shine until `set_lighting`. Surfaces are
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
        self._ownership = simulator.Ownership('OpenGLSimulator')
        self._scene = scene
        self.intrinsics = intrinsics
        self._lighting = Lighting(scene.lights, scene.ambient)
        simulator.check_lights(self._lighting, scene.lights, RENDERER)
        self._row_of = {item.instance_id: row for row, item in enumerate(scene.objects)}
        self._class_of = np.array(
            [UNLABELLED, *(item.class_id for item in scene.objects)], np.uint16
        )
        self._instance_of = np.array(
            [NO_INSTANCE, *(item.instance_id for item in scene.objects)], np.int32
        )
        self._context = create_context()
        self.description = f'opengl: {get_renderer_name(self._context)}{options.in_words}'
        with self._context:
            flat = options.rendering is not Rendering.COMPAT
            self._geometry = SceneGeometry(self._context, scene, flat_without_normals=flat)
            self._surfaces = SurfaceImages(self._context, intrinsics.width, intrinsics.height)
            self._shadows = ShadowAtlas(self._context, self._geometry)
            drawing = self._context, self._geometry, intrinsics, (near_m, far_m)
            self._geometry_pass = GeometryPass(*drawing)
            lighting_pass = LightingPass(self._context, intrinsics, self._shadows)
            self._color = (
                StandardImage(drawing, lighting_pass, options.exposure)
                if flat
                else CompatImage(self._context, intrinsics, lighting_pass)
            )

    def set_lighting(self, lighting: Lighting) -> None:
        """Make these lights shine from the next `render` on; SimulationError if too many."""
        self._ownership.check()
        simulator.check_lights(lighting, lighting.lights, RENDERER)
        self._lighting = lighting

    def move_objects(self, poses: Mapping[int, Pose]) -> None:
        """Put objects, by instance id, at other world poses; SimulationError for unknown ids."""
        self._ownership.check()
        simulator.check_movable(self._scene, poses, self._row_of)
        rows = {self._row_of[key]: pose for key, pose in poses.items()}
        with self._context:
            self._shadows.forget(*self._geometry.get_boxes_of(rows))
            self._geometry.place(rows)
            self._shadows.forget(*self._geometry.get_boxes_of(rows))

    def render(self, camera_pose: Pose) -> simulator.Observation:
        """Render all images from an optical pose in the world."""
        self._ownership.check()
        with self._context:
            self._geometry_pass.render(self._surfaces.all, camera_pose)
            albedo = color = read_color(self._surfaces.all)
            if not self._color.is_albedo_copy(self._lighting):
                self._color.render(self._surfaces, camera_pose, self._lighting)
                color = self._color.read()
            depth_m, number = self._surfaces.read_depth_and_number()
        classes = self._class_of[number]
        instances = self._instance_of[number]
        return simulator.Observation(color, depth_m, classes, instances, albedo)

    def profile(self, camera_pose: Pose) -> dict[str, float]:
        """Render one frame step by step; return seconds per step, triangles and shadow faces."""
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
    simulator.check_range(near_m, far_m)
    if not any(len(mesh.faces) for item in scene.objects for mesh in item.meshes):
        raise SimulationError(f'scene {scene.dataset}/{scene.name} has no triangles to render')
    if len(scene.objects) > LARGEST_OBJECT_COUNT:
        raise SimulationError(
            f'scene {scene.dataset}/{scene.name} has more than {LARGEST_OBJECT_COUNT} objects'
        )
