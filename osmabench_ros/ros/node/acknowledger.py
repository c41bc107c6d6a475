"""Acknowledges frames to the bridge when a participant is done with them."""

from __future__ import annotations

from collections import deque

from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.msg import FrameAck
from osmabench_ros.ros.messages.poses import duration_to_message, stamp_to_message
from osmabench_ros.ros.wire.qos import lossless_profile
from osmabench_ros.ros.wire.run_token import RunToken

WINDOW = 50


class RecentWork:
    """Rate and duration of the newest `window` pieces of work, such as frames."""

    def __init__(self, window: int = WINDOW) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=window)
        self.count = 0
        """All pieces ever."""

    def add(self, duration_s: float, now_s: float) -> None:
        """Count a piece of work that ended now, by a steady clock."""
        self._recent.append((now_s, duration_s))
        self.count += 1

    def rate_hz(self, now_s: float) -> float:
        """Return pieces per second up to now, so that the rate falls while there is no work."""
        if len(self._recent) < 2:
            return 0.0
        first_s, last_s = self._recent[0][0], self._recent[-1][0]
        mean_gap_s = (last_s - first_s) / (len(self._recent) - 1)
        gap_s = max(mean_gap_s, now_s - last_s)
        return 1.0 / gap_s if gap_s > 0 else 0.0

    def values(self, now_s: float) -> dict[str, float]:
        """Return the figures by their names in diagnostics; durations only if there was work."""
        durations = [duration for _, duration in self._recent]
        if not durations:
            return {'rate_hz': 0.0}
        return {
            'rate_hz': self.rate_hz(now_s),
            'processing_time_mean_s': sum(durations) / len(durations),
            'processing_time_max_s': max(durations),
        }


UNCOUNTED = 2**32 - 1
"""Frame index of a participant that does not count."""


class Acknowledger:
    """Publishes `frame_ack` for one participant, signed with the token of the run if it has one.

    Parameters
    ----------
    node : Node
        Owner of the publisher.
    participant : str
        Name as the run declares it.
    """

    def __init__(self, node: Node, participant: str) -> None:
        self._participant = participant
        self._token = RunToken()
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
            processing_time=duration_to_message(processing_time_s),
            mapped=mapped,
        )
        message.header.stamp = stamp_to_message(stamp_ns)
        self._token.sign(message)
        self._publisher.publish(message)
