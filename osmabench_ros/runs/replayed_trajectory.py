"""The path of a configuration whose trajectory was recorded."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError, OsmabenchWarning
from osmabench_ros.runs.config import PoseFrame, TrajectoryConfig
from osmabench_ros.runs.recorded_trajectories import read_trajectory
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.bag import is_bag
from osmabench_ros.sequences.recorded import open_sequence
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.replayed_path import path_along
from osmabench_ros.simulation.robot_path import RobotPath

FREE_SHARE = 0.9
"""Recorded places of which fewer are free do not look like those of a robot in this scene."""


def replayed_path(config: TrajectoryConfig, scene: Scene, navigation: NavigationMap) -> RobotPath:
    """Return the path along recorded poses; warns if it goes through obstacles.

    The poses are in the world of the scene. Raises ConfigError if one is outside it, when the
    recording is of another world.
    """
    places, headings = _poses(config)
    low, high = scene.box.minimum[:2], scene.box.maximum[:2]
    outside = np.flatnonzero(((places < low) | (places > high)).any(axis=1))
    if len(outside):
        x, y = places[outside[0]]
        raise ConfigError(
            f'trajectory.recorded {config.recorded}: pose {outside[0]} at ({x:.2f}, {y:.2f}) is '
            f'outside scene {scene.dataset}/{scene.name}, which reaches from ({low[0]:.2f}, '
            f'{low[1]:.2f}) to ({high[0]:.2f}, {high[1]:.2f}); give poses in the z-up world of '
            'the scene'
        )
    free = float(np.mean([navigation.is_free(place) for place in places]))
    if free < FREE_SHARE:
        warnings.warn(
            f'trajectory.recorded {config.recorded}: only {free:.0%} of the poses are free for a '
            f'robot of radius {navigation.radius_m:g} m in scene {scene.dataset}/{scene.name}; '
            'check that they are in its world, or lower robot.radius_m',
            OsmabenchWarning,
            stacklevel=2,
        )
    return path_along(
        places, headings, segments=config.goals, floor_height_m=navigation.floor_height_m
    )


def _poses(config: TrajectoryConfig) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return places (N, 2) and headings (N,) of the robot."""
    path = Path(config.recorded).expanduser()
    if path.is_dir() and not is_bag(path):
        poses = [frame.camera_pose for frame in open_sequence(path)]
        positions = np.array([pose.translation for pose in poses])
        rotations, frame = np.array([pose.rotation for pose in poses]), PoseFrame.CAMERA
    else:
        recorded = read_trajectory(str(path))
        positions, rotations = recorded.positions, recorded.rotations
        frame = config.recorded_frame
    # The robot looks along x; an optical frame along z.
    ahead = rotations[:, :2, 2 if frame is PoseFrame.CAMERA else 0]
    return positions[:, :2], np.arctan2(ahead[:, 1], ahead[:, 0])
