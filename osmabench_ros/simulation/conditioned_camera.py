"""A simulated camera under a condition: its light, its moving objects, its sensor effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.changes import changed_scene
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.effects import MotionBlur, Shot
from osmabench_ros.simulation.lighting import lighting_at
from osmabench_ros.simulation.moving_objects import MovingGroup, moving_groups, object_poses
from osmabench_ros.simulation.robot_path import Trajectory, TrajectoryFrame
from osmabench_ros.simulation.schedule import Moment
from osmabench_ros.simulation.simulator import Observation, Simulator

OpenSimulator = Callable[[Scene], Simulator]
"""Starts a simulator with the same camera and options for another scene."""


class ConditionedCamera:
    """Takes the frames of a trajectory under a condition, each by number and seed alone.

    Where the condition changes the scene on the way, `open_simulator` starts the simulator of the
    changed scene, which `close` closes; the given one is its owner's.
    """

    def __init__(
        self,
        scene: Scene,
        simulator: Simulator,
        condition: Condition,
        trajectory: Trajectory,
        seed: int = 0,
        open_simulator: OpenSimulator | None = None,
    ) -> None:
        if condition.scene_change is not None and open_simulator is None:
            raise SimulationError(f'condition "{condition.name}" changes the scene on the way')
        self._open = open_simulator
        self._changed: tuple[Scene, Simulator] | None = None
        self._scene = scene
        self._simulator = simulator
        self._condition = condition
        self._trajectory = trajectory
        self._seed = seed
        self._groups: dict[Scene, list[MovingGroup]] = {}

    def _groups_of(self, scene: Scene) -> list[MovingGroup]:
        if scene not in self._groups:
            self._groups[scene] = moving_groups(self._condition.moving_objects, scene)
        return self._groups[scene]

    def kept(self) -> NDArray[np.int64]:
        """Return the numbers of the trajectory's frames that are not dropped."""
        count = len(self._trajectory)
        arrives = np.ones(count, bool)
        for effect in self._condition.effects:
            arrives &= effect.keeps(count, self._seed)
        return np.flatnonzero(arrives)

    def reported_poses(self) -> list[Pose]:
        """Return the optical poses that the robot believes to have, one a frame."""
        poses = list(self._trajectory.camera_poses)
        for effect in self._condition.effects:
            poses = effect.reported_poses(poses, self._seed)
        return poses

    def take(self, number: int) -> tuple[Observation, Lighting]:
        """Return frame `number`, counting dropped ones too, with all effects, and its light."""
        instant = self._trajectory.frames[number]
        shot = Shot(number, instant.time_s, self._simulator.intrinsics, self._seed)
        moment = Moment(
            instant.segment,
            instant.segment_progress,
            instant.time_s,
            instant.base_pose.translation.tolist(),
        )
        scene, simulator = self._stage(moment)
        lighting = lighting_at(self._condition, scene, moment)
        for effect in self._condition.effects:
            lighting = effect.lighting(lighting, shot)
        simulator.set_lighting(lighting)
        if self._condition.moving_objects:
            simulator.move_objects(object_poses(self._groups_of(scene), moment))
        seen = simulator.render(instant.camera_pose)
        color, depth_m = seen.color, seen.depth_m
        for effect in self._condition.effects:
            if isinstance(effect, MotionBlur):
                color = self._blurred(simulator, effect, instant)
        for effect in self._condition.effects:
            color, depth_m = effect.color(color, shot), effect.depth(depth_m, shot)
        return replace(seen, color=color, depth_m=depth_m), lighting

    def restore(self) -> None:
        """Put moved objects back to where the scene has them, and close as `close` does."""
        if self._condition.moving_objects:
            groups = self._groups_of(self._scene)
            still = {part.instance_id: part.pose for _, _, parts in groups for part in parts}
            self._simulator.move_objects(still)
        self.close()

    def close(self) -> None:
        """Close the simulator of the changed scene, if it was started."""
        if self._changed is not None:
            self._changed[1].close()
            self._changed = None

    def _stage(self, moment: Moment) -> tuple[Scene, Simulator]:
        """Return the scene of a moment, and what renders it."""
        change = self._condition.scene_change
        if change is None or not change.span.contains(moment):
            return self._scene, self._simulator
        if self._changed is None:
            assert self._open is not None
            scene = changed_scene(self._scene, change.changes)
            self._changed = scene, self._open(scene)
        return self._changed

    def _blurred(
        self, simulator: Simulator, effect: MotionBlur, instant: TrajectoryFrame
    ) -> NDArray[np.uint8]:
        times = effect.sample_times_s(instant.time_s)
        poses = self._trajectory.camera_poses_at(times)
        return effect.averaged([simulator.render(pose).color for pose in poses])
