"""Records a bag of a run, or of a robot, until it is interrupted."""

from pathlib import Path

from launch.actions import OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launch_arguments import Argument, declarations, values
from osmabench_ros.bringup.launch_nodes import ManagedNodes, ended
from osmabench_ros.bringup.node_spec import NodeSpec
from osmabench_ros.bringup.on_robot import BAG_RECORDER

ARGUMENTS = (
    Argument('out', 'bag', 'New folder for the bag'),
    Argument('topics', '', 'By commas; empty for the topic contract'),
    Argument('all_topics', 'false', 'Record every topic, save hidden ones', bool),
    Argument('exclude', '', 'Regular expression of topics to leave out'),
    Argument('compression', 'zstd', 'Of the bag', choices=('zstd', 'lz4', 'none')),
    Argument('max_file_bytes', '0', 'Begin a new file at this size; 0 never', int),
    Argument('max_file_s', '0.0', 'Begin a new file after these seconds; 0 never', float),
    Argument('namespace', '', 'Of the topics'),
)


def start_recorder(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Start the recorder that the arguments describe."""
    given = values(context, ARGUMENTS)
    namespace, out = given.pop('namespace'), given.pop('out')
    parameters = {
        **given,
        'bag_directory': str(Path(out).absolute()),
        'topics': [topic.strip() for topic in given['topics'].split(',')],
    }
    recorder = NodeSpec(BAG_RECORDER, 'bag_recorder_node', parameters, ends_run=True)
    return ManagedNodes([recorder], ended, namespace=namespace).actions()


def generate_launch_description() -> LaunchDescription:
    """Describe the recorder."""
    return LaunchDescription([*declarations(ARGUMENTS), OpaqueFunction(function=start_recorder)])
