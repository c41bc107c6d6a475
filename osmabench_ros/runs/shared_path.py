"""The path of a scene and seed, the same under every condition."""

from __future__ import annotations

from osmabench_ros.runs.config import MatrixConfig, Planner
from osmabench_ros.runs.habitat_path import habitat_path
from osmabench_ros.runs.replayed_trajectory import replayed_path
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.robot_path import Motion, RobotPath
from osmabench_ros.simulation.strategies import plan_with_strategy


def navigation_of(config: MatrixConfig, scene: Scene) -> NavigationMap:
    """Return where the robot of a configuration may be."""
    robot = config.robot
    return NavigationMap.of_scene(scene, radius_m=robot.radius_m, height_m=robot.height_m)


def shared_path(
    config: MatrixConfig, seed: int, scene: Scene, navigation: NavigationMap
) -> RobotPath:
    """Plan the path that all conditions of a configuration share.

    Raises SimulationError if a given goal cannot be reached, and another OsmabenchError if a
    recorded trajectory cannot be read or is not of the scene.
    """
    if config.trajectory.recorded:
        path = replayed_path(config.trajectory, scene, navigation)
    elif config.trajectory.planner is not Planner.GRID:
        path = habitat_path(config, seed, scene)
    else:
        path = plan_with_strategy(
            config.trajectory.strategy,
            scene,
            navigation,
            goals=config.trajectory.goals,
            seed=seed,
            camera_height_m=config.camera.mounting_height_m,
            goal_points=config.trajectory.goal_points,
        )
    # The path is cut, not the frames: a faster condition sees the same places in fewer frames.
    longest_s = (config.trajectory.max_frames - 1) / config.trajectory.frame_rate_hz
    return path.until(longest_s, Motion())
