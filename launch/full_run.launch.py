"""A full run: simulate a scene under a condition, map it, record the map, score it."""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.substitutions import LaunchConfiguration

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launch_actions import RunLaunch
from osmabench_ros.bringup.single_run import plan_single_run
from osmabench_ros.mappers.registry import mapper_names
from osmabench_ros.simulation.conditions import list_conditions
from osmabench_ros.simulation.registry import simulator_names

ARGUMENTS = (
    ('scene', str, 'apartment', "'apartment', or a *.scene_dataset_config.json", None),
    ('scene_name', str, '', 'Scene of a data set with several', None),
    ('seed', int, '5', 'Seed of the scene, the path and the questions', None),
    ('condition', str, 'baseline', 'Light and motion', list_conditions()),
    ('mapper', str, 'oracle', 'Bundled mapping method', mapper_names()),
    ('simulator', str, 'opengl', 'Simulator backend', simulator_names()),
    ('pacing', str, 'lockstep', 'Wait for the mapper or not', ['lockstep', 'realtime']),
    ('speed_factor', float, '1.0', 'Realtime: stamp seconds per wall second', None),
    ('frame_rate_hz', float, '2.0', 'Frames per second of stamp time', None),
    ('max_frames', int, '60', 'Frames at the speed of the baseline', None),
    ('image_width', int, '640', 'Pixels', None),
    ('image_height', int, '480', 'Pixels', None),
    ('out', str, 'runs', 'Folder that gets a folder of results', None),
)


def start_run(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Prepare the run that the arguments describe, and start its nodes."""
    values = {
        name: kind(LaunchConfiguration(name).perform(context))
        for name, kind, _default, _description, _choices in ARGUMENTS
    }
    return RunLaunch(plan_single_run(values, Path(values.pop('out')))).actions()


def generate_launch_description() -> LaunchDescription:
    """Describe the run."""
    arguments = [
        DeclareLaunchArgument(
            name, default_value=default, description=description, choices=choices
        )
        for name, _kind, default, description, choices in ARGUMENTS
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=start_run)])
