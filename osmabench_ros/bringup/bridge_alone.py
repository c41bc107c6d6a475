"""The bridge without a run around it, for stacks that are started by somebody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osmabench_ros.bringup.node_spec import NodeSpec

BRIDGE = 'simulator_bridge'


def bridge_alone(values: Mapping[str, Any]) -> NodeSpec:
    """Return the bridge with parameters from launch arguments.

    Parameters
    ----------
    values : mapping
        Parameters of the node by name, but `participants` as one string, separated by commas.
    """
    participants = [item.strip() for item in values['participants'].split(',')]
    return NodeSpec(
        BRIDGE,
        'simulator_bridge_node',
        {**values, 'run_id': BRIDGE, 'participants': participants},
        participant=False,
        ends_run=True,
    )
