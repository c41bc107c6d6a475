"""One node of a run, however it is started."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from osmabench_ros.ros.node_names import MAPPER as MAPPER
from osmabench_ros.ros.transform_settings import TfSettings

PACKAGE = 'osmabench_ros'
METHOD = 'method'
"""Name of a foreign node or stack whose map an adapter called MAPPER publishes."""


@dataclass(frozen=True)
class NodeSpec:
    """A node with everything that the runner and the launch files need to start it.

    `executable` is a program in lib/osmabench_ros and a module in osmabench_ros.nodes, `command` a
    foreign program in its place. If that starts nodes with names of their own and takes no ROS
    arguments, `is_node` is False, and the bridge waits for `participants` by name.

    `topics` are those of a stack that have its map and pose, which a bag of the run holds too;
    `tf` is of the node that maps; `signs` with the token of the run; with `ends_run` its end is
    the end of the run and its exit code the verdict.
    """

    name: str
    executable: str = ''
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    command: tuple[str, ...] = ()
    managed: bool = True
    acks: bool = False
    participant: bool = True
    is_node: bool = True
    participants: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    tf: TfSettings = field(default_factory=TfSettings)
    signs: bool = True
    ends_run: bool = False

    def command_line(self, parameter_file: str) -> list[str]:
        """Return the arguments of a process of its own, with its parameters in a YAML file."""
        if not self.is_node:
            return list(self.command)
        start = list(self.command) or [sys.executable, '-m', f'{PACKAGE}.nodes.{self.executable}']
        return [
            *start,
            '--ros-args',
            '-r',
            f'__node:={self.name}',
            '--params-file',
            parameter_file,
        ]

    def parameter_document(self) -> dict[str, Any]:
        """Return the content of that YAML file, for whatever namespace the node gets."""
        return {f'/**/{self.name}': {'ros__parameters': dict(self.parameters)}}
