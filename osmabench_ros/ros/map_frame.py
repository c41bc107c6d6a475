"""Where the map of a stack lies in the world by TF; says early where that is not known."""

from __future__ import annotations

import time

from rclpy.node import Node

from osmabench_ros.errors import ParticipantError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.transformation import transformed_map
from osmabench_ros.ros.topics import WORLD_FRAME
from osmabench_ros.ros.transform_history import TF_TYPE, TransformHistory

PATIENCE_S = 2.0
"""Transforms may come after the first map: a publisher of TF speaks once a second or oftener."""

MOST_NAMED = 20
"""Frames, in a message."""


class MapFrame:
    """Finds the frame of a map in the world.

    With `is_world` it is taken for the world where TF says nothing.
    """

    def __init__(self, node: Node, topic: str, *, is_world: bool) -> None:
        self._node, self._topic, self._is_world = node, topic, is_world
        self._transforms = TransformHistory(node)
        self._since_s: float | None = None
        self._trouble = ''

    def look(self, frame: str) -> str:
        """Return why a frame that maps come in cannot be placed, '' if it can; logs it once."""
        now_s = time.monotonic()
        self._since_s = self._since_s or now_s
        known = frame == WORLD_FRAME or self._transforms.connects(WORLD_FRAME, frame)
        if known or self._is_world:
            if self._trouble:
                self._node.get_logger().info(f'TF connects "{frame}" with "{WORLD_FRAME}" now')
            self._trouble = ''
        elif not self._trouble and now_s - self._since_s > PATIENCE_S:
            self._trouble = self._unknown(frame)
            self._node.get_logger().warning(f'{self._trouble}; without it the map is not scored')
        return self._trouble

    def placed(self, made: SemanticMap) -> SemanticMap:
        """Return a map in the world.

        Raises ParticipantError if TF does not say where its frame is, ContractError if two nodes
        say where one frame lies.
        """
        frame = made.header.frame_id
        if frame == WORLD_FRAME:
            return made
        pose = self._transforms.lookup(WORLD_FRAME, frame, made.header.stamp_ns)
        if pose is None and not self._is_world:
            raise ParticipantError(self._unknown(frame))
        by = Similarity.identity() if pose is None else Similarity(pose)
        return transformed_map(made, by, WORLD_FRAME)

    def _unknown(self, frame: str) -> str:
        heard = ', '.join(self._transforms.frames[:MOST_NAMED]) or 'no frame'
        if not self._transforms.available:
            heard = f'nothing, as {TF_TYPE} is not installed'
        return (
            f'topic "{self._topic}" is in frame "{frame}", and TF does not say where that is in '
            f'"{WORLD_FRAME}" (it knows {heard}); publish that transform, or set '
            'map_frame_is_world if the two are one frame'
        )
