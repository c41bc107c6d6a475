"""The path of a scene and seed, the same under every condition."""

import math
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError, SimulationError, warn
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.runs.bag_content import read_trajectory
from osmabench_ros.runs.config import MatrixConfig, Planner, PoseFrame, TrajectoryConfig
from osmabench_ros.runs.plan import PATH_FILE, RunPlan
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.bags.bag_storage import is_bag
from osmabench_ros.sequences.recorded import open_sequence
from osmabench_ros.simulation import robot_path
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.habitat.navigation import HabitatNavigation
from osmabench_ros.simulation.habitat.simulator import HabitatSimulator
from osmabench_ros.simulation.strategies import Strategy, plan_with_strategy
from osmabench_ros.simulation.walkable_grid import WalkableGrid

HABITAT = 'habitat'
# Nothing is rendered.
UNSEEN = Intrinsics.from_hfov(16, 16, math.pi / 2)


def habitat_path(
    config: MatrixConfig, seed: int, scene: Scene, floor_height_m: float | None = None
) -> robot_path.RobotPath:
    """Plan the path of a configuration with one of the planners of Habitat-Sim.

    Goals that are drawn are on the floor of a height, or everywhere without one.
    """
    wanted, file = config.trajectory, config.trajectory.navmesh
    options = config.simulator.options if config.simulator.name == HABITAT else {}
    with closing(HabitatSimulator(scene, UNSEEN, **options)) as simulator:
        navigation = simulator.navigation(
            radius_m=config.robot.radius_m,
            height_m=config.robot.height_m,
            floor_height_m=floor_height_m,
            one_floor=floor_height_m is not None,
            mesh_file=str(Path(file).expanduser().absolute()) if file else '',
            as_loaded=wanted.planner is Planner.OSMA_BENCH,
        )
        if wanted.planner is Planner.OSMA_BENCH:
            return _driven(*navigation.scenario(wanted.goals, seed))
        if wanted.planner is Planner.GREEDY:
            return _follow_goals(navigation, wanted, seed)
        return robot_path.plan_path(
            navigation,
            goals=wanted.goals,
            seed=seed,
            goal_points=wanted.goal_points,
            look_around=wanted.strategy is Strategy.LOOK_AROUND,
        )


def _follow_goals(
    navigation: HabitatNavigation, wanted: TrajectoryConfig, seed: int
) -> robot_path.RobotPath:
    """Follow the goals one after another, each from the point reached before."""
    rng = np.random.default_rng([seed, wanted.goals])
    points = wanted.goal_points or list(navigation.draw_points(wanted.goals + 1, rng))
    if len(points) < 2:
        raise SimulationError('a path needs a start and a goal: two points or more')
    ahead = np.asarray(points[1])[:2] - np.asarray(points[0])[:2]
    place = points[0]
    heading = math.atan2(ahead[1], ahead[0])
    states = np.zeros((0, 4))
    segments = np.zeros(0, np.int64)
    for number, goal in enumerate(points[1:]):
        driven = navigation.follow(place, heading, goal)
        segments = np.append(segments, np.full(len(driven) - 1, number))
        states = np.concatenate([states[:-1], driven])
        place = driven[-1, :3]
        heading = driven[-1, 3]
    return _driven(states, segments)


def _driven(states: NDArray[np.float64], segments: NDArray[np.int64]) -> robot_path.RobotPath:
    """Return the path through states x, y, z, heading; SimulationError if nothing moves."""
    headings = np.unwrap(states[:, 3])
    moves = np.linalg.norm(np.diff(states[:, :2], axis=0), axis=1) > 1e-9
    kept = moves | (np.abs(np.diff(headings)) > 1e-9)
    if not kept.any():
        raise SimulationError('no goal of the path can be reached; choose another seed')
    rows = np.column_stack([states[:, :2], headings, states[:, 2]])[np.append(True, kept)]
    return robot_path.RobotPath.of_rows(
        [tuple(row) for row in rows.tolist()], segments[kept].tolist()
    )


