"""What a configuration says about a mapping method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from osmabench_ros.base.strict import PathText, PlainName
from osmabench_ros.mappers.transform_edges import Edges, MapOrigin, TfMode
from osmabench_ros.maps.topics.kinds import POINT_CLOUD, READERS
from osmabench_ros.simulation.section import Section


class Settling(Section):
    """How long a map of a foreign node is waited for after the last frame.

    Parameters
    ----------
    settle_s : float
        A map of `map_topic` or `stack` is finished when for so long after the last frame it has
        not changed and no process of the method has worked; longer where the method is known to
        take longer for a change.
    settle_timeout_s : float
        Longest wait for that. A map that still changes then is partial.
    allow_partial : bool
        Whether a run with a partial map may pass.
    """

    settle_s: float = Field(3.0, ge=0, le=3600)
    settle_timeout_s: float = Field(600.0, ge=0.1, le=86_400)
    allow_partial: bool = False


class MapperConfig(Settling):
    """A mapping method: a bundled one, a command that starts a node, or a foreign stack.

    It has the keys of `Settling` too.

    Parameters
    ----------
    name : str
        In the report, and unless `implementation` says otherwise the entry point in the group
        osmabench.mappers.
    implementation : str
        Entry point of a bundled mapper, so that one may take part twice with other options.
    options : dict
        Of the bundled mapper. Strings may hold ``${run}``, the folder of the run, ``${scene}``,
        ``${condition}`` and ``${seed}``.
    command : tuple of str
        Starts a node that publishes `semantic_map`, or, with `map_topic`, a map of another type.
    acks : bool
        Whether that node acknowledges frames. By default one with a `map_topic` does not, and
        one that publishes `semantic_map` does. Runs of one that does not are realtime.
    token : bool
        Whether that node signs what it publishes with the token of the run, as `Acknowledger` and
        `MapPublisher` do.
    map_topic, map_type : str
        Where and as what the node of `command` publishes its map, if not as `semantic_map`.
    stack : str
        Name in config/methods/live, or a YAML file like those; cannot acknowledge frames.
    variables : dict of str to str
        What the stack asks for.
    transforms : tuple of str, optional
        Edges of TF that the method publishes itself, as ``'odom->base_link'``; None for those
        that the file of the stack says.
    publish_tf : TfMode
        Edge from the world that the bridge publishes, if not the one that `transforms` leave free.
    map_origin : MapOrigin, optional
        Where a method that localises itself puts the origin of its map; None as `transforms`.
    """

    name: PlainName
    implementation: str = ''
    options: dict[str, Any] = Field(default_factory=dict)
    command: tuple[str, ...] = ()
    acks: bool = True
    token: bool = True
    map_topic: str = ''
    map_type: str = POINT_CLOUD
    stack: PathText = ''
    variables: dict[str, str] = Field(default_factory=dict)
    transforms: Edges | None = None
    publish_tf: TfMode = TfMode.AUTO
    map_origin: MapOrigin | None = None

    @field_validator('map_type')
    @classmethod
    def _readable(cls, value: str) -> str:
        if value not in READERS:
            raise ValueError(f'maps are read from {", ".join(READERS)}')
        return value

    @model_validator(mode='before')
    @classmethod
    def _strangers_do_not_acknowledge(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get('stack'):
            return {**data, 'acks': False}
        if isinstance(data, Mapping) and data.get('map_topic'):
            return {'acks': False, **data}
        return data

    @model_validator(mode='after')
    def _one_way_to_start(self) -> MapperConfig:
        ways = {
            'command': self.command,
            'stack': self.stack,
            'implementation or options': self.implementation or self.options,
        }
        given = [name for name, value in ways.items() if value]
        if len(given) > 1:
            raise ValueError(f'it is started in one way; leave out one of {" and ".join(given)}')
        if self.map_topic and not self.command:
            raise ValueError('map_topic says where the node of a command publishes; give both')
        defaults = Settling().model_dump(exclude={'allow_partial'})
        waits = [name for name, value in defaults.items() if getattr(self, name) != value]
        if waits and not (self.map_topic or self.stack):
            raise ValueError(f'{waits[0]} is about the map of a map_topic or stack')
        if self.variables and not self.stack:
            raise ValueError('variables are those of a stack; give its name too')
        return self

    @property
    def bundled(self) -> str:
        """Entry point of the bundled mapper, '' for a command or a stack."""
        return '' if self.command or self.stack else self.implementation or self.name
