"""One view of a scene under each condition, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from osmabench_ros.base.files import check_file, written_file
from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.conditioned_camera import ConditionedCamera
from osmabench_ros.simulation.conditions import Condition, load_condition
from osmabench_ros.simulation.inert_parts import warn_of_inert_parts
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.registry import make_simulator
from osmabench_ros.simulation.robot_path import RobotPath, plan_path
from osmabench_ros.simulation.simulator import Simulator
from osmabench_ros.simulation.trajectory import CameraMount, Trajectory, sample_trajectory

Progress = Callable[[str, float], None]

CAPTION_PX = 26
FRAME_RATE_HZ = 25.0


@dataclass(frozen=True)
class PreviewSettings:
    """What a contact sheet shows; scene names are as for `load_scene`, sizes are those of a view.

    Each of `path_positions` is a column: the goal segments done when its view is taken, e.g. 1.5
    in the middle of the second.
    """

    reference: str = 'apartment'
    scene_name: str = ''
    seed: int = 0
    simulator: str = 'opengl'
    path_positions: tuple[float, ...] = (0.6, 1.6, 2.6)
    width: int = 320
    height: int = 240


def write_contact_sheet(
    names: Sequence[str],
    path: Path,
    settings: PreviewSettings,
    progress: Progress | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Render views under conditions and write them as one image, a row a condition.

    The suffix of `path` chooses the format; `progress` is called with a text and the done share.
    Raises RunError if there is a file already or it cannot be written, SimulationError if there is
    no image format of that suffix.
    """
    check_file(path, overwrite=overwrite)
    conditions = [load_condition(name) for name in names]
    scene = load_scene(settings.reference, scene=settings.scene_name, seed=settings.seed)
    camera = Intrinsics.from_hfov(settings.width, settings.height, math.pi / 2)
    robot_path = _path(scene, settings)
    simulator = make_simulator(settings.simulator, scene, camera, {})
    rows = []
    try:
        for number, condition in enumerate(conditions):
            if progress is not None:
                progress(condition.name, number / len(conditions))
            rows.append(_row(scene, simulator, condition, robot_path, settings))
    finally:
        simulator.close()
    _save(Image.fromarray(np.concatenate(rows)), path, overwrite=overwrite)


def _path(scene: Scene, settings: PreviewSettings) -> RobotPath:
    navigation = NavigationMap.of_scene(scene, radius_m=0.2, height_m=1.5)
    goals = max(1, math.ceil(max(settings.path_positions)))
    return plan_path(navigation, goals=goals, seed=settings.seed)


def _row(
    scene: Scene,
    simulator: Simulator,
    condition: Condition,
    path: RobotPath,
    settings: PreviewSettings,
) -> NDArray[np.uint8]:
    motion = condition.motion_at(FRAME_RATE_HZ)
    trajectory = sample_trajectory(path, motion, FRAME_RATE_HZ, CameraMount())
    warn_of_inert_parts(condition, scene, trajectory)
    camera = ConditionedCamera(scene, simulator, condition, trajectory, settings.seed)
    numbers = [_nearest_frame(trajectory, position) for position in settings.path_positions]
    views = [camera.take(number)[0].color for number in numbers]
    camera.restore()
    return np.concatenate([_caption(condition, settings), np.concatenate(views, axis=1)])


def _nearest_frame(trajectory: Trajectory, position: float) -> int:
    along = [frame.segment + frame.segment_progress for frame in trajectory.frames]
    return int(np.argmin(np.abs(np.array(along) - position)))


def _caption(condition: Condition, settings: PreviewSettings) -> NDArray[np.uint8]:
    width = settings.width * len(settings.path_positions)
    strip = Image.new('RGB', (width, CAPTION_PX), (24, 24, 24))
    text = f'{condition.name}: {condition.description}'
    ImageDraw.Draw(strip).text(
        (6, 5), text, fill=(240, 240, 240), font=ImageFont.load_default(size=13)
    )
    return np.asarray(strip)


def _save(image: Image.Image, path: Path, *, overwrite: bool) -> None:
    try:
        with written_file(path, overwrite=overwrite) as draft:
            image.save(draft)
    except ValueError as error:
        raise SimulationError(
            f'cannot write {path}: {error}; give a path that ends in .png'
        ) from error