# Recorded places of which fewer are free do not look like places of a robot in this scene.
FREE_SHARE = 0.9


def replay_path(
    config: TrajectoryConfig, scene: Scene, navigation: WalkableGrid, camera_height_m: float
) -> robot_path.RobotPath:
    """Return the path along poses in the scene's world; warns of obstacles on it.

    Poses keep their heights in a house of several storeys; on one floor the robot is on it.
    """
    places, headings = _poses(config, camera_height_m)
    if len(navigation.storeys_m) == 1:
        places[:, 2] = navigation.floor_height_m
    low = scene.box.minimum[:2]
    high = scene.box.maximum[:2]
    outside = np.flatnonzero(((places[:, :2] < low) | (places[:, :2] > high)).any(axis=1))
    if len(outside):
        x, y, _ = places[outside[0]]
        corners = ' to '.join(f'({place[0]:.2f}, {place[1]:.2f})' for place in (low, high))
        raise ConfigError(
            f'trajectory.recorded {config.recorded}: pose {outside[0]} at ({x:.2f}, {y:.2f}) is '
            f'outside scene {scene.dataset}/{scene.name}, {corners}; give poses in its z-up world'
        )
    free = float(np.mean([navigation.is_free(place) for place in places]))
    if free < FREE_SHARE:
        warn(
            f'trajectory.recorded {config.recorded}: only {free:.0%} of the poses are free for a '
            f'robot of radius {navigation.radius_m:g} m in scene {scene.dataset}/{scene.name}; '
            'check that they are in its world, or lower robot.radius_m'
        )
    return robot_path.make_path_along(places, headings, segments=config.goals)


def _poses(
    config: TrajectoryConfig, camera_height_m: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return positions (N, 3) and headings (N,) of the robot."""
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
    of_camera = frame is PoseFrame.CAMERA
    ahead = rotations[:, :2, 2 if of_camera else 0]
    bases = positions - [0.0, 0.0, camera_height_m if of_camera else 0.0]
    return bases, np.arctan2(ahead[:, 1], ahead[:, 0])


def navigation_of(config: MatrixConfig, scene: Scene) -> WalkableGrid:
    """Return the navigation map for the robot and the storey of a configuration."""
    robot, storey = config.robot, config.trajectory.storey
    return WalkableGrid.of_scene(
        scene,
        radius_m=robot.radius_m,
        height_m=robot.height_m,
        storey=None if storey == 'all' else storey,
    )


def shared_path(
    config: MatrixConfig, seed: int, scene: Scene, navigation: WalkableGrid
) -> robot_path.RobotPath:
    """Plan the path that all conditions of a configuration share."""
    if Path(config.trajectory.recorded).name == PATH_FILE:
        path = robot_path.RobotPath.read(Path(config.trajectory.recorded).expanduser())
    elif config.trajectory.recorded:
        height_m = config.camera.mounting_height_m
        path = replay_path(config.trajectory, scene, navigation, height_m)
    elif config.trajectory.planner is not Planner.GRID:
        one = config.trajectory.storey != 'all'
        path = habitat_path(config, seed, scene, navigation.floor_height_m if one else None)
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
    return path.crop(longest_s, robot_path.Motion())


def drive(
    config: MatrixConfig, path: robot_path.RobotPath, condition: Condition | None = None
) -> robot_path.Trajectory:
    """Return the trajectory along a path, at the speed of a condition or of the baseline."""
    rate_hz = config.trajectory.frame_rate_hz
    motion = robot_path.Motion() if condition is None else condition.make_motion(rate_hz)
    return robot_path.sample_trajectory(path, motion, rate_hz, config.camera.mount)


def driven_trajectory(plan: RunPlan) -> robot_path.Trajectory:
    """Return the trajectory of a prepared run, at the speed of its condition."""
    path = robot_path.RobotPath.read(plan.shared_directory / PATH_FILE)
    return drive(plan.config, path, plan.condition)
