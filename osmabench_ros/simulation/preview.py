"""Views of a scene under each condition, from where it changes most, on one sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.owned_folder import check_file
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.conditioned_camera import ConditionedCamera
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.contact_sheet import save_sheet, text_strip, with_text
from osmabench_ros.simulation.ineffective_settings import warn_of_inert_parts
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.robot_path import plan_path
from osmabench_ros.simulation.simulator import Simulator, make_simulator
from osmabench_ros.simulation.trajectory import CameraMount, sample_trajectory

FRAME_RATE_HZ = 25.0
CHOICES = 7
"""Frames of which one is shown."""


@dataclass(frozen=True)
class PreviewSettings:
    """What a contact sheet shows: so many frames of a path through so many goals."""

    reference: str = 'apartment'
    scene_name: str = ''
    seed: int = 0
    simulator: str = 'opengl'
    frames: int = 3
    goals: int = 3
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
    sheet = _Sheet(scene, settings)
    rows = []
    try:
        for number, condition in enumerate(conditions):
            progress(condition.name, number / len(conditions))
            rows.append(sheet.row(condition))
    finally:
        sheet.close()
    save_sheet(np.concatenate(rows), path, overwrite=overwrite)
    return scene


class _Sheet:
    """Renders the rows of a sheet, each in the frames that its condition changes most."""

    def __init__(self, scene: Scene, settings: PreviewSettings) -> None:
        self._scene = scene
        self._settings = settings
        self._simulator = self._open(scene)
        navigation = NavigationMap.of_scene(scene, radius_m=0.2, height_m=1.5)
        self._path = plan_path(navigation, goals=settings.goals, seed=settings.seed)
        # Of each column several places of its part of the path, the middle first.
        shares = sorted((np.arange(CHOICES) + 0.5) / CHOICES, key=lambda share: abs(share - 0.5))
        columns = np.arange(settings.frames)[:, None] + shares
        self._places = columns * settings.goals / settings.frames
        self._plain = [self._views(Condition(name='plain'), places)[0] for places in self._places]

    def close(self) -> None:
        """Close the simulator."""
        self._simulator.close()

    def row(self, condition: Condition) -> NDArray[np.uint8]:
        """Return a caption and, of every part of the path, the frame that changes most."""
        chosen, changed = [], False
        for places, plain in zip(self._places, self._plain, strict=True):
            views, times_s = self._views(condition, places)
            changes = [
                float(np.abs(view.astype(int) - other).mean())
                for view, other in zip(views, plain, strict=True)
            ]
            best = int(np.argmax(changes))
            changed |= changes[best] > 0
            moment = f'{places[best]:.1f} goals, {times_s[best]:.0f} s'
            chosen.append(with_text(views[best], moment))
        text = f'{condition.name}: {condition.description}'
        text += '' if changed else ' [no picture differs]'
        caption = text_strip(text, self._settings.width * self._settings.frames)
        return np.concatenate([caption, np.concatenate(chosen, axis=1)])

    def _views(
        self, condition: Condition, places: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.uint8]], list[float]]:
        """Return the pictures at places of the path, in goals done, and their times."""
        motion = condition.motion_at(FRAME_RATE_HZ)
        trajectory = sample_trajectory(self._path, motion, FRAME_RATE_HZ, CameraMount())
        warn_of_inert_parts(condition, self._scene, trajectory)
        seed = self._settings.seed
        camera = ConditionedCamera(
            self._scene, self._simulator, condition, trajectory, seed, self._open
        )
        along = np.array([item.segment + item.segment_progress for item in trajectory.frames])
        numbers = [int(np.argmin(np.abs(along - place))) for place in places]
        views = [camera.take(number)[0].color for number in numbers]
        camera.restore()
        return views, [trajectory.frames[number].time_s for number in numbers]

    def _open(self, scene: Scene) -> Simulator:
        settings = self._settings
        camera = Intrinsics.from_hfov(settings.width, settings.height, math.pi / 2)
        return make_simulator(settings.simulator, scene, camera, {})
