"""One view of a scene under each condition, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from osmabench_ros.base.files import check_file, written_file
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import SimulationError, errors_as
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.conditioned_camera import ConditionedCamera
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.ineffective_settings import warn_of_inert_parts
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.robot_path import RobotPath, plan_path
from osmabench_ros.simulation.simulator import Simulator, make_simulator
from osmabench_ros.simulation.trajectory import CameraMount, Trajectory, sample_trajectory

CAPTION_PX = 26
FRAME_RATE_HZ = 25.0


@dataclass(frozen=True)
class PreviewSettings:
    """What a contact sheet shows; `path_positions` are columns, in goal segments done."""

    reference: str = 'apartment'
    scene_name: str = ''
    seed: int = 0
    simulator: str = 'opengl'
    path_positions: tuple[float, ...] = (0.6, 1.6, 2.6)
    width: int = 320
    height: int = 240


def write_contact_sheet(
    conditions: Sequence[Condition],
    path: Path,
    settings: PreviewSettings,
    progress: Progress = silent,
    *,
    overwrite: bool = False,
) -> Scene:
    """Render views of a scene under conditions, a row each, into one image; return the scene."""
    check_file(path, overwrite=overwrite)
    scene = load_scene(settings.reference, scene=settings.scene_name, seed=settings.seed)
    robot_path = _path(scene, settings)
    simulator = _simulator(settings, scene)
    rows = []
    try:
        for number, condition in enumerate(conditions):
            progress(condition.name, number / len(conditions))
            rows.append(_row(scene, simulator, condition, robot_path, settings))
    finally:
        simulator.close()
    _save(Image.fromarray(np.concatenate(rows)), path, overwrite=overwrite)
    return scene


def _simulator(settings: PreviewSettings, scene: Scene) -> Simulator:
    camera = Intrinsics.from_hfov(settings.width, settings.height, math.pi / 2)
    return make_simulator(settings.simulator, scene, camera, {})


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
    camera = ConditionedCamera(
        scene, simulator, condition, trajectory, settings.seed, partial(_simulator, settings)
    )
    numbers = [_nearest_frame(trajectory, position) for position in settings.path_positions]
    views = [camera.take(number)[0].color for number in numbers]
    camera.restore()
    camera.close()
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
    with (
        errors_as(
            SimulationError,
            f'cannot write {path}',
            ValueError,
            remedy='give a path that ends in .png',
        ),
        written_file(path, overwrite=overwrite) as draft,
    ):
        image.save(draft)
