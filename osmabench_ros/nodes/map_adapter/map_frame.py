"""Pose of a stack's map in the world by TF, with an early warning if it is unknown."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from rclpy.node import Node

from osmabench_ros.base.contract import TF, TF_STATIC, TF_TYPE, WORLD_FRAME
from osmabench_ros.errors import ContractError, ParticipantError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.mappers.transform_edges import way_up
from osmabench_ros.maps.semantic_map import SemanticMap, transformed_map
from osmabench_ros.ros.messages.message_definitions import interface_class
from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
from osmabench_ros.ros.wire.qos import tf_profile
from osmabench_ros.sequences.pose_topics import transform_tree_of

KEPT = 200_000
"""Transforms; ten in a message last a quarter of an hour at 20 Hz, as old as a map may be."""

MAX_STATIC = 10_000
"""Transforms of frames that do not move."""

MAX_TF_BYTES = 2**20


class TransformHistory:
    """Keeps the transforms of a run; empty if tf2_msgs is not installed."""

    def __init__(self, node: Node) -> None:
        self.messages: deque[tuple[str, Any]] = deque()
        self._kept = self._kept_static = 0
        self.static: dict[tuple[tuple[str, str], ...], Any] = {}
        self._parents: dict[str, str] = {}
        message_type = interface_class(TF_TYPE)
        self.available = message_type is not None
        if message_type is None:
            return
        create_checked_subscription(
            node,
            message_type,
            TF,
            self.on_moving,
            tf_profile(static=False),
            max_bytes=MAX_TF_BYTES,
        )
        create_checked_subscription(
            node,
            message_type,
            TF_STATIC,
            self.on_static,
            tf_profile(static=True),
            max_bytes=MAX_TF_BYTES,
        )

    def on_moving(self, message: Any) -> None:
        """Keep transforms that change, the newest messages alone."""
        self._connect(message)
        self.messages.append((TF, message))
        self._kept += len(message.transforms)
        while self._kept > KEPT or len(self.messages) > KEPT:
            self._kept -= len(self.messages.popleft()[1].transforms)

    def on_static(self, message: Any) -> None:
        """Keep static transforms, the last of each frame."""
        # Some nodes repeat their edges every second; the newest transform of an edge counts.
        edges = tuple((item.header.frame_id, item.child_frame_id) for item in message.transforms)
        if edges not in self.static:
            self._kept_static += len(edges) or 1
        if self._kept_static > MAX_STATIC:
            raise ContractError(
                f'topic "{TF_STATIC}": more than {MAX_STATIC} transforms; find out who publishes '
                'frames without end'
            )
        self._connect(message)
        self.static[edges] = message

    def _connect(self, message: Any) -> None:
        for item in message.transforms:
            child = item.child_frame_id.lstrip('/')
            if child in self._parents or len(self._parents) < MAX_STATIC:
                self._parents[child] = item.header.frame_id.lstrip('/')

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the known frames, sorted."""
        return tuple(sorted({*self._parents, *self._parents.values()}))

    def connects(self, parent: str, child: str) -> bool:
        """Return whether two frames are in one tree, at any time."""
        try:
            return way_up(parent, self._parents)[-1] == way_up(child, self._parents)[-1]
        except ValueError:
            return False

    def lookup(self, parent: str, child: str, stamp_ns: int) -> Pose | None:
        """Return the last known pose of a frame in another at a time, None if unknown."""
        static = ((TF_STATIC, message) for message in self.static.values())
        tree = transform_tree_of([*static, *self.messages])
        return tree.lookup_or_last(parent, child, stamp_ns)


PATIENCE_S = 2.0
"""Transforms may come after the first map: a publisher of TF speaks once a second or oftener."""

MOST_NAMED = 20
"""Frames, in a message."""


class MapFrame:
    """Finds the frame of a map in the world; with `is_world` it is that where TF says nothing."""

    def __init__(self, node: Node, topic: str, *, is_world: bool) -> None:
        self._node, self._topic, self._is_world = node, topic, is_world
        self.transforms = TransformHistory(node)
        self._since_s: float | None = None
        self._trouble = ''

    def look(self, frame: str) -> str:
        """Return why a map frame cannot be placed in the world, '' if it can; logs it once."""
        now_s = time.monotonic()
        self._since_s = self._since_s or now_s
        known = frame == WORLD_FRAME or self.transforms.connects(WORLD_FRAME, frame)
        if known or self._is_world:
            if self._trouble:
                self._node.get_logger().info(f'TF connects "{frame}" with "{WORLD_FRAME}" now')
            self._trouble = ''
        elif not self._trouble and now_s - self._since_s > PATIENCE_S:
            self._trouble = self._unknown(frame)
            self._node.get_logger().warning(f'{self._trouble}; without it the map is not scored')
        return self._trouble

    def placed(self, made: SemanticMap) -> SemanticMap:
        """Return a map in the world; ParticipantError if TF does not say where its frame is."""
        frame = made.header.frame_id
        if frame == WORLD_FRAME:
            return made
        pose = self.transforms.lookup(WORLD_FRAME, frame, made.header.stamp_ns)
        if pose is None and not self._is_world:
            raise ParticipantError(self._unknown(frame))
        by = Similarity.identity() if pose is None else Similarity(pose)
        return transformed_map(made, by, WORLD_FRAME)

    def _unknown(self, frame: str) -> str:
        heard = ', '.join(self.transforms.frames[:MOST_NAMED]) or 'no frame'
        if not self.transforms.available:
            heard = f'nothing, as {TF_TYPE} is not installed'
        return (
            f'topic "{self._topic}" is in frame "{frame}", and TF does not say where that is in '
            f'"{WORLD_FRAME}" (it knows {heard}); publish that transform, or set '
            'map_frame_is_world if the two are one frame'
        )
