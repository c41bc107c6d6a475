"""The simulator alone, so that any stack can subscribe: a scene under a condition, on topics."""

from launch.actions import OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.bridge_alone import bridge_alone
from osmabench_ros.bringup.launch_arguments import (
    PUBLISH_TF,
    TRANSFORMS,
    Argument,
    declarations,
    values,
)
from osmabench_ros.bringup.launch_nodes import ManagedNodes, ended
from osmabench_ros.bringup.launch_viewer import viewer_actions
from osmabench_ros.mappers.transform_edges import MapOrigin
from osmabench_ros.simulation.conditions import list_conditions
from osmabench_ros.simulation.registry import simulator_names
from osmabench_ros.simulation.strategies import Strategy

STRATEGIES = [item.value for item in Strategy]
ORIGINS = [item.value for item in MapOrigin]

ARGUMENTS = (
    Argument('scene', 'apartment', "'apartment', or a *.scene_dataset_config.json"),
    Argument('scene_name', '', 'Scene of a data set with several'),
    Argument('sequence', '', 'Recorded sequence or bag to publish instead of a scene'),
    Argument(
        'sequence_topics', '', "Other topics of that bag: YAML file, or '{color: /rgb, pose: tf}'"
    ),
    Argument('seed', '5', 'Seed of the scene and the path', int),
    Argument('condition', 'baseline', 'Light and motion', choices=list_conditions()),
    Argument('path_file', '', 'Path of a run, RUNS/shared/SCENE/path.json; planned if empty'),
    Argument('strategy', 'follow', 'How the path is chosen', choices=STRATEGIES),
    Argument('goals', '5', 'Random goals of the path', int),
    Argument('simulator', 'opengl', 'Simulator backend', choices=simulator_names()),
    Argument(
        'pacing', 'realtime', 'Wait for the participants or not', str, ('lockstep', 'realtime')
    ),
    Argument(
        'participants', '', 'Nodes to wait for, by commas: NAME, or NAME:acks if it acknowledges'
    ),
    Argument('speed_factor', '1.0', 'Realtime: stamp seconds per wall second', float),
    Argument('frame_rate_hz', '5.0', 'Frames per second of stamp time', float),
    Argument('image_width', '640', 'Pixels', int),
    Argument('image_height', '480', 'Pixels', int),
    TRANSFORMS,
    PUBLISH_TF,
    Argument('map_origin', 'first_pose', 'Where such a stack puts its map', choices=ORIGINS),
    Argument('start_paused', 'false', 'Wait for the service start_run', bool),
    Argument('rviz', 'false', 'Look at the frames in RViz; needs the package rviz2', bool),
    Argument('namespace', '', 'Of the node and its topics'),
)


def start_bridge(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Start the bridge that the arguments describe; it stays until it is interrupted."""
    given = values(context, ARGUMENTS)
    namespace = given.pop('namespace')
    viewer = viewer_actions(rviz=True, namespace=namespace) if given.pop('rviz') else []
    return [*viewer, *ManagedNodes([bridge_alone(given)], ended, namespace=namespace).actions()]


def generate_launch_description() -> LaunchDescription:
    """Describe the bridge."""
    return LaunchDescription([*declarations(ARGUMENTS), OpaqueFunction(function=start_bridge)])
