"""Acknowledgements of participants: received and counted; detects restarted participants."""

import time
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ParticipantError
from osmabench_ros.msg import FrameAck, ParticipantState
from osmabench_ros.ros.messages.poses import SECOND_NS, duration_from_message, stamp_from_message
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.participants import DeclaredParticipant, whereabouts
from osmabench_ros.ros.qos import deserialize_checked, full_name, lossless_profile

NAN = float('nan')
# Of the seconds from publication to acknowledgement, by field of the message.
LATENCY_PERCENTILES = {'latency_p50': 50, 'latency_p95': 95, 'latency_p99': 99, 'latency_max': 100}


@dataclass(frozen=True)
class Acknowledgement:
    """A participant's acknowledgement of a frame; its processing time is 0 if it gives none."""

    participant: str
    stamp_ns: int
    processing_time_s: float = 0.0
    mapped: bool = True


class _Tally:
    """Sums of one participant."""

    def __init__(self) -> None:
        self.frames: set[int] = set()
        self.newest = -1
        self.mapped = 0
        self.latencies_s = array('d')
        self.processing_s = array('d')

    def add(self, frame: int, latency_s: float, ack: Acknowledgement) -> None:
        self.frames.add(frame)
        self.newest = max(self.newest, frame)
        self.mapped += ack.mapped
        self.latencies_s.append(latency_s)
        if ack.processing_time_s > 0:
            self.processing_s.append(ack.processing_time_s)

    def state(self, participant: str) -> ParticipantState:
        latencies = np.frombuffer(self.latencies_s) if self.latencies_s else np.array([np.nan])
        percentiles = np.percentile(latencies, list(LATENCY_PERCENTILES.values())).tolist()
        return ParticipantState(
            participant=participant,
            frames_acknowledged=len(self.frames),
            frames_mapped=self.mapped,
            frames_dropped=self.newest + 1 - len(self.frames),
            processing_time_mean=np.mean(self.processing_s).item() if self.processing_s else NAN,
            **dict(zip(LATENCY_PERCENTILES, percentiles, strict=True)),
        )


class ParticipantStatistics:
    """Accumulates the acknowledgements of published frames by participant."""

    def __init__(self, participants: Iterable[str]) -> None:
        self._tallies = {name: _Tally() for name in participants}
        self._published: dict[int, tuple[int, float]] = {}

    def publish(self, stamp_ns: int, now_s: float) -> None:
        """Note when (steady time) a frame was published; latency counts from the last time."""
        frame, _ = self._published.get(stamp_ns, (len(self._published), 0.0))
        self._published[stamp_ns] = (frame, now_s)

    def receive(self, ack: Acknowledgement, now_s: float) -> bool:
        """Take an acknowledgement at a steady time; return whether it says anything new."""
        tally = self._tallies.get(ack.participant)
        published = self._published.get(ack.stamp_ns)
        if tally is None or published is None or published[0] in tally.frames:
            return False
        frame, left_s = published
        tally.add(frame, max(now_s - left_s, 0.0), ack)
        return True

    def states(self) -> list[ParticipantState]:
        """Return the statistics so far, in the order of declaration; unknown times are NaN."""
        return [tally.state(name) for name, tally in self._tallies.items()]


# A topic that every node publishes throughout its life.
OF_EVERY_NODE = '/parameter_events'


class RestartWatch:
    """Remembers the participants: one that restarts has forgotten frames, so that ends the run."""

    def __init__(self, node: Node, names: Iterable[str]) -> None:
        self._node = node
        self._names = {full: name for name in names for full in whereabouts(node, name)}
        self._known = self._look()

    def check(self, frames_published: int) -> None:
        """Raise ParticipantError if a participant was restarted or replaced."""
        for name, found in self._look().items():
            if not found <= self._known.setdefault(name, found):
                raise ParticipantError(
                    f'node "{name}" was started again after {frames_published} frames, which it '
                    'has forgotten, or another node has taken its name; repeat the run'
                )

    def _look(self) -> dict[str, set[tuple[int, ...]]]:
        """Return the DDS identities of the publishers of nodes, which change with a restart."""
        found: dict[str, set[tuple[int, ...]]] = {}
        for info in self._node.get_publishers_info_by_topic(OF_EVERY_NODE):
            name = self._names.get(full_name(info))
            if name is not None:
                found.setdefault(name, set()).add(tuple(info.endpoint_gid))
        return found


def listen_to_acks(
    node: BenchmarkNode[Any],
    participants: Iterable[DeclaredParticipant],
    on_ack: Callable[[Acknowledgement, float], None],
) -> None:
    """Take `frame_ack` of declared participants; `on_ack` gets each and its age in seconds."""
    names = frozenset(item.name for item in participants if item.acks)

    @node.guarded
    def take(data: bytes, info: Mapping[str, Any]) -> None:
        message = deserialize_checked(data, FrameAck, topics.FRAME_ACK)
        if message.participant not in names:
            return
        ack = Acknowledgement(
            message.participant,
            stamp_from_message(message.header.stamp),
            duration_from_message(message.processing_time),
            message.mapped,
        )
        on_ack(ack, age_s(info.get('received_timestamp') or 0, time.time_ns()))

    node.create_subscription(
        FrameAck,
        topics.FRAME_ACK,
        # rclpy gives the time of arrival to a callback that takes two arguments.
        lambda data, info: take(data, info),
        lossless_profile(),
        raw=True,
    )


def age_s(received_ns: int, now_ns: int) -> float:
    """Return how many seconds of system time ago something arrived; 0 where it is unknown."""
    return max(now_ns - received_ns, 0) / SECOND_NS if received_ns > 0 else 0.0
