"""Frames of a scene under a condition, from a simulator or anything else that can be published."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.changes import apply_changes
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.simulation.conditions import (
    Condition,
    MovingGroup,
    compute_lighting,
    compute_object_poses,
    find_moving_groups,
)
from osmabench_ros.simulation.effects import MotionBlur, Shot
from osmabench_ros.simulation.robot_path import Trajectory, TrajectoryFrame
from osmabench_ros.simulation.schedule import Moment
from osmabench_ros.simulation.simulator import (
    LoadingSimulator,
    Observation,
    Simulator,
    check_agreement,
)

# Starts a simulator with the same camera and options for another scene.
OpenSimulator = Callable[[Scene], Simulator]


class ConditionedCamera:
    """Renders frames of a trajectory under a condition; each depends on its number and the seed.

    Where the condition changes the scene on the way, `open_simulator` starts the simulator of the
    changed scene, which `close` closes; whoever gave `simulator` closes that.
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
        self.condition = condition
        self._trajectory = trajectory
        self._seed = seed
        self._groups: dict[Scene, list[MovingGroup]] = {}

    def _find_groups(self, scene: Scene) -> list[MovingGroup]:
        if scene not in self._groups:
            self._groups[scene] = find_moving_groups(self.condition.moving_objects, scene)
        return self._groups[scene]

    def kept(self) -> NDArray[np.int64]:
        """Return the numbers of the trajectory's frames that are not dropped."""
        count = len(self._trajectory)
        arrives = np.ones(count, bool)
        for effect in self.condition.effects:
            arrives &= effect.keeps(count, self._seed)
        return np.flatnonzero(arrives)

    def reported_poses(self) -> list[Pose]:
        """Return the optical poses that the robot reports, one per frame, in the world."""
        poses = list(self._trajectory.camera_poses)
        for effect in self.condition.effects:
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
        scene, simulator = self._find_scene(moment)
        lighting = compute_lighting(self.condition, scene, moment)
        for effect in self.condition.effects:
            lighting = effect.lighting(lighting, shot)
        simulator.set_lighting(lighting)
        if self.condition.moving_objects:
            simulator.move_objects(compute_object_poses(self._find_groups(scene), moment))
        seen = simulator.render(instant.camera_pose)
        color, depth_m = seen.color, seen.depth_m
        for effect in self.condition.effects:
            if isinstance(effect, MotionBlur):
                color = self._blur_image(simulator, effect, instant)
        for effect in self.condition.effects:
            color = effect.color(color, shot)
            depth_m = effect.depth(depth_m, shot)
        return replace(seen, color=color, depth_m=depth_m), lighting

    def restore(self) -> None:
        """Put moved objects back to where the scene has them, and close as `close` does."""
        if self.condition.moving_objects:
            groups = self._find_groups(self._scene)
            still = {part.instance_id: part.pose for _, _, parts in groups for part in parts}
            self._simulator.move_objects(still)
        # A subclass may close more in its own `close`.
        ConditionedCamera.close(self)

    def close(self) -> None:
        """Close the simulator of the changed scene, if it was started."""
        if self._changed is not None:
            self._changed[1].close()
            self._changed = None

    def _find_scene(self, moment: Moment) -> tuple[Scene, Simulator]:
        """Return the scene of a moment, and what renders it."""
        change = self.condition.scene_change
        if change is None or not change.span.contains(moment):
            return self._scene, self._simulator
        if self._changed is None:
            assert self._open is not None
            scene = apply_changes(self._scene, change.changes)
            self._changed = scene, self._open(scene)
        return self._changed

    def _blur_image(
        self, simulator: Simulator, effect: MotionBlur, instant: TrajectoryFrame
    ) -> NDArray[np.uint8]:
        times = effect.sample_times_s(instant.time_s)
        poses = self._trajectory.interpolate_camera_poses(times)
        return effect.average_images([simulator.render(pose).color for pose in poses])


# Stamp of frame 0; zero would mean "no time" to TF.
FIRST_STAMP_NS = 1_000_000_000


def make_stamp(time_s: float) -> int:
    """Return the stamp of the frame at a time since the start."""
    return FIRST_STAMP_NS + round(time_s * 1e9)


@dataclass(frozen=True, eq=False)
class SimulatedFrame:
    """A frame, the light it was taken in, and its 0-based goal segment of the path."""

    frame: Frame
    lighting: Lighting
    segment: int


class FrameSource(Protocol):
    """The source of the frames that a bridge publishes."""

    # Names of the data set and of the scene in it.
    dataset: str
    scene: str
    # Meaning of the semantic images.
    label_set: LabelSet
    # Camera of all images.
    intrinsics: Intrinsics
    # Optical frame in base_link.
    base_to_camera: Pose
    # Frames per second of stamp time.
    frame_rate_hz: float
    # The renderer of the frames, for people.
    description: str

    def __len__(self) -> int:
        """Return the number of frames."""
        ...

    def frame(self, index: int) -> SimulatedFrame:
        """Return a frame; asked for in order."""
        ...

    def close(self) -> None:
        """Release the resources of the frames."""
        ...


# Poses of a path at which a simulator that loads the scene itself is compared with the scene.
PROBED_FRAMES = 4


class SimulatedFrames(ConditionedCamera):
    """Renders the frames of a scene along a trajectory under a condition.

    A simulator that loads the scene's files itself is first compared with the scene; raises as
    `check_agreement`. `close` closes the given simulator too.
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
        super().__init__(scene, simulator, condition, trajectory, seed, open_simulator)
        if isinstance(simulator, LoadingSimulator):
            numbers = np.linspace(0, len(trajectory) - 1, PROBED_FRAMES).astype(int)
            poses = trajectory.camera_poses
            check_agreement(scene, simulator, [poses[number] for number in np.unique(numbers)])
        self.dataset = scene.dataset
        self.scene = scene.name
        self.label_set = scene.label_set
        self.intrinsics, self.description = simulator.intrinsics, simulator.description
        self.base_to_camera = trajectory.mount.base_to_camera
        self.frame_rate_hz = trajectory.frame_rate_hz
        self._kept = self.kept()
        self._poses = self.reported_poses()

    def __len__(self) -> int:
        return len(self._kept)

    def frame(self, index: int) -> SimulatedFrame:
        """Render a frame by its 0-based number, which does not count dropped frames."""
        number = int(self._kept[index])
        instant = self._trajectory.frames[number]
        seen, lighting = self.take(number)
        pose = self._poses[number]
        true = pose is instant.camera_pose
        frame = Frame(
            index=index,
            stamp_ns=make_stamp(instant.time_s),
            camera_pose=pose,
            intrinsics=self.intrinsics,
            color=seen.color,
            depth_m=seen.depth_m,
            semantic=seen.semantic,
            instance=seen.instance,
            base_pose=instant.base_pose if true else pose @ self.base_to_camera.inverse(),
            albedo=seen.albedo,
        )
        return SimulatedFrame(frame, lighting, instant.segment)

    def close(self) -> None:
        """Close the simulators."""
        super().close()
        self._simulator.close()
