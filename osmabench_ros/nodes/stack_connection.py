"""The connection to a third-party stack: its map, the service that completes it, its frame."""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from osmabench_ros import errors
from osmabench_ros.base.contract import TF, TF_STATIC, TF_TYPE, WORLD_FRAME
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.transform_tree import TransformTree
from osmabench_ros.mappers.live_method import way_up
from osmabench_ros.maps.announced_map import MAX_PAYLOAD_BYTES
from osmabench_ros.maps.semantic_map import SemanticMap, transform_map
from osmabench_ros.ros.messages.message_definitions import interface_class
from osmabench_ros.ros.qos import create_checked_subscription, profile_for_recording, tf_profile
from osmabench_ros.sequences.topics import read_transforms

_TIME = 'builtin_interfaces/Time'


def content_digest(message: Any) -> bytes:
    """Return a digest of all fields but times, equal for the same map published again."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, message)
    return digest.digest()


def _feed(digest: Any, value: Any) -> None:
    if hasattr(value, 'get_fields_and_field_types'):
        for name, kind in value.get_fields_and_field_types().items():
            if kind != _TIME:
                _feed(digest, getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            _feed(digest, item)
    else:
        # Arrays of numbers, and with them nearly all bytes of a map, are buffers.
        digest.update(value if hasattr(value, 'itemsize') else repr(value).encode())


@dataclass
class MatchedSubscription:
    """A subscription that `try_subscribe`, called by a timer, makes once there is a publisher."""

    node: Node
    message_type: type[Any]
    type_name: str
    topic: str
    callback: Callable[[Any], None]
    _subscription: Subscription | None = field(default=None, init=False)

    @property
    def matched(self) -> bool:
        """Whether there was a publisher when `try_subscribe` was called, even if it is gone."""
        return self._subscription is not None

    def try_subscribe(self) -> None:
        """Subscribe if there is a publisher by now; ContractError if it publishes another type."""
        topic = self.node.resolve_topic_name(self.topic)
        publishers = self.node.get_publishers_info_by_topic(topic)
        if self._subscription is not None or not publishers:
            return
        for info in publishers:
            if info.topic_type != self.type_name:
                found = f'node {info.node_name} publishes {info.topic_type}, not {self.type_name}'
                raise errors.ContractError(f'topic "{topic}": {found}; correct its type')
        self._subscription = create_checked_subscription(
            self.node,
            self.message_type,
            topic,
            self.callback,
            profile_for_recording([info.qos_profile for info in publishers]),
            max_bytes=MAX_PAYLOAD_BYTES,
        )


class FinishCall:
    """One call of a service without waiting in a callback; it has `timeout_s` to answer."""

    def __init__(
        self,
        node: Node,
        service: str,
        type_name: str,
        request: Mapping[str, Any],
        timeout_s: float,
    ) -> None:
        kind = interface_class(type_name)
        if kind is None:
            why = f'has type {type_name}, which is not installed; build or source its package'
            raise errors.MissingDependencyError(f'service "{service}" {why}')
        problem = f'service "{service}": the request is wrong'
        with errors.errors_as(
            errors.ConfigError, problem, AssertionError, TypeError, AttributeError
        ):
            self._request = kind.Request(**request)
        self._node = node
        self._service = service
        self._timeout_s = timeout_s
        self._client = node.create_client(kind, service)
        self._answer: Any = None
        self._started_s: float | None = None
        # Whether the stack has answered, and did not say that it failed.
        self.answered = False

    def poll(self) -> bool:
        """Send the call once the service is there; return whether it was answered.

        ParticipantError if the stack says that it failed, or is late.
        """
        if self._started_s is None:
            self._started_s = time.monotonic()
        if self._answer is None and self._client.service_is_ready():
            self._answer = self._client.call_async(self._request)
        if self._answer is not None and self._answer.done():
            response = self._answer.result()
            if getattr(response, 'success', True) is False:
                reason = getattr(response, 'message', '') or 'no reason given'
                raise errors.ParticipantError(f'service "{self._service}" failed: {reason}')
            self.close()
            self.answered = True
            return True
        if time.monotonic() - self._started_s > self._timeout_s:
            what = 'is not there' if self._answer is None else 'gave no answer'
            late = f'{what} within {self._timeout_s:g} s; see the log of the stack'
            raise errors.ParticipantError(f'service "{self._service}" {late}')
        return False

    def close(self) -> None:
        """Drop the call; a later answer is ignored."""
        self._node.destroy_client(self._client)


# Of 10 transforms per message at 20 Hz, the last 1000 s; maps are not older.
MAX_MOVING = 200_000

# Static transforms, and frames of all transforms.
MAX_STATIC = 10_000

MAX_TF_BYTES = 2**20


class TransformHistory:
    """Keeps the transforms of a run; empty if tf2_msgs is not installed."""

    def __init__(self, node: Node) -> None:
        self.messages: deque[tuple[str, Any]] = deque()
        self._kept = self._kept_static = 0
        self.static: dict[tuple[tuple[str, str], ...], Any] = {}
        self._parents: dict[str, str] = {}
        message_type = interface_class(TF_TYPE)
        if message_type is None:
            return
        for topic, callback in ((TF, self.on_moving), (TF_STATIC, self.on_static)):
            profile = tf_profile(static=topic == TF_STATIC)
            create_checked_subscription(
                node, message_type, topic, callback, profile, max_bytes=MAX_TF_BYTES
            )

    def on_moving(self, message: Any) -> None:
        """Keep transforms that change, only the newest messages."""
        self._connect(message)
        self.messages.append((TF, message))
        self._kept += len(message.transforms)
        while self._kept > MAX_MOVING or len(self.messages) > MAX_MOVING:
            self._kept -= len(self.messages.popleft()[1].transforms)

    def on_static(self, message: Any) -> None:
        """Keep the last message of each set of static edges."""
        # Some nodes repeat their edges every second; the newest transform of an edge counts.
        edges = tuple((item.header.frame_id, item.child_frame_id) for item in message.transforms)
        if edges not in self.static:
            self._kept_static += len(edges) or 1
        if self._kept_static > MAX_STATIC:
            problem = f'more than {MAX_STATIC} transforms; find out who publishes so many frames'
            raise errors.ContractError(f'topic "{TF_STATIC}": {problem}')
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

    def look_up(self, parent: str, child: str, stamp_ns: int) -> Pose | None:
        """Return the pose of `child` in `parent` at the stamp, None if unknown.

        It is the last known one where the stamp is newer than TF.
        """
        static = ((TF_STATIC, message) for message in self.static.values())
        tree = TransformTree(read_transforms([*static, *self.messages]))
        return tree.look_up_or_last(parent, child, stamp_ns)


# Transforms may come after the first map: a publisher of TF speaks once per second or more often.
PATIENCE_S = 2.0

# Names of frames in an error.
MAX_NAMED = 20


class MapFrame:
    """Finds the pose of the frame of a map in the world.

    With `is_world` they are one frame, unless TF has a pose.
    """

    def __init__(self, node: Node, topic: str, *, is_world: bool) -> None:
        self._node = node
        self._topic = topic
        self._is_world = is_world
        self.transforms = TransformHistory(node)
        self._since_s: float | None = None
        self._trouble = ''

    def check(self, frame: str) -> str:
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

    def place_in_world(self, made: SemanticMap) -> SemanticMap:
        """Return a map in the world; ParticipantError if TF does not say where its frame is."""
        frame = made.header.frame_id
        if frame == WORLD_FRAME:
            return made
        pose = self.transforms.look_up(WORLD_FRAME, frame, made.header.stamp_ns)
        if pose is None and not self._is_world:
            raise errors.ParticipantError(self._unknown(frame))
        by = Similarity() if pose is None else Similarity(pose)
        return transform_map(made, by, WORLD_FRAME)

    def _unknown(self, frame: str) -> str:
        known = ', '.join(self.transforms.frames[:MAX_NAMED]) or 'no frame'
        if interface_class(TF_TYPE) is None:
            known = f'nothing, as {TF_TYPE} is not installed'
        return (
            f'topic "{self._topic}" is in frame "{frame}", and TF does not say where that is in '
            f'"{WORLD_FRAME}" (it knows {known}); publish that transform, or set '
            'map_frame_is_world if the two are one frame'
        )
