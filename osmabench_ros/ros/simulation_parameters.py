"""Parameters that say what is simulated, and the frames they stand for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.documents import parse_mapping
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.simulation.conditions import condition_of_text
from osmabench_ros.simulation.frame_source import SimulatedFrames
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.registry import make_simulator
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.strategies import Strategy, plan_with_strategy
from osmabench_ros.simulation.trajectory import CameraMount, sample_trajectory

SIMULATION_PARAMETERS = (
    ParameterSpec('scene', 'apartment', "'apartment', or a *.scene_dataset_config.json."),
    ParameterSpec('scene_name', '', 'Scene of a data set; the only one by default.'),
    ParameterSpec('seed', 0, 'Seed of the scene and the path.', 0, 2**31 - 1),
    ParameterSpec(
        'condition', 'baseline', 'Name in config/conditions/, a YAML file, or a whole one as JSON.'
    ),
    ParameterSpec('simulator', 'opengl', 'Entry point in the group osmabench.simulators.'),
    ParameterSpec('simulator_options', '{}', 'Options of the simulator, a YAML mapping.'),
    ParameterSpec('image_width', 640, 'Pixels.', 16, 4096),
    ParameterSpec('image_height', 480, 'Pixels.', 16, 4096),
    ParameterSpec('hfov_deg', 90.0, 'Horizontal field of view, degrees.', 1.0, 179.0),
    ParameterSpec('camera_height_m', 1.5, 'Camera above the floor, metres.', 0.01, 3.0),
    ParameterSpec('camera_pitch_deg', 0.0, 'Positive looks down, degrees.', -90.0, 90.0),
    ParameterSpec('near_m', 0.05, 'Nearest depth, metres.', 0.001, 10.0),
    ParameterSpec('far_m', 50.0, 'Farthest depth, metres.', 1.0, 10000.0),
    ParameterSpec('robot_radius_m', 0.2, 'For planning without path_file, metres.', 0.01, 1.0),
    ParameterSpec('robot_height_m', 1.5, 'For planning without path_file, metres.', 0.01, 3.0),
    ParameterSpec('goals', 5, 'Goals without path_file.', 1, 100),
    ParameterSpec(
        'strategy',
        Strategy.FOLLOW.value,
        'How goals are chosen without path_file.',
        choices=[item.value for item in Strategy],
    ),
    ParameterSpec('frame_rate_hz', 5.0, 'Frames per second of stamp time.', 0.01, 1000.0),
    ParameterSpec('path_file', '', 'Prepared path, path.json; planned from the seed if empty.'),
)


def open_frames(values: dict[str, Any]) -> SimulatedFrames:
    """Load a scene and start its simulator, from the values of `SIMULATION_PARAMETERS`.

    Raises OsmabenchError if the scene, the condition, the simulator, the path or an option is at
    fault.
    """
    # Cheap look-ups come first, so that a misspelt name does not cost the time of a scene.
    condition = condition_of_text(values['condition'])
    options = _options(values['simulator_options'])
    scene = load_scene(values['scene'], scene=values['scene_name'], seed=values['seed'])
    mount = CameraMount(values['camera_height_m'], math.radians(values['camera_pitch_deg']))
    trajectory = sample_trajectory(
        _path(values, scene),
        condition.motion_at(values['frame_rate_hz']),
        values['frame_rate_hz'],
        mount,
    )
    intrinsics = Intrinsics.from_hfov(
        values['image_width'], values['image_height'], math.radians(values['hfov_deg'])
    )
    limits = {'near_m': values['near_m'], 'far_m': values['far_m']}
    simulator = make_simulator(values['simulator'], scene, intrinsics, {**limits, **options})
    return SimulatedFrames(scene, simulator, condition, trajectory, values['seed'])


def _path(values: dict[str, Any], scene: Any) -> RobotPath:
    strategy = Strategy(values['strategy'])
    if values['path_file']:
        if strategy is not Strategy.FOLLOW:
            raise ConfigError(
                f'parameters "path_file" and "strategy" ({strategy.value}) both say where to '
                'drive; leave one of them out'
            )
        return RobotPath.read(Path(values['path_file']))
    navigation = NavigationMap.of_scene(
        scene, radius_m=values['robot_radius_m'], height_m=values['robot_height_m']
    )
    return plan_with_strategy(
        strategy,
        scene,
        navigation,
        goals=values['goals'],
        seed=values['seed'],
        camera_height_m=values['camera_height_m'],
    )


def _options(text: str) -> dict[str, Any]:
    return parse_mapping(text, 'parameter "simulator_options"', ConfigError)
