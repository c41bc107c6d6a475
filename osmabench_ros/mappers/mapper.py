"""The interface between a mapping method and the mapper node."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol, cast

from osmabench_ros.base.configuration import MAPPERS, extension_names, load_extension
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet


class MappingMethod(Protocol):
    """Integrates frames one by one and yields a semantic map at any time."""

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map."""
        ...

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        ...


class Mapper(MappingMethod, Protocol):
    """A method made by an entry point in the group ``osmabench.mappers``.

    The entry point is called as ``factory(label_set=LabelSet, seed=int, options=dict)``. An
    option it does not know is a ConfigError.
    """

    uses_ground_truth: bool
    """Whether it reads semantic, instance or albedo images of a frame."""


class MapperFactory(Protocol):
    """Constructor that entry points name."""

    uses_ground_truth: bool
    """As of the mappers it makes; read before there is one."""

    def __call__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> Mapper:
        """Make a mapper for one run."""
        ...


def mapper_names() -> list[str]:
    """Return the names of all mappers that are installed, in alphabetical order."""
    return extension_names(MAPPERS)


def mapper_class(name: str) -> MapperFactory:
    """Return the constructor of a mapper by its entry point, e.g. ``'oracle'``.

    Raises ConfigError if there is no such mapper, or it cannot be imported.
    """
    return cast('MapperFactory', load_extension(MAPPERS, name))


def home_advantage(name: str) -> str:
    """Return the privileged inputs of a bundled mapper, by its class; '' if none."""
    return str(getattr(mapper_class(name), 'home_advantage', ''))


@cache
def knows_ground_truth(name: str) -> bool:
    """Return whether a bundled mapper reads ground truth, and so competes with no method."""
    return bool(getattr(mapper_class(name), 'uses_ground_truth', False))


def reads_albedo(options: Mapping[str, Any]) -> bool:
    """Return whether a bundled mapper with these options reads `Frame.albedo`."""
    return bool(options.get('albedo', False))


def make_mapper(
    name: str, *, label_set: LabelSet, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Mapper:
    """Make a mapper for one run by its entry point, e.g. ``'oracle'``, with its own options.

    Raises ConfigError if there is no such mapper, it cannot be imported, or an option is wrong.
    """
    factory = mapper_class(name)
    return factory(label_set=label_set, seed=seed, options=dict(options or {}))
