"""Assembles the messages of one stamp into a frame, and acknowledges it to the bridge."""

from collections import deque
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ContractError, errors_as
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.msg import FrameAck
from osmabench_ros.ros.messages import images, poses
from osmabench_ros.ros.qos import create_checked_subscription, frame_profile, lossless_profile

# Incomplete frames that are kept; older ones are given up and counted.
MAX_PENDING = 32


class FrameReceiver:
    """Subscribes to the camera and calls back with complete frames, in order of their stamps.

    Parameters
    ----------
    node : Node
        Owner of the subscriptions.
    on_frame : callable
        Gets each `Frame` once.
    lockstep : bool
        Keep all messages.
    ground_truth : bool
        Whether to subscribe to the semantic and instance images too.
    albedo : bool
        Whether to subscribe to the colours of the surfaces too.
    on_repeat : callable, optional
        Gets the stamp in nanoseconds of a frame that arrives again; a bridge repeats its first
        frame until it is acknowledged.
    on_restart : callable, optional
        Called before the first frame after a reset of the run, which plays the same frames again
        with the same stamps. Without it, frames that were seen before the reset count as repeated.
    """

    def __init__(
        self,
        node: Node,
        on_frame: Callable[[Frame], None],
        *,
        lockstep: bool,
        ground_truth: bool,
        albedo: bool = False,
        on_repeat: Callable[[int], None] | None = None,
        on_restart: Callable[[], None] | None = None,
    ) -> None:
        self._on_frame, self._on_repeat = on_frame, on_repeat
        self._on_restart = on_restart
        self.pending: dict[int, dict[str, Any]] = {}
        self._last_stamp_ns = -1
        self.frames = 0
        self.incomplete = 0
        types: dict[str, type[Any]] = {
            topics.COLOR: Image,
            topics.DEPTH: Image,
            topics.COLOR_INFO: CameraInfo,
            topics.CAMERA_POSE: PoseStamped,
        }
        if ground_truth:
            types |= {topics.SEMANTIC: Image, topics.INSTANCE: Image}
        if albedo:
            types[topics.ALBEDO] = Image
        self._needed = frozenset(types)
        self.subscriptions = [
            create_checked_subscription(
                node, kind, topic, self._collector(topic), frame_profile(lockstep=lockstep)
            )
            for topic, kind in types.items()
        ]

    def _collector(self, topic: str) -> Callable[[Any], None]:
        return lambda message: self.collect(topic, message)

    def collect(self, topic: str, message: Any) -> None:
        """Take a message, and give the frame on when it is complete."""
        stamp_ns = poses.stamp_from_message(message.header.stamp)
        # Each topic keeps its order, so after a complete frame nothing older can be under way.
        if stamp_ns < self._last_stamp_ns and self._on_restart is not None:
            self.pending.clear()
            self._last_stamp_ns, self.frames = -1, 0
            self._on_restart()
        if stamp_ns <= self._last_stamp_ns:
            if topic == topics.CAMERA_POSE and self._on_repeat is not None:
                self._on_repeat(stamp_ns)
            return
        parts = self.pending.setdefault(stamp_ns, {})
        parts[topic] = message
        if self._needed <= parts.keys():
            self._complete(stamp_ns, parts)
            return
        if len(self.pending) > MAX_PENDING:
            del self.pending[min(self.pending)]
            self.incomplete += 1

    def _complete(self, stamp_ns: int, parts: dict[str, Any]) -> None:
        older = [stamp for stamp in self.pending if stamp <= stamp_ns]
        self.incomplete += len(older) - 1
        for stamp in older:
            del self.pending[stamp]
        self._last_stamp_ns = stamp_ns
        frame = frame_from_messages(self.frames, stamp_ns, parts)
        self.frames += 1
        self._on_frame(frame)


def frame_from_messages(index: int, stamp_ns: int, parts: dict[str, Any]) -> Frame:
    """Return the frame that the messages of one stamp make; ContractError names the topic."""
    camera_pose = camera_pose_from_message(parts[topics.CAMERA_POSE])
    intrinsics = images.intrinsics_from_message(parts[topics.COLOR_INFO], topics.COLOR_INFO)
    pixels: dict[str, Any] = {
        name: images.image_from_message(parts[topic], topic, convert)
        for topic, (name, _, convert) in images.FRAME_IMAGES.items()
        if topic in parts
    }
    with errors_as(ContractError, 'camera topics', ValueError):
        return Frame(index, stamp_ns, camera_pose, intrinsics, **pixels)


def camera_pose_from_message(message: PoseStamped) -> Pose:
    """Return the pose of the optical frame in the world; raises ContractError if it is none."""
    if message.header.frame_id not in ('', topics.WORLD_FRAME):
        raise ContractError(
            f'topic "{topics.CAMERA_POSE}": frame_id is "{message.header.frame_id[:80]}", '
            f'must be "{topics.WORLD_FRAME}"'
        )
    return poses.pose_from_message(message.pose, topics.CAMERA_POSE)


WINDOW = 50


class RecentWork:
    """Rate and duration of the newest `window` pieces of work, such as frames."""

    def __init__(self, window: int = WINDOW) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=window)
        # All pieces ever.
        self.count = 0

    def add(self, duration_s: float, now_s: float) -> None:
        """Count a piece of work that ended now, by a steady clock."""
        self._recent.append((now_s, duration_s))
        self.count += 1

    def rate_hz(self, now_s: float) -> float:
        """Return pieces per second up to now, so that the rate falls while there is no work."""
        if len(self._recent) < 2:
            return 0.0
        first_s = self._recent[0][0]
        last_s = self._recent[-1][0]
        mean_gap_s = (last_s - first_s) / (len(self._recent) - 1)
        gap_s = max(mean_gap_s, now_s - last_s)
        return 1.0 / gap_s if gap_s > 0 else 0.0

    def values(self, now_s: float) -> dict[str, float]:
        """Return the values by their names in diagnostics; durations only if there was work."""
        durations = [duration for _, duration in self._recent]
        if not durations:
            return {'rate_hz': 0.0}
        return {
            'rate_hz': self.rate_hz(now_s),
            'processing_time_mean_s': sum(durations) / len(durations),
            'processing_time_max_s': max(durations),
        }


# Frame index of a participant that does not count.
UNCOUNTED = 2**32 - 1


class Acknowledger:
    """Publishes `frame_ack` for a participant."""

    def __init__(self, node: Node, participant: str) -> None:
        self._participant = participant
        self._publisher = node.create_publisher(FrameAck, topics.FRAME_ACK, lossless_profile())

    def acknowledge(
        self,
        stamp_ns: int,
        *,
        frame_index: int = UNCOUNTED,
        processing_time_s: float = 0.0,
        mapped: bool = True,
    ) -> None:
        """Acknowledge the frame of a stamp; harmless if it was acknowledged before."""
        message = FrameAck(
            participant=self._participant,
            frame_index=frame_index,
            processing_time=poses.duration_to_message(processing_time_s),
            mapped=mapped,
        )
        message.header.stamp = poses.stamp_to_message(stamp_ns)
        self._publisher.publish(message)
