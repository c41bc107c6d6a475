"""Plays a bag or a sequence through its topics, or scores the map that a bag holds."""

import sys
from pathlib import Path
from typing import Any

from launch.actions import ExecuteProcess, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launching.launch_interrupts import error_if_interrupted, interrupts

# Before what takes long to load: Ctrl-C meanwhile is an error too.
interrupts.install()

from osmabench_ros.base.contract import BAG_PLAYER
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
    make_arguments,
    make_settings,
)
from osmabench_ros.bringup.launching.launch_nodes import end_launch, launch_nodes
from osmabench_ros.bringup.spec.definition import sequence_player
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.sequences.bags.bag_metadata import is_bag
from osmabench_ros.sequences.bags.playback import PlaybackSettings

ARGUMENTS = (
    Argument('bag', None, 'Folder of a bag, an .mcap or .db3 file; or folder of a sequence'),
    Argument('mode', 'topics', 'Play it, or score its map', str, ('topics', 'evaluate')),
    *make_arguments(PlaybackSettings, 'rate start_s duration_s loop paused clock topics'),
    Argument('remappings', '{}', 'From topics of the bag to others, a YAML mapping', dict),
    Argument('map_topic', '', 'mode:=evaluate: topic of the map, if the bag has several'),
    Argument('ground_truth', '', 'mode:=evaluate: ground truth; empty: reference-free'),
    Argument('out', 'evaluation', 'mode:=evaluate: folder of the report'),
)


def start(_context: LaunchContext, given: dict[str, Any]) -> list[LaunchDescriptionEntity]:
    """Start what the arguments ask for; a bag ends the launch, a sequence waits for Ctrl-C."""
    bag = str(Path(given['bag']).absolute())
    if given['mode'] == 'evaluate':
        return evaluation(bag, given)
    if Path(bag).is_dir() and not is_bag(Path(bag)):
        player = sequence_player(Path(bag), given)
        return launch_nodes([player], end_launch, remappings=given['remappings'])
    settings = make_settings(PlaybackSettings, {**given, 'bag': bag})
    player = NodeSpec(BAG_PLAYER, 'bag_player_node', settings, ends_run=True)
    return launch_nodes([player], end_launch, remappings=given['remappings'])


def evaluation(bag: str, given: dict[str, str]) -> list[LaunchDescriptionEntity]:
    """Return what scores the map of a bag and ends with the verdict."""
    options = {
        '--map-topic': given['map_topic'],
        '--ground-truth': given['ground_truth'],
        '--out': given['out'],
    }
    arguments = [item for name, text in options.items() if text for item in (name, text)]
    command = [sys.executable, '-m', 'osmabench_ros.cli', 'bag', 'evaluate', bag, *arguments]
    process = ExecuteProcess(cmd=command, name='evaluate', output='screen')

    over = False

    def on_exit(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
        nonlocal over
        if context.is_shutdown or interrupts.heard:
            return []
        over = True
        return end_launch(event.returncode)

    handler = RegisterEventHandler(OnProcessExit(target_action=process, on_exit=on_exit))
    return [*error_if_interrupted(lambda: over), handler, process]


def generate_launch_description() -> LaunchDescription:
    """Describe the replay."""
    return describe_launch(ARGUMENTS, start)
