"""Shows a scene from above with the ids of its objects, or conditions along a path."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from osmabench_ros.base.files import atomic_write, check_file
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.ground_truth import is_structure
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.scenes.visibility import sample_surface
from osmabench_ros.semantics.storeys import find_storey, find_storeys
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.frame_source import ConditionedCamera
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.robot_path import CameraMount, plan_path, sample_trajectory
from osmabench_ros.simulation.simulator import make_simulator
from osmabench_ros.simulation.walkable_grid import WalkableGrid

WIDTH_PX, CAPTION_PX = 1280, 26
# Above a floor; higher parts are cut away in the view from above.
CUT_M = 2.0
_HFOV_RAD, _FRAME_RATE_HZ = math.radians(40), 25.0
# A caption and the image below it.
View = tuple[str, NDArray[np.uint8]]
# Pixels x and y of the upper left corner, and a text.
_Label = tuple[float, float, str]


def write_views(views: Iterable[View], path: Path, *, overwrite: bool = False) -> None:
    """Write views below each other; SimulationError unless the path ends in .png."""
    check_file(path, overwrite=overwrite)
    if path.suffix.lower() != '.png':
        raise SimulationError(f'cannot write {path}; choose another path that ends in .png')
    parts = []
    for caption, image in views:
        strip = np.full((CAPTION_PX, image.shape[1], 3), 24, np.uint8)
        parts += [_label_image(strip, [(6, 5, caption)]), image]
    with atomic_write(path, overwrite=overwrite) as draft:
        Image.fromarray(np.concatenate(parts)).save(draft)


def draw_storeys(scene: Scene) -> Iterator[View]:
    """Yield each storey below its cut from above, x to the right, with the ids of its objects."""
    found = find_storeys(sample_surface(scene, 100.0, seed=0).points)
    storeys_m = found if len(found) > 1 else (float(scene.box.minimum[2]),)
    (width_m, depth_m, height_m), (x, y, _) = scene.box.size.tolist(), scene.box.center.tolist()
    height = int(np.clip(WIDTH_PX * depth_m / max(width_m, 1e-3), 200, 2 * WIDTH_PX))
    above_m = 0.52 * max(width_m, depth_m * WIDTH_PX / height) / math.tan(_HFOV_RAD / 2)
    camera = Intrinsics.from_hfov(WIDTH_PX, height, _HFOV_RAD)
    for number, floor_m in enumerate(storeys_m):
        cut_m = min(floor_m + CUT_M, float(scene.box.maximum[2]))
        pose = Pose(np.diag([1.0, -1, -1]), np.array([x, y, cut_m + above_m]))
        far_m = above_m + height_m + 1.0
        with closing(OpenGLSimulator(scene, camera, near_m=above_m, far_m=far_m)) as simulator:
            simulator.set_lighting(Lighting.unlit())
            image = simulator.render(pose).color
        labels = []
        for item in scene.objects:
            low_m = float(item.box.minimum[2])
            here = low_m < cut_m and find_storey(low_m, storeys_m) == number
            if here and not is_structure(scene, item):
                u, v = camera.project(pose.inverse().transform(item.box.center[None]))[0].tolist()
                labels.append((u - 6.5, v - 8.0, str(item.instance_id)))
        caption = f'{scene.dataset} {scene.name}, storey {number} at {floor_m:.2f} m'
        yield caption, _label_image(image, labels)


def draw_conditions(
    scene: Scene,
    conditions: Sequence[Condition],
    simulator_name: str = 'opengl',
    *,
    frames: int = 3,
    seed: int = 0,
    size_px: tuple[int, int] = (320, 240),
    progress: Progress = silent,
) -> Iterator[View]:
    """Yield evenly spread frames of one path through a scene, under each condition in turn."""
    camera = Intrinsics.from_hfov(*size_px, math.pi / 2)
    navigation = WalkableGrid.of_scene(scene, radius_m=0.2, height_m=1.5)
    path = plan_path(navigation, goals=max(3, frames // 2), seed=seed)
    opened = partial(make_simulator, simulator_name, intrinsics=camera, options={})
    with closing(opened(scene)) as simulator:
        for number, condition in enumerate(conditions):
            progress(condition.name, number / len(conditions))
            motion = condition.make_motion(_FRAME_RATE_HZ)
            trajectory = sample_trajectory(path, motion, _FRAME_RATE_HZ, CameraMount())
            conditioned = ConditionedCamera(scene, simulator, condition, trajectory, seed, opened)
            images = []
            for place in (np.arange(frames) + 0.5) / frames * len(trajectory.frames):
                time_s = trajectory.frames[int(place)].time_s
                image = conditioned.take(int(place))[0].color
                images.append(_label_image(image, [(6, image.shape[0] - 20, f'{time_s:.0f} s')]))
            conditioned.restore()
            yield f'{condition.name}: {condition.description}', np.concatenate(images, axis=1)


def _label_image(image: NDArray[np.uint8], labels: Sequence[_Label]) -> NDArray[np.uint8]:
    drawn = Image.fromarray(image)
    font = ImageFont.load_default(size=13)
    drawing = ImageDraw.Draw(drawn)
    for x, y, text in labels:
        drawing.text((x, y), text, fill='white', font=font, stroke_width=2, stroke_fill='black')
    return np.asarray(drawn)
