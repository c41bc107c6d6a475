"""Models of a configuration's mapping methods, recording and sweeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from osmabench_ros.base.contract import POINT_CLOUD
from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import PathText, PlainName, Strict
from osmabench_ros.mappers.transform_edges import Edges, MapOrigin, TfMode
from osmabench_ros.maps.topics.kinds import MapType
from osmabench_ros.sequences.bags.recording_report import RecordedTopics


class EvaluationConfig(Strict):
    """What is scored besides the final map: the one after every `map_every_frames`; 0: none."""

    map_every_frames: int = setting(
        0, 'Also publish the map after every so many frames; 0: never.', 0, 10**6
    )


class Resources(Strict):
    """What a run with a mapper needs of the machine; what is not said counts as an equal share.

    With `gpus` a run sees only those that it was given, a part of one or one and more.
    """

    cpus: float | None = setting(None, 'Cores.', 0.1, 4096)
    gpus: float = setting(0.0, 'GPUs, or a part of one.', 0, 64)
    memory_gib: float | None = setting(None, 'Resident memory of all its processes.', 0.1, 10**5)


class RecordingConfig(RecordedTopics):
    """Whether and how the topics of a run are recorded to bag/ in its folder."""

    enabled: bool = False
    """Whether a bag is recorded."""
    split_size_mb: float = setting(0.0, 'Begin a new file at this size; 0 never.', 0)


STEPS_PER_OCTAVE = 2
"""How fine the search is: speeds per doubling."""


class SweepConfig(Strict):
    """Which speed factors `osmabench run --speeds` tries: a list, or a search on a grid."""

    speeds: tuple[float, ...] = ()
    """Speed factors to try; () for a search."""
    lowest: float = setting(0.25, 'Slowest speed of the search.', 0.001, 1000)
    highest: float = setting(16.0, 'Fastest speed of the search.', 0.001, 1000)
    max_loss: float = Field(
        0.05, ge=0.0, lt=1.0, description='Share of frames that may be lost, e.g. 0.05.'
    )

    @field_validator('speeds')
    @classmethod
    def _ascending(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0.001 <= speed <= 1000 for speed in value):
            raise ValueError('speed factors must be between 0.001 and 1000')
        return tuple(sorted(set(value)))

    @model_validator(mode='after')
    def _a_range(self) -> SweepConfig:
        if self.highest < self.lowest:
            raise ValueError('highest must not be below lowest')
        return self

    @property
    def grid(self) -> tuple[float, ...]:
        """Speed factors from the lowest to the highest, geometric, to three digits."""
        octaves = math.log2(self.highest / self.lowest)
        steps = max(0, math.ceil(octaves * STEPS_PER_OCTAVE - 1e-9))
        speeds = [self.lowest * 2 ** min(octaves, i / STEPS_PER_OCTAVE) for i in range(steps + 1)]
        return tuple(dict.fromkeys(float(f'{speed:.3g}') for speed in speeds))


class Settling(Strict):
    """How long the recorder waits for a foreign map after the last frame.

    It has settled when for `settle_s` it has not changed;
    longer where the method is known to take longer for a change.
    """

    settle_s: float = setting(3.0, 'Seconds without a change of the map.', 0, 3600)
    settle_timeout_s: float = setting(
        600.0,
        'Longest wait after the last frame; a map that still changes then is partial.',
        0.1,
        86_400,
    )
    allow_partial: bool = setting(False, 'Whether a map that was cut off may pass.')


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
        ``${seed}`` in it, and in `variables`, is the seed of the method.
    acks : bool
        Whether that node acknowledges frames. By default one with a `map_topic` does not, and
        one that publishes `semantic_map` does. Runs of one that does not are realtime.
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
    resources : Resources
        What a run with it needs, by which runs are let in beside each other.
    """

    name: PlainName
    implementation: str = ''
    options: dict[str, Any] = Field(default_factory=dict)
    command: tuple[str, ...] = ()
    acks: bool = True
    map_topic: str = ''
    map_type: MapType = POINT_CLOUD
    stack: PathText = ''
    variables: dict[str, str] = Field(default_factory=dict)
    transforms: Edges | None = None
    publish_tf: TfMode = TfMode.AUTO
    map_origin: MapOrigin | None = None
    resources: Resources = Resources()

    @model_validator(mode='before')
    @classmethod
    def _foreign_nodes_do_not_acknowledge(cls, data: Any) -> Any:
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
            raise ValueError(
                f'only one way to start it may be given; leave out one of {" and ".join(given)}'
            )
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
