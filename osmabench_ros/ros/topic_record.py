"""What was heard on a topic for a while: every message's times, a few whole messages."""

from __future__ import annotations

import struct
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from osmabench_ros.errors import ContractError
from osmabench_ros.ros.checked_subscription import deserialize_checked
from osmabench_ros.ros.endpoints import Endpoint, listening_profile
from osmabench_ros.ros.stamps import SECOND_NS

KEPT_BYTES = 64 * 2**20
"""Whole messages of a topic that are kept, the newest of them."""

DEPTH = 50


@dataclass
class TopicRecord:
    """What came on a topic; `messages` are the newest ones, deserialised.

    `received_ns` are of steady, `wall_ns` of system time; `stamps_ns` is empty without headers;
    `lost` counts messages that were published meanwhile and did not come here, by their numbers.
    """

    name: str
    message_type: type[Any]
    has_header: bool = True
    received_ns: list[int] = field(default_factory=list)
    stamps_ns: list[int] = field(default_factory=list)
    wall_ns: list[int] = field(default_factory=list)
    lost: int = 0
    messages: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def rate_hz(self) -> float:
        """Messages a second, 0 if fewer than three came."""
        if len(self.received_ns) < 3:
            return 0.0
        span_ns = self.received_ns[-1] - self.received_ns[0]
        return (len(self.received_ns) - 1) * SECOND_NS / span_ns if span_ns else 0.0


def header_stamp_ns(data: bytes) -> int:
    """Return the stamp that a serialised message starts with; ContractError if it is too short."""
    if len(data) < 12:
        raise ContractError(f'{len(data)} bytes are no message with a header')
    seconds, nanoseconds = struct.unpack_from('<iI' if data[1] & 1 else '>iI', data, 4)
    return int(seconds) * SECOND_NS + int(nanoseconds)


class TopicListener:
    """Fills a record from a raw subscription; nothing is deserialised before `finish`.

    At most `kept` whole messages are kept.
    """

    def __init__(self, node: Node, topic: str, message_type: type[Any], kept: int) -> None:
        fields = list(message_type.get_fields_and_field_types().values())
        self.record = TopicRecord(topic, message_type, fields[:1] == ['std_msgs/Header'])
        self._newest: deque[bytes] = deque(maxlen=kept)
        self._last_number: int | None = None
        self._node = node
        self._publishers: tuple[Endpoint, ...] = ()
        self._subscription: Subscription | None = None

    def listen(self, publishers: tuple[Endpoint, ...]) -> bool:
        """Hear these publishers from now on; return whether one of them is new."""
        new = any(item not in self._publishers for item in publishers)
        self._publishers = publishers
        if not new:
            return False
        self._last_number = None
        profile = listening_profile(publishers, DEPTH)
        if self._subscription is not None:
            if profile == self._subscription.qos_profile:
                return True
            self._node.destroy_subscription(self._subscription)
        self._subscription = self._node.create_subscription(
            self.record.message_type, self.record.name, self._take, profile, raw=True
        )
        return True

    def _take(self, data: bytes, info: dict[str, Any]) -> None:
        record = self.record
        record.received_ns.append(time.monotonic_ns())
        record.wall_ns.append(time.time_ns())
        number = info.get('publication_sequence_number')
        # With one publisher alone the numbers of its messages tell what is missing.
        if len(self._publishers) == 1 and number is not None:
            if self._last_number is not None:
                record.lost += max(number - self._last_number - 1, 0)
            self._last_number = number
        try:
            if record.has_header:
                record.stamps_ns.append(header_stamp_ns(data))
        except ContractError as error:
            record.errors.append(str(error))
            return
        self._newest.append(data)
        while len(self._newest) > 1 and sum(map(len, self._newest)) > KEPT_BYTES:
            self._newest.popleft()

    def finish(self) -> TopicRecord:
        """Read the messages that were kept."""
        for data in self._newest:
            try:
                self.record.messages.append(
                    deserialize_checked(data, self.record.message_type, self.record.name)
                )
            except ContractError as error:
                self.record.errors.append(str(error))
        self._newest.clear()
        return self.record
