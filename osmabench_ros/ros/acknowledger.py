"""Acknowledges to the bridge that a participant is done with a frame."""

from __future__ import annotations

from rclpy.node import Node

from osmabench_ros.msg import FrameAck
from osmabench_ros.ros import topics
from osmabench_ros.ros.qos import lossless_profile
from osmabench_ros.ros.run_token import RunToken
from osmabench_ros.ros.stamps import duration_to_message, stamp_to_message

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
