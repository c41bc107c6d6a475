"""What /tf and /tf_static said so far, without tf2."""

from __future__ import annotations

from collections import deque
from typing import Any

from rclpy.node import Node

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.transform_edges import way_up
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.interfaces import interface_class
from osmabench_ros.ros.qos import tf_profile
from osmabench_ros.sequences.pose_topics import transform_tree_of

TF_TYPE = 'tf2_msgs/msg/TFMessage'
TF, TF_STATIC = '/tf', '/tf_static'
KEPT = 200_000
"""Transforms; ten in a message last a quarter of an hour at 20 Hz, as old as a map may be."""

MAX_STATIC = 10_000
"""Transforms of frames that do not move."""

MAX_TF_BYTES = 2**20


class TransformHistory:
    """Keeps the transforms of a run; empty where tf2_msgs is not installed."""

    def __init__(self, node: Node) -> None:
        self._messages: deque[tuple[str, Any]] = deque()
        self._kept = self._kept_static = 0
        self._static: dict[tuple[tuple[str, str], ...], Any] = {}
        self._parents: dict[str, str] = {}
        message_type = interface_class(TF_TYPE)
        self.available = message_type is not None
        if message_type is None:
            return
        create_checked_subscription(
            node,
            message_type,
            TF,
            self._on_moving,
            tf_profile(static=False),
            max_bytes=MAX_TF_BYTES,
        )
        create_checked_subscription(
            node,
            message_type,
            TF_STATIC,
            self._on_static,
            tf_profile(static=True),
            max_bytes=MAX_TF_BYTES,
        )

    def _on_moving(self, message: Any) -> None:
        self._connect(message)
        self._messages.append((TF, message))
        self._kept += len(message.transforms)
        while self._kept > KEPT or len(self._messages) > KEPT:
            self._kept -= len(self._messages.popleft()[1].transforms)

    def _on_static(self, message: Any) -> None:
        # Some publish theirs every second; of the same edges the newest word counts.
        edges = tuple((item.header.frame_id, item.child_frame_id) for item in message.transforms)
        if edges not in self._static:
            self._kept_static += len(edges) or 1
        if self._kept_static > MAX_STATIC:
            raise ContractError(
                f'topic "{TF_STATIC}": more than {MAX_STATIC} transforms; find out who publishes '
                'frames without end'
            )
        self._connect(message)
        self._static[edges] = message

    def _connect(self, message: Any) -> None:
        for item in message.transforms:
            child = item.child_frame_id.lstrip('/')
            if child in self._parents or len(self._parents) < MAX_STATIC:
                self._parents[child] = item.header.frame_id.lstrip('/')

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames that were heard of, sorted."""
        return tuple(sorted({*self._parents, *self._parents.values()}))

    def connects(self, parent: str, child: str) -> bool:
        """Return whether two frames are in one tree, whenever that was said."""
        try:
            return way_up(parent, self._parents)[-1] == way_up(child, self._parents)[-1]
        except ValueError:
            return False

    def lookup(self, parent: str, child: str, stamp_ns: int) -> Pose | None:
        """Return the pose of a frame in another at a time, None if no transform says it.

        Where the time is beyond what was said, the last pose still holds. Raises ContractError if
        two nodes say where one frame lies.
        """
        static = ((TF_STATIC, message) for message in self._static.values())
        tree = transform_tree_of([*static, *self._messages])
        return tree.lookup_or_last(parent, child, stamp_ns)
