"""One node of a run, however it is started."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from osmabench_ros.base.files import write_text
from osmabench_ros.ros.node.parameters import PLAN_FILE
from osmabench_ros.ros.node.settings import TfSettings

PACKAGE = 'osmabench_ros'
# Name of a third-party node or stack; an adapter called MAPPER publishes its map.
METHOD = 'method'


@dataclass(frozen=True)
class NodeSpec:
    """A node with everything that the runner and the launch files need to start it.

    Its settings go to it as a file, its plan. `executable` is a program in lib/osmabench_ros that
    runs the module of this name in osmabench_ros.nodes, `command` another program in its place.
    If that starts several nodes and takes no ROS arguments, `is_node` is False,
    and the bridge waits for `participants` by name.

    `topics` of a stack have its map and pose, and a bag of the run holds them too;
    `tf` is of the node that maps; with `ends_run` its end is the end of the run and its exit code
    the verdict.
    """

    name: str
    executable: str = ''
    settings: BaseModel | None = None
    command: tuple[str, ...] = ()
    managed: bool = True
    acks: bool = False
    participant: bool = True
    is_node: bool = True
    participants: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    tf: TfSettings = field(default_factory=TfSettings)
    ends_run: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is a node of this package, not a program of others."""
        return self.is_node and not self.command

    def parameters(self, folder: Path) -> dict[str, str]:
        """Write the plan of the node to a folder, and return the parameters that name it."""
        if self.settings is None:
            return {}
        file = folder.absolute() / f'{self.name}.json'
        write_text(file, self.settings.model_dump_json(indent=1))
        return {PLAN_FILE.name: str(file)}

    @property
    def module(self) -> str:
        """The module with the node, if it is one of ours."""
        return f'{PACKAGE}.nodes.{self.executable}'

    def command_line(self, folder: Path) -> list[str]:
        """Return the command of its process, with its plan in a folder."""
        if not self.is_node:
            return list(self.command)
        start = list(self.command) or [sys.executable, '-m', self.module]
        return [*start, *self.arguments(folder)]

    def arguments(self, folder: Path) -> list[str]:
        """Return the arguments of the node, with its plan in a folder."""
        given = [f'{name}:={file}' for name, file in self.parameters(folder).items()]
        parameters = [item for text in given for item in ('-p', text)]
        return ['--ros-args', '-r', f'__node:={self.name}', *parameters]
