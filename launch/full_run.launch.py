"""A full run: simulate a scene under a condition, map it, record the map, score it."""

from pathlib import Path

from launch.actions import OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.logging import get_logger

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launch_interrupts import interrupts

# Before what takes long to load: Ctrl-C meanwhile is an error too.
interrupts.install()

from osmabench_ros.bringup.bridge_alone import BRIDGE
from osmabench_ros.bringup.definition import EVALUATOR, RECORDER
from osmabench_ros.bringup.launch_arguments import (
    PUBLISH_TF,
    TRANSFORMS,
    Argument,
    declarations,
    values,
)
from osmabench_ros.bringup.launch_domain import claim_nodes
from osmabench_ros.bringup.launch_run import RunLaunch
from osmabench_ros.bringup.launch_viewer import viewer_actions
from osmabench_ros.bringup.node_spec import MAPPER
from osmabench_ros.bringup.single_run import plan_single_run
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.mappers.registry import mapper_names
from osmabench_ros.simulation.conditions import list_conditions
from osmabench_ros.simulation.registry import simulator_names

MAPPERS = [*mapper_names(), *live_method_names()]

ARGUMENTS = (
    Argument('scene', 'apartment', "'apartment', or a *.scene_dataset_config.json"),
    Argument('scene_name', '', 'Scene of a data set with several'),
    Argument('seed', '5', 'Seed of the scene, the path and the questions', int),
    Argument('condition', 'baseline', 'Light and motion', choices=list_conditions()),
    Argument('velocity', '1.0', "Times the condition's speed of the robot", float),
    Argument('mapper', 'oracle', f'One of {", ".join(MAPPERS)}, or a YAML file of a stack'),
    Argument('variables', '{}', 'What the file of a stack asks for, as a YAML mapping', dict),
    TRANSFORMS,
    PUBLISH_TF,
    Argument('settling', '{}', 'Of a stack: settle_s, settle_timeout_s, allow_partial', dict),
    Argument('simulator', 'opengl', 'Simulator backend', choices=simulator_names()),
    Argument('pacing', 'lockstep', 'Wait for the mapper or not', str, ('lockstep', 'realtime')),
    Argument('speed_factor', '1.0', 'Realtime: stamp seconds per wall second', float),
    Argument('frame_rate_hz', '2.0', 'Frames per second of stamp time', float),
    Argument('max_frames', '60', 'Frames at the speed of the baseline', int),
    Argument('image_width', '640', 'Pixels', int),
    Argument('image_height', '480', 'Pixels', int),
    Argument('rviz', 'false', 'Look at the map in RViz; needs the package rviz2', bool),
    Argument('namespace', '', 'Of the nodes and their topics, /tf and /clock too; for no stack'),
    Argument('out', 'runs', 'Folder that gets a folder of results'),
)


def start_run(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Prepare the run that the arguments describe, and start its nodes."""
    given = values(context, ARGUMENTS)
    namespace = given.pop('namespace')
    if namespace and (given['mapper'].endswith('.yaml') or given['mapper'] in live_method_names()):
        raise ConfigError(
            f'namespace:={namespace} does not move the nodes of the stack mapper:='
            f'{given["mapper"]}; domain:=auto keeps them apart'
        )
    claim_nodes(context, (BRIDGE, MAPPER, RECORDER, EVALUATOR), namespace)
    # The viewer comes first, so that a missing RViz costs no preparation of a scene.
    viewer = viewer_actions(rviz=True, namespace=namespace) if given.pop('rviz') else []
    out = Path(given.pop('out'))
    logger = get_logger('osmabench')

    def tell(text: str, _fraction: float) -> None:
        logger.info(text)

    plan = interrupts.cut_off(lambda: plan_single_run(given, out, tell))
    return [*viewer, *RunLaunch(plan, namespace).actions()]


def generate_launch_description() -> LaunchDescription:
    """Describe the run."""
    return LaunchDescription([*declarations(ARGUMENTS), OpaqueFunction(function=start_run)])
