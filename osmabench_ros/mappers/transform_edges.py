"""The edges of the TF tree: a stack publishes what it declares, the bridge the rest."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator

ARROW = '->'


class TfMode(str, Enum):
    """Which edge from the world the bridge publishes, besides those from base_link to the camera.

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
        raise ValueError(f'"{text}" is no edge of TF; write PARENT->CHILD, as odom->base_link')
    return parent, child


def parents_of(edges: Iterable[str]) -> dict[str, str]:
    """Return the parent of each frame that edges place; raises ValueError if they are no tree."""
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


Edges = Annotated[tuple[str, ...], AfterValidator(_checked)]
"""Edges as text, in a configuration or the file of a stack."""
