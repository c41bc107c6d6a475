"""The viewer node, and RViz with the configuration of this package."""

from __future__ import annotations

from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.launch_description_entity import LaunchDescriptionEntity
from launch_ros.actions import Node

from osmabench_ros.base.configuration import config_path
from osmabench_ros.bringup.spec.isolation import launch_environment
from osmabench_ros.bringup.spec.node_spec import PACKAGE
from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.ros.node.parameters import AUTOSTART

VIEWER = 'map_viewer'


def launch_viewer(
    *,
    map_directory: str = '',
    ground_truth_directory: str = '',
    rviz: bool = False,
    namespace: str = '',
) -> list[LaunchDescriptionEntity]:
    """Return the viewer and, if wanted, RViz; their end ends nothing."""
    if rviz:
        _require_rviz()
    folders = {'map_directory': map_directory, 'ground_truth_directory': ground_truth_directory}
    given = {name: str(Path(folder).absolute()) for name, folder in folders.items() if folder}
    environment = dict(launch_environment())
    viewer = Node(
        package=PACKAGE,
        executable=f'{VIEWER}_node',
        exec_name=f'{VIEWER}_node',
        name=VIEWER,
        namespace=namespace,
        parameters=[{AUTOSTART.name: True, **given}],
        additional_env=environment,
        output='screen',
    )
    if not rviz:
        return [viewer]
    window = Node(
        package='rviz2',
        executable='rviz2',
        exec_name='rviz2',
        namespace=namespace,
        arguments=['-d', str(config_path('rviz', 'osmabench.rviz'))],
        additional_env=environment,
        output='screen',
    )
    return [viewer, window]


def _require_rviz() -> None:
    # A launch that fails half-way leaves the processes that it has started.
    try:
        get_package_prefix('rviz2')
    except PackageNotFoundError as error:
        raise MissingDependencyError(
            'rviz2 is not installed; apt install ros-$ROS_DISTRO-rviz2, or rviz:=false'
        ) from error
