"""What importers find in a method's files, before it becomes a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.importer import World
from osmabench_ros.semantics.scene_graph import AttributeValue, NodeKind


@dataclass(frozen=True)
class Encoder:
    """The encoder of a feature space as the method usually runs it."""

    model: str
    pretrained: str = ''
    text_comparable: bool = True
    templates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """What is the same for all maps of a method."""

    name: str
    world: World
    encoders: Mapping[str, Encoder] = field(default_factory=lambda: MappingProxyType({}))


@dataclass
class SourceObject:
    """An object as a method gives it: its own axes and units, its own identifier."""

    source_id: str
    kind: NodeKind = NodeKind.OBJECT
    points: NDArray[np.floating] | None = None
    colors: NDArray[np.uint8] | None = None
    features: dict[str, NDArray[np.floating]] = field(default_factory=dict)
    labels: list[tuple[str, float]] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    corners: NDArray[np.floating] | None = None
    center_and_size: tuple[Sequence[float], Sequence[float]] | None = None
    parent: str | None = None
    observations: int = 0


@dataclass(frozen=True)
class SourceEdge:
    """A relation between two source ids."""

    source: str
    target: str
    type: str
    text: str = ''
    score: float = float('nan')
