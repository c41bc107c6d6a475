"""Names of the nodes of a run; needs no ROS."""

from __future__ import annotations

BRIDGE = 'simulator_bridge'
MAPPER = 'mapper'
"""Node and participant that publishes the map, whatever the method."""
RECORDER = 'map_recorder'
EVALUATOR = 'evaluator'
BAG_RECORDER = 'bag_recorder'
BAG_PLAYER = 'bag_player'
