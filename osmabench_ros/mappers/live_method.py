"""How a ROS 2 mapping stack is started and read: the files in config/methods/live.

A stack publishes the edges of the TF tree that it declares, the bridge the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, model_validator

from osmabench_ros.base.configuration import described, described_names
from osmabench_ros.base.strict import FolderName, PathBelow, Strict, validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.offline_method import filled
from osmabench_ros.semantics.labels import LabelSet

ARROW = '->'


class TfMode(str, Enum):
    """The edge from the world that the bridge publishes, apart from base_link to the camera.

    With a stack that owns map → odom → base_link, world → base_link would give base_link a second
    parent. AUTO takes the one that the declared edges of the stack leave free.
    """

    AUTO = 'auto'
    WORLD_TO_BASE = 'world_to_base'
    WORLD_TO_MAP = 'world_to_map'
    NONE = 'none'


class MapOrigin(str, Enum):
    """Where a stack puts its map: where the robot starts, or at our world."""

    FIRST_POSE = 'first_pose'
    WORLD = 'world'


def edge_of(text: str) -> tuple[str, str]:
    """Return parent and child of an edge such as ``'odom->base_link'``, or raise ValueError."""
    parent, _, child = (name.strip().lstrip('/') for name in text.partition(ARROW))
    if not parent or not child or ARROW in child or parent == child:
        raise ValueError(f'"{text}" is not an edge of TF; write PARENT->CHILD, as odom->base_link')
    return parent, child


def parents_of(edges: Iterable[str]) -> dict[str, str]:
    """Return the parent of each frame; raises ValueError if the edges are not a tree."""
    parents: dict[str, str] = {}
    for parent, child in map(edge_of, edges):
        if parents.setdefault(child, parent) != parent:
            raise ValueError(f'frame "{child}" has two parents, "{parents[child]}" and "{parent}"')
    for frame in parents:
        way_up(frame, parents)
    return parents


def way_up(frame: str, parents: dict[str, str]) -> list[str]:
    """Return a frame and its ancestors, root last; raises ValueError for a cycle."""
    way, last = {frame: None}, frame
    while (parent := parents.get(last)) is not None:
        if parent in way:
            raise ValueError(
                f'frame "{frame}" is its own ancestor, over {ARROW.join(reversed(way))}'
            )
        way[parent], last = None, parent
    return list(way)


def _checked(edges: tuple[str, ...]) -> tuple[str, ...]:
    parents_of(edges)
    return edges


# Edges as text, in a configuration or the file of a stack.
Edges = Annotated[tuple[str, ...], AfterValidator(_checked)]


def hydra_label_space(label_set: LabelSet) -> str:
    """Return the label space file (YAML) that Hydra and Khronos need for a label set."""
    ids = [item.id for item in label_set.classes]
    return yaml.safe_dump(
        {
            'total_semantic_labels': max(ids, default=-1) + 1,
            'dynamic_labels': [],
            'invalid_labels': [],
            'object_labels': [item.id for item in label_set.classes if not item.structure],
            'surface_places_labels': [
                item.id for item in label_set.classes if item.structure and item.name == 'floor'
            ],
            'label_names': [{'label': item.id, 'name': item.name} for item in label_set.classes],
        },
        sort_keys=False,
    )


FOLDER = ('methods', 'live')


class IncludedLaunch(Strict):
    """A launch file of the stack, its arguments, `parameters` of all nodes, and remappings."""

    package: str
    file: str
    arguments: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)
    remappings: dict[str, str] = Field(default_factory=dict)


class StackNode(Strict):
    """A node of the stack that needs no launch file."""

    package: str
    executable: str
    name: FolderName
    namespace: str = ''
    arguments: tuple[str, ...] = ()
    parameters: dict[str, Any] = Field(default_factory=dict)
    remappings: dict[str, str] = Field(default_factory=dict)


class StackProgram(Strict):
    """A program of the stack that is not a ROS executable, without a shell."""

    command: tuple[str, ...] = Field(min_length=1)
    directory: str = '.'


class Topic(Strict):
    """A topic of the stack, and the type of its messages as ROS writes it."""

    topic: str
    type: str


class MapFile(Strict):
    """A file or folder that the finish service makes the stack write, and its importer."""

    path: str
    importer: str


class FinishService(Strict):
    """The service called after the last frame, so that the stack completes its map."""

    service: str
    type: str
    request: dict[str, Any] = Field(default_factory=dict)


class LiveMethod(Strict):
    """A mapping stack that runs on ROS 2 by itself.

    Parameters
    ----------
    name, source : str
        Its name and where its code is.
    install : tuple of str
        Manual installation steps; none is run.
    variables : dict of str to str
        Settings required from the user; name to explanation.
    files : dict of str to str
        Files that are written before it starts: name in the work folder to text.
    launch, nodes, program
        How it is started: exactly one of them.
    map : Topic or MapFile
        The scored map.
    pose : Topic, optional
        Scored against ground truth where it is there.
    finish : FinishService, optional
        Completes the map.
    participants : tuple of str
        Names of its nodes that must be there before the first frame is published.
    transforms : tuple of str
        Edges of the transform tree that it publishes itself, as ``'map->odom'``; the bridge
        publishes the other edges.
    map_origin : MapOrigin
        Where it puts the root of its tree, if it says where base_link is.

    Notes
    -----
    Strings may hold ``${...}``: the variables, the topics ``color``, ``depth``, ``semantic``,
    ``instance``, ``color_info``, ``depth_info``, ``camera_pose``, ``odometry``, the frames
    ``world_frame``, ``base_frame``, ``camera_frame``, ``base_to_camera``, a matrix in YAML, and
    ``work``, the folder for its files.
    """

    name: FolderName
    source: str
    install: tuple[str, ...]
    variables: dict[str, str] = Field(default_factory=dict)
    files: dict[PathBelow, str] = Field(default_factory=dict)
    launch: IncludedLaunch | None = None
    nodes: tuple[StackNode, ...] = ()
    program: StackProgram | None = None
    map: Topic | MapFile
    pose: Topic | None = None
    finish: FinishService | None = None
    participants: tuple[str, ...] = ()
    transforms: Edges = ()
    map_origin: MapOrigin = MapOrigin.FIRST_POSE

    @model_validator(mode='after')
    def _one_way_to_start(self) -> LiveMethod:
        ways = [self.launch is not None, bool(self.nodes), self.program is not None]
        if sum(ways) != 1:
            raise ValueError('say how it is started: one of launch, nodes and program')
        if isinstance(self.map, MapFile) and self.finish is None:
            raise ValueError('a map in a file needs the service under finish that writes it')
        return self

    def check_variables(self, values: Mapping[str, str]) -> None:
        """Raise ConfigError if a variable is not set; names it and its meaning."""
        for name, meaning in self.variables.items():
            if name not in values:
                raise ConfigError(
                    f'method {self.name} needs the variable "{name}": {meaning}; set it under '
                    'variables'
                )

    def filled(self, values: Mapping[str, str]) -> LiveMethod:
        """Return the method with every ``${...}`` replaced; ConfigError names a missing value."""
        self.check_variables(values)
        kept = {'variables', 'install'}
        fields = filled(self.model_dump(exclude=kept), values, f'method {self.name}')
        return LiveMethod.model_validate({**self.model_dump(include=kept), **fields})


def live_method_names() -> list[str]:
    """Return the names of the stacks in config/methods/live."""
    return described_names(*FOLDER)


def load_live_method(name_or_path: str) -> LiveMethod:
    """Load a stack by its name in config/methods/live, or from a YAML file; or ConfigError."""
    data, source = described(name_or_path, *FOLDER)
    return validated(LiveMethod, data, source)
