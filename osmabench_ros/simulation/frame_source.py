"""Frames one after another, from a simulator or anything else that can be published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.simulation.conditioned_camera import ConditionedCamera, OpenSimulator
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.robot_path import Trajectory
from osmabench_ros.simulation.simulator import LoadingSimulator, Simulator, check_agreement

FIRST_STAMP_NS = 1_000_000_000
"""Stamp of frame 0; zero would mean "no time" to TF."""


def stamp_of(time_s: float) -> int:
    """Return the stamp of the frame at a time since the start."""
    return FIRST_STAMP_NS + round(time_s * 1e9)


@dataclass(frozen=True, eq=False)
class SimulatedFrame:
    """A frame, the light it was taken in, and its 0-based goal segment of the path."""

    frame: Frame
    lighting: Lighting
    segment: int


class FrameSource(Protocol):
    """What a bridge publishes."""

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        ...

    @property
    def scene(self) -> str:
        """Name of the scene."""
        ...

    @property
    def label_set(self) -> LabelSet:
        """Meaning of the semantic images."""
        ...

    @property
    def intrinsics(self) -> Intrinsics:
        """Camera of all images."""
        ...

    @property
    def base_to_camera(self) -> Pose:
        """Optical frame in base_link."""
        ...

    @property
    def frame_rate_hz(self) -> float:
        """Frames per second of stamp time."""
        ...

    @property
    def description(self) -> str:
        """What makes the frames, for people."""
        ...

    def __len__(self) -> int:
        """Return the number of frames."""
        ...

    def frame(self, index: int) -> SimulatedFrame:
        """Return a frame; asked for in order."""
        ...

    def close(self) -> None:
        """Free what the frames need."""
        ...


PROBED_FRAMES = 4
"""Frames of a path at which a simulator that loads the scene itself is held to it."""


class SimulatedFrames:
    """Renders a scene along a trajectory under a condition.

    A simulator that loads the scene's files itself is first compared with the scene; raises as
    `check_agreement`.
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
        self._scene = scene
        self._simulator = simulator
        self._trajectory = trajectory
        self.condition = condition
        if isinstance(simulator, LoadingSimulator):
            numbers = np.linspace(0, len(trajectory) - 1, PROBED_FRAMES).astype(int)
            poses = trajectory.camera_poses
            check_agreement(scene, simulator, [poses[number] for number in np.unique(numbers)])
        self._camera = ConditionedCamera(
            scene, simulator, condition, trajectory, seed, open_simulator
        )
        self._kept = self._camera.kept()
        self._poses = self._camera.reported_poses()

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self._scene.dataset

    @property
    def scene(self) -> str:
        """Name of the scene."""
        return self._scene.name

    @property
    def label_set(self) -> LabelSet:
        """Meaning of the semantic images."""
        return self._scene.label_set

    @property
    def intrinsics(self) -> Intrinsics:
        """Camera of all images."""
        return self._simulator.intrinsics

    @property
    def base_to_camera(self) -> Pose:
        """Optical frame in base_link."""
        return self._trajectory.mount.base_to_camera

    @property
    def frame_rate_hz(self) -> float:
        """Frames per second of stamp time."""
        return self._trajectory.frame_rate_hz

    @property
    def description(self) -> str:
        """Simulator and renderer."""
        return self._simulator.description

    def __len__(self) -> int:
        return len(self._kept)

    def frame(self, index: int) -> SimulatedFrame:
        """Render a frame by its 0-based number, which does not count dropped frames."""
        number = int(self._kept[index])
        instant = self._trajectory.frames[number]
        seen, lighting = self._camera.take(number)
        pose = self._poses[number]
        true = pose is instant.camera_pose
        frame = Frame(
            index=index,
            stamp_ns=stamp_of(instant.time_s),
            camera_pose=pose,
            intrinsics=self._simulator.intrinsics,
            color=seen.color,
            depth_m=seen.depth_m,
            semantic=seen.semantic,
            instance=seen.instance,
            base_pose=instant.base_pose if true else pose @ self.base_to_camera.inverse(),
            albedo=seen.albedo,
        )
        return SimulatedFrame(frame, lighting, instant.segment)

    def restore(self) -> None:
        """Put moved objects back, for the frames of another condition."""
        self._camera.restore()

    def close(self) -> None:
        """Close the simulators."""
        self._camera.close()
        self._simulator.close()
