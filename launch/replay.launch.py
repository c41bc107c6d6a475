"""Plays a bag through the topics that it was recorded from."""

from pathlib import Path
from typing import Any

from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.base.contract import BAG_PLAYER
from osmabench_ros.bringup.definition import NodeSpec
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
    make_arguments,
    make_settings,
)
from osmabench_ros.bringup.launching.launch_nodes import end_launch, launch_nodes
from osmabench_ros.sequences.bags.playback import PlaybackSettings

ARGUMENTS = (
    Argument('bag', None, 'Folder of a bag, or an .mcap or .db3 file'),
    *make_arguments(PlaybackSettings, 'rate start_s duration_s loop paused clock topics'),
    Argument('remappings', '{}', 'From topics of the bag to others, a YAML mapping', dict),
)


def start_player(_context: LaunchContext, given: dict[str, Any]) -> list[LaunchDescriptionEntity]:
    """Start the player that the arguments describe; the launch ends with the bag."""
    remappings = given.pop('remappings')
    bag = str(Path(given.pop('bag')).absolute())
    settings = make_settings(PlaybackSettings, {**given, 'bag': bag})
    player = NodeSpec(BAG_PLAYER, 'bag_player_node', settings, ends_run=True)
    return launch_nodes([player], end_launch, remappings=remappings)


def generate_launch_description() -> LaunchDescription:
    """Describe the replay."""
    return describe_launch(ARGUMENTS, start_player)
