"""The frames that a bridge publishes: of a simulation, or of a recorded sequence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from osmabench_ros.base.settings import settings_of
from osmabench_ros.errors import ConfigError
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.reading import SequenceReading
from osmabench_ros.sequences.recorded import RECORDED, RecordedFrames, names_of, open_sequence
from osmabench_ros.simulation.conditions import condition_of_text
from osmabench_ros.simulation.frame_source import FrameSource, SimulatedFrames
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.strategies import Strategy, plan_with_strategy
from osmabench_ros.simulation.trajectory import sample_trajectory
from osmabench_ros.simulation.walkable_grid import WalkableGrid

OF_SIMULATIONS = ('scene', 'simulator', 'camera', 'robot', 'trajectory', 'path_file')


@dataclass(frozen=True)
class BridgeSource:
    """Frames, with dataset, scene and condition of their source."""

    frames: FrameSource
    dataset: str
    scene: str
    condition: str
    simulator: str
    lighting_known: bool = True


def open_source(settings: BridgeSettings) -> BridgeSource:
    """Open the source that settings name; ConfigError if they contradict each other."""
    if settings.sequence is not None:
        return _open_sequence(settings, settings.sequence)
    if settings.sequence_topics != SequenceReading():
        raise ConfigError('parameter "sequence_topics" is about a bag; name it in "sequence"')
    frames = open_frames(settings)
    condition = frames.condition.name
    return BridgeSource(frames, frames.dataset, frames.scene, condition, settings.simulator.name)


def _open_sequence(settings: BridgeSettings, path: Path) -> BridgeSource:
    _refuse_settings_of_simulations(settings)
    sequence = open_sequence(path, settings.sequence_topics)
    frames, info = RecordedFrames(sequence), sequence.info
    condition = str(settings.condition)
    default = BridgeSettings.model_fields['condition'].default
    if info.condition and condition not in (default, info.condition):
        raise ConfigError(
            f'parameter "condition" is "{condition}", but {path} was recorded under '
            f'"{info.condition}"; leave the parameter out'
        )
    return BridgeSource(
        frames,
        *names_of(sequence, path),
        info.condition or condition,
        RECORDED,
        lighting_known=False,
    )


def _refuse_settings_of_simulations(settings: BridgeSettings) -> None:
    for item in settings_of(BridgeSettings):
        changed = item.of(settings) != item.of(BridgeSettings())
        if item.path[0] in OF_SIMULATIONS and item.name != 'seed' and changed:
            raise ConfigError(
                f'parameter "{item.name}" describes a simulation, but "sequence" plays a '
                'recorded one; leave one of them out'
            )


def open_frames(settings: BridgeSettings) -> SimulatedFrames:
    """Load a scene and start its simulator."""
    # Cheap look-ups come first, so that a misspelt name does not cost the time of a scene.
    condition = settings.condition
    if isinstance(condition, str):
        condition = condition_of_text(condition)
    chosen, camera, rate_hz = settings.scene, settings.camera, settings.trajectory.frame_rate_hz
    scene = chosen.load()
    motion = condition.motion_at(rate_hz)
    trajectory = sample_trajectory(_path(settings, scene), motion, rate_hz, camera.mount)
    start = partial(settings.simulator.simulator, camera=camera)
    return SimulatedFrames(scene, start(scene), condition, trajectory, chosen.seed_of_path, start)


def _path(settings: BridgeSettings, scene: Scene) -> RobotPath:
    if settings.path_file is not None:
        return RobotPath.read(settings.path_file)
    robot = settings.robot
    navigation = WalkableGrid.of_scene(scene, radius_m=robot.radius_m, height_m=robot.height_m)
    return plan_with_strategy(
        Strategy.FOLLOW,
        scene,
        navigation,
        goals=settings.trajectory.goals,
        seed=settings.scene.seed_of_path,
        camera_height_m=settings.camera.mounting_height_m,
    )
