"""Sequences of the procedural apartment, rendered in this process to learn or compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.simulation.frame_source import SimulatedFrames
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.robot_path import Motion, RobotPath, plan_path
from osmabench_ros.simulation.trajectory import CameraMount, Trajectory, sample_trajectory


@dataclass(frozen=True)
class Rehearsal:
    """What is rendered, 90 degrees from left to right; the defaults are those of the demo.

    The camera is `mounting_height_m` above the floor; the path is cut where a robot of normal
    speed is after `max_frames`.
    """

    width: int = 640
    height: int = 480
    mounting_height_m: float = 1.5
    robot_radius_m: float = 0.2
    robot_height_m: float = 1.6
    goals: int = 8
    frame_rate_hz: float = 2.5
    max_frames: int = 60

    @property
    def intrinsics(self) -> Intrinsics:
        """Camera of all frames."""
        return Intrinsics.from_hfov(self.width, self.height, np.pi / 2)


class ApartmentSequence:
    """One apartment and one path, both of one seed, under as many conditions as wanted."""

    def __init__(self, seed: int, rehearsal: Rehearsal) -> None:
        self.rehearsal = rehearsal
        self.scene: Scene = load_scene('apartment', seed=seed)
        navigation = NavigationMap.of_scene(
            self.scene,
            radius_m=rehearsal.robot_radius_m,
            height_m=rehearsal.robot_height_m,
        )
        path = plan_path(navigation, goals=rehearsal.goals, seed=seed)
        longest_s = (rehearsal.max_frames - 1) / rehearsal.frame_rate_hz
        self._path: RobotPath = path.until(longest_s, Motion())

    def trajectory(self, condition: str) -> Trajectory:
        """Return the camera poses under a condition, which sets the speed."""
        return sample_trajectory(
            self._path,
            load_condition(condition).motion_at(self.rehearsal.frame_rate_hz),
            self.rehearsal.frame_rate_hz,
            CameraMount(self.rehearsal.mounting_height_m),
        )

    def frames(self, condition: str) -> Iterator[Frame]:
        """Render the frames under a condition one by one."""
        simulator = OpenGLSimulator(self.scene, self.rehearsal.intrinsics)
        source = SimulatedFrames(
            self.scene, simulator, load_condition(condition), self.trajectory(condition)
        )
        try:
            for index in range(len(source)):
                yield source.frame(index).frame
        finally:
            source.close()
