"""Hears from participants that they are done with frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from osmabench_ros.msg import FrameAck
from osmabench_ros.ros import topics
from osmabench_ros.ros.checked_subscription import deserialize_checked
from osmabench_ros.ros.lifecycle import BenchmarkNode
from osmabench_ros.ros.participant_statistics import Acknowledgement
from osmabench_ros.ros.participants import Participant
from osmabench_ros.ros.qos import lossless_profile
from osmabench_ros.ros.run_token import TokenCheck
from osmabench_ros.ros.stamps import SECOND_NS, duration_from_message, stamp_from_message

AT_ONCE = 1000
"""Acknowledgements before timers and services have their turn."""


class AckListener:
    """Subscribes to `frame_ack`, and takes those of participants that are declared to send it.

    They sign with the run token, or are declared unsigned. `on_ack` gets each acknowledgement and
    how many seconds ago it arrived: it may have waited while a frame was rendered. What is no
    acknowledgement is a failure of the node.
    """

    def __init__(
        self,
        node: BenchmarkNode,
        participants: Iterable[Participant],
        on_ack: Callable[[Acknowledgement, float], None],
    ) -> None:
        self._on_ack = on_ack
        acking = [item for item in participants if item.acks]
        self._names = frozenset(item.name for item in acking)
        self._check = TokenCheck(node, unsigned=[item.name for item in acking if not item.signs])
        take = node.guarded(self._take_all)
        self._subscription = node.create_subscription(
            FrameAck,
            topics.FRAME_ACK,
            # rclpy gives the time of arrival to a callback that takes two arguments.
            lambda data, info: take(data, info),
            lossless_profile(),
            raw=True,
        )

    @property
    def ignored(self) -> int:
        """Acknowledgements that lacked the signature of the run token."""
        return self._check.count

    def _take_all(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Take what has arrived besides, too: an executor takes one a round, and floods exist."""
        self._take(data, info)
        for _ in range(AT_ONCE):
            handle = self._subscription.handle
            with handle:
                taken = handle.take_message(FrameAck, True)
            if taken is None:
                return
            self._take(*taken)

    def _take(self, data: bytes, info: Mapping[str, Any]) -> None:
        message = deserialize_checked(data, FrameAck, topics.FRAME_ACK)
        if message.participant not in self._names:
            return
        if not self._check.accepts(topics.FRAME_ACK, message, message.participant):
            return
        word = Acknowledgement(
            message.participant,
            stamp_from_message(message.header.stamp),
            duration_from_message(message.processing_time),
            message.mapped,
        )
        self._on_ack(word, age_s(info.get('received_timestamp') or 0, time.time_ns()))


def age_s(received_ns: int, now_ns: int) -> float:
    """Return how many seconds of system time ago something arrived, at least 0.

    `received_ns` is 0 where the middleware does not say, and then it has just arrived.
    """
    return max(now_ns - received_ns, 0) / SECOND_NS if received_ns > 0 else 0.0
