"""What a mapping method offers to the mapper node."""

from __future__ import annotations

from typing import Any, Protocol

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet


class Mapper(Protocol):
    """Integrates frames one by one and yields a semantic map at any time.

    A mapper is made by its entry point in the group ``osmabench.mappers``, called as
    ``factory(label_set=LabelSet, seed=int, options=dict)``. An option it does not know is a
    ConfigError.
    """

    uses_ground_truth: bool
    """Whether it reads the semantic and instance images of a frame."""

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map."""
        ...

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        ...


class MapperFactory(Protocol):
    """Constructor that entry points name."""

    uses_ground_truth: bool
    """As of the mappers it makes; read before there is one."""

    def __call__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> Mapper:
        """Make a mapper for one run."""
        ...
