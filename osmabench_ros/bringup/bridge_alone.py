"""The bridge without a run around it, for stacks that are started separately."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osmabench_ros.bringup.node_spec import NodeSpec
from osmabench_ros.errors import ConfigError
from osmabench_ros.ros.node_names import BRIDGE as BRIDGE
from osmabench_ros.ros.transform_settings import TfSettings


def bridge_alone(values: Mapping[str, Any]) -> NodeSpec:
    """Return the bridge with parameters from launch arguments, `participants` separated by commas.

    Raises ConfigError if `transforms` and `publish_tf` contradict each other.
    """
    participants = [item.strip() for item in values['participants'].split(',')]
    tf = TfSettings.from_parameters(values).parameters()
    return NodeSpec(
        BRIDGE,
        'simulator_bridge_node',
        {**values, **tf, 'run_id': BRIDGE, 'participants': participants},
        participant=False,
        ends_run=True,
    )


ONLY_FOR_BAGS = {'start_s': 0.0, 'duration_s': 0.0, 'loop': False, 'clock': True, 'topics': ''}
"""What can be said of the play of a bag alone, with what says nothing."""


def sequence_player(sequence: Path, values: Mapping[str, Any]) -> NodeSpec:
    """Return the bridge that plays a recorded sequence, no bag, once.

    It takes `rate` and `paused`; raises ConfigError if something is set that only bags have.
    """
    for name, default in ONLY_FOR_BAGS.items():
        if values[name] != default:
            raise ConfigError(f'{name}:={values[name]} is for bags; {sequence} is a sequence')
    settings = {
        'sequence': str(sequence),
        'pacing': 'realtime',
        'speed_factor': values['rate'],
        'start_paused': values['paused'],
        'participants': '',
        **TfSettings().parameters(),
    }
    return bridge_alone(settings)
