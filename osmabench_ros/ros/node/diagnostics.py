"""Health of a node on /diagnostics, for diagnostic_aggregator and rqt_robot_monitor."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

import psutil
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.ros.qos import diagnostics_profile

PERIOD_S = 1.0
MEMORY_KEY = 'memory_bytes'


class Level(Enum):
    """Severity of a status."""

    OK = DiagnosticStatus.OK
    WARN = DiagnosticStatus.WARN
    ERROR = DiagnosticStatus.ERROR
    STALE = DiagnosticStatus.STALE


@dataclass(frozen=True)
class Health:
    """Health of a node; `values` have names with units, such as 'rate_hz'."""

    level: Level = Level.OK
    message: str = 'idle'
    values: Mapping[str, float | str] = field(default_factory=lambda: MappingProxyType({}))


class DiagnosticsPublisher:
    """Publishes the health and memory of a node every second, in every state of its lifecycle."""

    def __init__(self, node: Node, health: Callable[[], Health]) -> None:
        self._node, self._health = node, health
        self._process = psutil.Process()
        self._publisher = node.create_publisher(
            DiagnosticArray, topics.DIAGNOSTICS, diagnostics_profile()
        )
        # Of a separate group and clock, as neither a pause nor simulated time may silence it.
        node.create_timer(
            PERIOD_S,
            self.publish,
            callback_group=MutuallyExclusiveCallbackGroup(),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def publish(self) -> None:
        """Publish now."""
        health = self._health()
        values = {**health.values, MEMORY_KEY: self._process.memory_info().rss}
        status = DiagnosticStatus(
            level=health.level.value,
            name=f'{self._node.get_fully_qualified_name().lstrip("/")}: status',
            message=health.message,
            hardware_id=socket.gethostname(),
            values=[KeyValue(key=key, value=_text(value)) for key, value in values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)


def values_of(message: Any, node_name: str) -> dict[str, str]:
    """Return the values of a node of this package in a DiagnosticArray; {} without."""
    for status in message.status:
        if status.name.rsplit('/', 1)[-1] == f'{node_name}: status':
            return {item.key: item.value for item in status.values}
    return {}


def complaints_of(message: Any) -> dict[str, str]:
    """Return the problems in a DiagnosticArray by node, '' for nodes without one."""
    return {
        status.name.removesuffix(': status'): ''
        if status.level == DiagnosticStatus.OK
        else str(status.message)
        for status in message.status
    }


def _text(value: float | str) -> str:
    return f'{value:.6g}' if isinstance(value, float) else str(value)
